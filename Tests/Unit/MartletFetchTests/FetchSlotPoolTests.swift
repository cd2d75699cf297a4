import MartletTesting
import Testing

@testable import MartletFetch

@Suite struct FetchSlotPoolTests {
    private static func pool() -> FetchSlotPool { FetchSlotPool(FetchLimits(slots: 2, total: 4)) }

    @Test func `grants its slots, queues some requests and rejects the rest`() {
        var pool = Self.pool()
        #expect((1...5).map { pool.acquire($0) } == [.granted, .granted, .queued, .queued, .rejected])
        #expect(pool.inUse == 2)
    }

    @Test func `passes released slots on in order`() {
        var pool = Self.pool()
        for number: UInt64 in 1...4 { _ = pool.acquire(number) }
        #expect(pool.release() == 3)
        // A new request queues behind the waiters.
        #expect(pool.acquire(5) == .queued)
        #expect(pool.release() == 4 && pool.release() == 5)
        #expect(pool.release() == nil && pool.release() == nil)
        #expect(pool.isIdle)
        #expect(pool.release() == nil && pool.inUse == 0)
    }

    @Test func `removes abandoned waiters`() {
        var pool = Self.pool()
        for number: UInt64 in 1...4 { _ = pool.acquire(number) }
        pool.abandon(3)
        pool.abandon(9)
        #expect(pool.acquire(5) == .queued)
        #expect(pool.release() == 4)
        pool.abandonAll()
        #expect(pool.release() == nil && pool.inUse == 1)
    }
}
