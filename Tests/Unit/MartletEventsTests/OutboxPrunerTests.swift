import MartletCore
import MartletTesting
import Testing

@testable import MartletEvents

@Suite struct OutboxPrunerTests {
    @Test func `drops what is older than a day, and says when there may be more`() async throws {
        let outbox = FakeOutbox()
        let clock = Clock(
            unixTime: { UnixTime(seconds: 1_000_000) }, monotonicTime: { MonotonicTime(nanoseconds: 0) })
        let pruner = OutboxPruner(outbox, hooks: ["backend", "mail"], clock: clock, logger: .silent)
        outbox.state.withLock { $0.dropped = [["old": 500, "older": 2]] }
        #expect(try await pruner.drop())
        #expect(try await !pruner.drop())
        let drops = outbox.state.value.drops
        #expect(drops.map(\.hooks) == [["backend", "mail"], ["backend", "mail"]])
        #expect(drops.allSatisfy { $0.instant == 913_600_000 })
    }

    @Test func `throws while the outbox is unavailable`() async {
        let outbox = FakeOutbox()
        outbox.state.withLock { $0.isAvailable = false }
        let pruner = OutboxPruner(outbox, hooks: [], clock: .system, logger: .silent)
        await #expect(throws: StoreError.self) { try await pruner.drop() }
    }
}
