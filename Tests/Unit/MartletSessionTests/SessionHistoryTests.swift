import MartletSession
import MartletSessionTesting
import Testing

@Suite struct SessionHistoryTests {
    @Test(arguments: [0..<10, 10..<20, 20..<30, 30..<40] as [Range<UInt64>])
    func `whatever order things happen in, the rules hold`(seeds: Range<UInt64>) async throws {
        var results: [String: Int] = [:]
        for seed in seeds {
            let backend = MemorySessions()
            var history = SessionHistory(seed: seed, startingAt: 1_800_000_000_123, on: [backend, backend, backend])
            try await history.run(steps: 800)
            results.merge(history.results, uniquingKeysWith: +)
        }
        let reached = [
            "verify yes", "verify session.unknown", "verify session.token_expired", "verify session.token_unknown",
            "refresh yes", "refresh session.unknown", "refresh session.token_reused",
        ]
        for result in reached { #expect(results[result, default: 0] > 0, "\(result)") }
    }
}
