import MartletTraffic
import Testing

/// An ejection that expectations may change.
private final class Bench {
    var value = Ejection()

    @discardableResult
    func failed(
        _ failure: Ejection.Failure, exceedsRate: Bool = false, mayEject: Bool, by policy: EjectionPolicy,
        at now: Int64
    ) -> Bool {
        value.failed(failure, exceedsRate: exceedsRate, mayEject: mayEject, by: policy, at: now)
    }
    func succeeded() -> Bool { value.succeeded() }
    func began() { value.began() }
    func ended() { value.ended() }
    func isUsable(at now: Int64) -> Bool { value.isUsable(at: now) }
    var until: Int64 { value.until }
    var count: Int { value.count }
    var failures: Int { value.failures }
}

@Suite struct `An ejection` {
    private static let second: Int64 = 1_000_000_000

    @Test func `follows the failures in a row that the policy says`() {
        var policy = EjectionPolicy()
        policy.failures = 3
        let ejection = Bench()
        let outcomes = (0..<3).map { _ in ejection.failed(.failed, mayEject: true, by: policy, at: 0) }
        #expect(outcomes == [false, false, true])
        #expect(!ejection.isUsable(at: Self.second - 1) && ejection.isUsable(at: Self.second))
    }

    @Test func `is not reached when a success comes between`() {
        let policy = EjectionPolicy()
        let ejection = Bench()
        for _ in 0..<100 {
            for _ in 0..<4 { ejection.failed(.failed, mayEject: true, by: policy, at: 0) }
            #expect(!ejection.succeeded())
        }
        #expect(ejection.isUsable(at: 0) && ejection.value == Ejection())
    }

    @Test func `is immediate for a refused connection, and doubles up to the longest`() {
        var policy = EjectionPolicy()
        (policy.shortest, policy.longest) = (2 * Self.second, 9 * Self.second)
        let ejection = Bench()
        var now: Int64 = 0
        for expected in [2, 4, 8, 9, 9] {
            #expect(ejection.failed(.refused, mayEject: true, by: policy, at: now))
            #expect(ejection.until == now + Int64(expected) * Self.second)
            now = ejection.until
            #expect(ejection.isUsable(at: now))
            ejection.began()
            #expect(!ejection.isUsable(at: now))
        }
        ejection.ended()
        #expect(ejection.isUsable(at: now) && ejection.succeeded())
        #expect(ejection.value == Ejection())
    }

    @Test func `is not lengthened by requests that were sent before`() {
        let ejection = Bench()
        #expect(ejection.failed(.refused, mayEject: true, by: EjectionPolicy(), at: 0))
        for _ in 0..<10 { #expect(!ejection.failed(.failed, mayEject: true, by: EjectionPolicy(), at: 10)) }
        #expect(ejection.until == Self.second && ejection.count == 1)
    }

    @Test func `waits while too many others are out of use`() {
        var policy = EjectionPolicy()
        policy.failures = 1
        let ejection = Bench()
        #expect(!ejection.failed(.refused, mayEject: false, by: policy, at: 0))
        #expect(!ejection.failed(.failed, exceedsRate: true, mayEject: false, by: policy, at: 0))
        #expect(ejection.isUsable(at: 0) && ejection.failures == 2)
        #expect(ejection.failed(.failed, mayEject: true, by: policy, at: 0))
        // A failed trial ejects it again, however many are out.
        #expect(ejection.failed(.failed, mayEject: false, by: policy, at: Self.second))
        #expect(ejection.count == 2)
    }

    @Test func `of the error rate needs neither a row nor a refused connection`() {
        let ejection = Bench()
        #expect(ejection.failed(.failed, exceedsRate: true, mayEject: true, by: EjectionPolicy(), at: 0))
    }

    @Test(arguments: [
        (0, 1, 50, true), (0, 2, 50, true), (1, 2, 50, false), (0, 3, 50, true), (1, 3, 50, false), (4, 10, 50, true),
        (5, 10, 50, false), (0, 10, 0, true), (1, 10, 0, false), (9, 10, 100, true), (1, 2, 100, true),
    ])
    func `may take the share of endpoints that the policy says, and always one`(
        out: Int, count: Int, percent: Int, expected: Bool
    ) {
        var policy = EjectionPolicy()
        policy.maximumEjected = percent
        #expect(policy.mayEject(out: out, of: count) == expected)
    }
}

@Suite struct `An error rate` {
    private static let second: Int64 = 1_000_000_000
    private static let policy = ErrorRatePolicy(percent: 50, minimumRequests: 10, window: 30 * second)

    @Test func `decides nothing below the minimum of requests`() {
        var rate = ErrorRate()
        for _ in 0..<9 { rate.count(isFailure: true, at: 1, Self.policy) }
        #expect(!rate.exceeds(Self.policy))
        rate.count(isFailure: false, at: 1, Self.policy)
        #expect(rate.exceeds(Self.policy))
    }

    @Test func `is met exactly at its percentage`() {
        var rate = ErrorRate()
        for number in 0..<100 { rate.count(isFailure: number < 49, at: 1, Self.policy) }
        #expect(!rate.exceeds(Self.policy))
        rate = ErrorRate()
        for number in 0..<100 { rate.count(isFailure: number < 50, at: 1, Self.policy) }
        #expect(rate.exceeds(Self.policy))
    }

    @Test func `forgets what is older than the window`() {
        var rate = ErrorRate()
        let start = 100 * Self.second
        for _ in 0..<100 { rate.count(isFailure: true, at: start, Self.policy) }
        for _ in 0..<100 { rate.count(isFailure: false, at: start + 16 * Self.second, Self.policy) }
        #expect(rate.exceeds(Self.policy))
        for _ in 0..<10 { rate.count(isFailure: false, at: start + 32 * Self.second, Self.policy) }
        #expect(!rate.exceeds(Self.policy))
        for _ in 0..<10 { rate.count(isFailure: true, at: start + 1000 * Self.second, Self.policy) }
        #expect(rate.exceeds(Self.policy))
    }
}
