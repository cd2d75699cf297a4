import MartletCore
import Testing

@testable import MartletAuthenticator

@Suite struct WaitingLimitsTests {
    private static let keys = WaitingKind.keys(provider: "apple")

    /// How many more may enter.
    private static func room(for kind: WaitingKind, in limits: inout WaitingLimits) -> Int {
        var count = 0
        while limits.enter(kind) { count += 1 }
        return count
    }

    @Test func `each kind has its own limit`() {
        var limits = WaitingLimits()
        for kind in [
            Self.keys, .sessions, .accounts, .keys(provider: "other"), .provider("apple"), .thread(provider: "apple"),
        ] {
            let room = Self.room(for: kind, in: &limits)
            #expect(room == kind.limit)
        }
    }

    @Test(arguments: [keys, .provider("apple"), .thread(provider: "apple")])
    func `one network leaves capacity for the others`(kind: WaitingKind) {
        var limits = WaitingLimits()
        let (first, second) = (WorkOwner(group: 1, member: 1), WorkOwner(group: 1, member: 2))
        var count = 0
        while limits.enter(kind, for: first) { count += 1 }
        #expect(count == kind.limitPerNetwork && count < kind.limit)
        let others = limits.enter(kind, for: second)
        let more = limits.enter(kind, for: first)
        limits.leave(kind, for: first)
        let again = limits.enter(kind, for: first)
        #expect(others && !more && again)
    }

    @Test func `leaving frees capacity for one`() {
        var limits = WaitingLimits()
        _ = Self.room(for: Self.keys, in: &limits)
        limits.leave(Self.keys)
        let one = Self.room(for: Self.keys, in: &limits)
        for _ in 0..<Self.keys.limit + 3 { limits.leave(Self.keys) }
        let all = Self.room(for: Self.keys, in: &limits)
        #expect(one == 1 && all == Self.keys.limit)
    }
}
