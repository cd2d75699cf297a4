import MartletCore
import MartletTesting
import Testing

@testable import MartletFetch

@Suite struct FetchSlotPoolTests {
    private static func pool(total: Int = 4) -> FetchSlotPool {
        FetchSlotPool(FetchLimits(.providerRequests, slots: 2, total: total))
    }

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

    @Test func `leaves half to other networks, and half of that to other addresses`() {
        var pool = Self.pool(total: 16)
        var (number, admitted): (UInt64, [Int]) = (1, [])
        for member: UInt64 in 1...3 {
            var count = 0
            let owner = WorkOwner(group: 1, member: member)
            while pool.hasCapacity(for: owner) {
                #expect(pool.acquire(number, for: owner) != .rejected)
                number += 1
                count += 1
            }
            #expect(pool.acquire(number, for: owner) == .rejected)
            admitted.append(count)
        }
        #expect(admitted == [4, 4, 0])
        #expect(pool.acquire(number, for: WorkOwner(group: 2, member: 1)) == .queued)
        // Networks take turns.
        let first = pool.release(by: WorkOwner(group: 1, member: 1))
        let second = pool.release(by: WorkOwner(group: 1, member: 1))
        #expect(first == number || second == number)
    }

    @Test(arguments: [FetchPurpose.issuerKeys, .provider("wechat")])
    func `one network does not keep every slot`(purpose: FetchPurpose) {
        var pool = FetchSlotPool(purpose.limits)
        var number: UInt64 = 1
        for member: UInt64 in 1...3 {
            while pool.acquire(number, for: WorkOwner(group: 1, member: member)) != .rejected { number += 1 }
        }
        #expect(number > 32 && pool.acquire(number, for: WorkOwner(group: 2, member: 1)) == .granted)
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
