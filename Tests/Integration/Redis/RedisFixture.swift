import MartletCore
import MartletIO
import MartletRedis
import MartletTesting
import Testing

/// What a client needs around it, for the length of a test.
func withRedis<Result>(
    _ url: String, options: RedisOptions = RedisOptions(), _ body: (RedisClient) async throws -> Result
) async throws -> Result {
    let loop = try ServiceLoop(name: "test-service")
    let resolver = try Resolver()
    defer {
        resolver.shutdown()
        loop.shutdown()
    }
    let client = try RedisClient(
        try RedisURL(url), options: options, loop: loop, resolver: resolver, clock: .system, logger: .silent)
    client.start()
    defer { client.shutdown() }
    return try await body(client)
}

/// The code a store call fails with.
func failure(_ body: () async throws(StoreError) -> Void) async -> ErrorCode? {
    do {
        try await body()
        return nil
    } catch {
        return error.code
    }
}

extension RedisClient {
    /// The code of the outage, `nil` for a reply or a miss.
    func outage(reading key: String) async -> ErrorCode? {
        if case .unavailable(let error) = await value(for: key) { error.code } else { nil }
    }

    /// The value that is there.
    func stored(_ key: String) async throws -> [UInt8]? {
        switch await value(for: key) {
        case .found(let value): return value
        case .miss: return nil
        case .unavailable(let error): throw error
        }
    }

    /// Waits until commands get through again; how long that took.
    func recovery(within limit: Duration = .seconds(10)) async throws -> Duration {
        let stopwatch = Stopwatch()
        while stopwatch.undisturbed < limit {
            if status.state == .connected, await outage(reading: "probe") == nil { return stopwatch.undisturbed }
            try await Task.sleep(for: .milliseconds(5))
        }
        throw TestFailure("no recovery: \(status)")
    }
}
