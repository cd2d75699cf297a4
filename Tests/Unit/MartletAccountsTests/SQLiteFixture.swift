import MartletAccounts
import MartletCore
import MartletIO
import MartletTesting

/// Runs a test of the shared suites against stores that share one SQLite file.
func withStores<Result>(
    _ count: Int = 1, logger: Logger = .silent, _ body: ([AccountStore]) async throws -> Result
) async throws -> Result {
    let folder = try TemporaryFolder()
    return try await withStores(at: folder.file("accounts.db"), count, logger: logger, body)
}

/// Runs a test with started stores of one file.
func withStores<Result>(
    at path: String, _ count: Int = 1, logger: Logger = .silent, _ body: ([AccountStore]) async throws -> Result
) async throws -> Result {
    let loop = try ServiceLoop(name: "test-service")
    let resolver = try Resolver()
    let stores = try (0..<count).map { _ in
        try Accounts.open(.sqlite(path: path), clock: .system, logger: logger, loop: loop, resolver: resolver)
    }
    let result: Swift.Result<Result, any Error>
    do {
        for store in stores { try await store.start() }
        result = .success(try await body(stores))
    } catch {
        result = .failure(error)
    }
    for store in stores { await store.shutdown() }
    resolver.shutdown()
    loop.shutdown()
    return try result.get()
}
