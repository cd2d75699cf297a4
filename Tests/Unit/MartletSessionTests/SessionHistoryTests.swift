import MartletSession
import MartletSessionTesting
import Testing

@Suite struct SessionHistoryTests {
    @Test(arguments: [0..<10, 10..<20, 20..<30, 30..<40] as [Range<UInt64>])
    func `whatever order things happen in, the rules hold`(seeds: Range<UInt64>) async throws {
        var answers: [String: Int] = [:]
        for seed in seeds {
            let backend = MemorySessions()
            var history = SessionHistory(seed: seed, startingAt: 1_800_000_000_123, on: [backend, backend, backend])
            try await history.run(steps: 800)
            answers.merge(history.answers, uniquingKeysWith: +)
        }
        let reached = [
            "judge yes", "judge session.unknown", "judge session.token_expired", "judge session.token_unknown",
            "refresh yes", "refresh session.unknown", "refresh session.token_reused",
        ]
        for answer in reached { #expect(answers[answer, default: 0] > 0, "\(answer)") }
    }
}
