import Testing

@testable import MartletTraffic

@Suite struct TokenLeaseTests {
    private static let millisecond: Int64 = 1_000_000
    /// A token every 10 ms.
    private static let rate = TokenRate(count: 100, burst: 100)

    private var lease = TokenLease()

    /// Asks for requests and gets what is given.
    private mutating func ask(
        _ waiting: Int, _ rate: TokenRate = rate, granted: Int, extra: Int = 0, missing: Int64 = 0, at now: Int64
    ) -> (ask: TokenAsk, allowed: [Bool]) {
        let ask = lease.ask(for: waiting, rate, at: now)
        let grant = TokenGrant(granted: granted, extra: extra, missing: missing)
        return (ask, lease.finish(ask, grant, at: now).map(\.isAllowed))
    }

    @Test mutating func `a key that is asked for often leases more each time, up to a tenth of the burst`() {
        var wishes: [Int] = []
        for step in 0..<7 as Range<Int64> {
            #expect(lease.take(Self.rate, at: step * Self.millisecond) == .ask)
            wishes.append(ask(1, granted: 1, at: step * Self.millisecond).ask.extra)
        }
        #expect(wishes == [0, 1, 2, 4, 8, 10, 10])
        // Seldom again, it leases less.
        let later = [1_000, 2_000, 3_000, 4_000].map { ask(1, granted: 1, at: $0 * Self.millisecond).ask.extra }
        #expect(later == [5, 2, 1, 0])
    }

    @Test mutating func `a small limit leases nothing`() {
        let small = TokenRate(count: 100, burst: 9)
        for step in 0..<9 as Range<Int64> {
            #expect(ask(1, small, granted: 1, at: step * Self.millisecond).ask.extra == 0)
        }
    }

    @Test mutating func `leased tokens are used without asking, are reported, and end with the lease`() {
        #expect(ask(1, granted: 1, extra: 3, missing: 40 * Self.millisecond, at: 0).allowed == [true])
        guard case .decided(let first) = lease.take(Self.rate, at: Self.millisecond) else {
            Issue.record("a token is held")
            return
        }
        // What the two that are still held stand for is not missing yet.
        #expect(first.isAllowed && first.missing == 19 * Self.millisecond)
        guard case .decided = lease.take(Self.rate, at: TokenLease.lifetime - 1) else {
            Issue.record("a token is held")
            return
        }
        #expect(lease.take(Self.rate, at: TokenLease.lifetime) == .ask)
        var other = lease
        #expect(lease.ask(for: 1, Self.rate, at: TokenLease.lifetime).spent == 0, "the store has forgotten them")
        #expect(other.ask(for: 0, Self.rate, at: TokenLease.lifetime - 1).spent == 2)
    }

    @Test mutating func `without a token the store is not asked before the next one`() {
        // The bucket is empty, and 5 ms are left until a token is back.
        let missing = Self.rate.capacity - 5 * Self.millisecond
        #expect(ask(3, granted: 1, missing: missing, at: 0).allowed == [true, false, false])
        let rejected = lease.take(Self.rate, at: 2 * Self.millisecond)
        guard case .decided(let decision) = rejected else {
            Issue.record("there is none")
            return
        }
        #expect(!decision.isAllowed && decision.wait(Self.rate) == 3 * Self.millisecond)
        #expect(decision.remaining(Self.rate) == 0 && decision.retryAfter(Self.rate) == 1)
        #expect(lease.take(Self.rate, at: 5 * Self.millisecond) == .ask)
    }

    @Test mutating func `several waiting requests see what each leaves`() {
        let ask = lease.ask(for: 3, Self.rate, at: 0)
        let decisions = lease.finish(
            ask, TokenGrant(granted: 3, extra: 0, missing: 30 * Self.millisecond), at: 0)
        #expect(decisions.map(\.missing) == [10, 20, 30].map { $0 * Self.millisecond })
    }

    @Test mutating func `a token of the lease is used again, another is given back to the store`() {
        _ = ask(1, granted: 1, extra: 1, at: 0)
        _ = lease.take(Self.rate, at: 1)
        lease.giveBack(at: 2)
        #expect(lease.returned == 0 && lease.take(Self.rate, at: 3) != .ask)
        lease.giveBack(at: 4)
        lease.giveBack(at: 5)
        #expect(lease.returned == 1)
        let next = lease.ask(for: 0, Self.rate, at: 6)
        #expect(next.returned == 1 && next.waiting == 0 && next.extra == 0 && lease.returned == 0)
    }

    @Test mutating func `a token that is given back ends the rejection`() {
        _ = ask(1, granted: 0, missing: Self.rate.capacity, at: 0)
        #expect(lease.take(Self.rate, at: 1) != .ask)
        lease.giveBack(at: 2)
        #expect(lease.take(Self.rate, at: 3) == .ask)
    }

    @Test mutating func `without a response nothing is known`() {
        let ask = lease.ask(for: 2, Self.rate, at: 0)
        #expect(!lease.isIdle(at: 0))
        #expect(lease.finish(ask, nil, at: 1).isEmpty && lease.isIdle(at: 1))
        #expect(lease.take(Self.rate, at: 1) == .ask)
    }

    @Test mutating func `a grant that comes after its lease has ended is void`() {
        let ask = lease.ask(for: 0, Self.rate, at: 0)
        let late = TokenLease.lifetime + 1
        _ = lease.finish(ask, TokenGrant(granted: 0, extra: 5, missing: 0), at: late)
        #expect(lease.take(Self.rate, at: late) == .ask)
    }
}

@Suite struct StoreBreakerTests {
    @Test func `a store that fails is asked again after a pause, by one request that does not wait`() {
        var breaker = StoreBreaker()
        for now in 0..<2 as Range<Int64> {
            breaker.failed(at: now)
            #expect(breaker.step(at: now) == .ask)
        }
        breaker.failed(at: 2)
        #expect(breaker.step(at: 2) == .skip && breaker.step(at: 2 + StoreBreaker.pause - 1) == .skip)
        let again = 2 + StoreBreaker.pause
        #expect(breaker.step(at: again) == .probe && breaker.step(at: again) == .skip)
        breaker.failed(at: again + 1)
        #expect(breaker.step(at: again + StoreBreaker.pause) == .skip)
        #expect(breaker.step(at: again + 1 + StoreBreaker.pause) == .probe)
        breaker.succeeded()
        #expect(breaker.step(at: again) == .ask)
    }

    @Test func `failures between responses do not add up`() {
        var breaker = StoreBreaker()
        for now in 0..<20 as Range<Int64> {
            breaker.failed(at: now)
            breaker.failed(at: now)
            breaker.succeeded()
            #expect(breaker.isClosed)
        }
    }
}
