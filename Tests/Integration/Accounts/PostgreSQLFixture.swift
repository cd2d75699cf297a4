import Glibc
import MartletAccounts
import MartletCore
import MartletIO
import MartletTesting

/// The server of all suites of rules; each test has a database of its own on it.
enum SharedPostgreSQL {
    private static let server = Box<PostgreSQLServer?>(nil)

    static func get() throws -> PostgreSQLServer {
        try server.withLock { server in
            if let server { return server }
            let fresh = try PostgreSQLServer()
            server = fresh
            // A static value is never released: the server would outlive the tests.
            atexit { SharedPostgreSQL.end() }
            return fresh
        }
    }

    private static func end() {
        try? server.value?.stop()
        server.withLock { $0 = nil }
    }
}

/// What the suites of rules run against here: stores that share one database of a real server.
func withStores<Result>(
    _ count: Int = 1, logger: Logger = .silent, _ body: ([AccountStore]) async throws -> Result
) async throws -> Result {
    let server = try SharedPostgreSQL.get()
    let url = server.url(database: try server.makeDatabase())
    // What these tests are about ends however busy the machine is.
    return try await withStores(at: url, count, statementTimeout: .seconds(20), logger: logger, body)
}

/// Stores of one URL, started, for the length of a test.
func withStores<Result>(
    at url: String, _ count: Int = 1, starts: Bool = true, statementTimeout: Duration = .seconds(2),
    logger: Logger = .silent,
    _ body: ([AccountStore]) async throws -> Result
) async throws -> Result {
    let loop = try ServiceLoop(name: "test-service")
    let resolver = try Resolver()
    // Many tests share a server.
    var pool = AccountPool()
    pool.connections = 4
    pool.statementTimeout = statementTimeout
    let settings = pool
    let stores = try (0..<count).map { _ in
        try Accounts.open(
            try AccountURL(url), pool: settings, clock: .system, logger: logger, loop: loop, resolver: resolver)
    }
    let result: Swift.Result<Result, any Error>
    do {
        if starts { for store in stores { try await waitForSchema(of: store) } }
        result = .success(try await body(stores))
    } catch {
        result = .failure(error)
    }
    for store in stores { await store.shutdown() }
    resolver.shutdown()
    loop.shutdown()
    return try result.get()
}

/// Starts a store, and waits for its schema, which a busy machine makes longer than calls wait for it.
private func waitForSchema(of store: AccountStore) async throws {
    do throws(AccountError) { try await store.start() } catch { try skipMigration(error) }
    let stopwatch = Stopwatch()
    while stopwatch.undisturbed < .seconds(60) {
        do throws(AccountError) {
            _ = try await store.account("usr_none")
            return
        } catch {
            try skipMigration(error)
        }
        try await Task.sleep(for: .milliseconds(20))
    }
}

private func skipMigration(_ error: AccountError) throws(AccountError) {
    guard error.code == .accountsMigrating else { throw error }
}
