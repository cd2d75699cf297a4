import MartletCore
import Testing

@testable import MartletAuthenticator

@Suite struct WaitingKindTests {
    private static let limits: [(WaitingKind, Int, Int)] = [
        (.thread(provider: "apple"), 4_096, 2_048), (.sessions, 4_096, 4_096), (.accounts, 4_096, 4_096),
        (.keys(provider: "apple"), 256, 64), (.provider("apple"), 1_024, 256),
    ]
    private static let kinds = limits.map { $0.0 }
    private static let first = WorkOwner(group: 1, member: 1)
    private static let second = WorkOwner(group: 1, member: 2)

    /// How many verifications may enter, of so many.
    private func entered(
        _ count: Int, _ kind: WaitingKind, for owner: WorkOwner = .anonymous, _ limits: inout WaitingLimits
    ) -> Int {
        var entered = 0
        for _ in 0..<count where limits.enter(kind, for: owner) { entered += 1 }
        return entered
    }

    @Test(arguments: limits)
    func `each kind has a limit, and one for each network`(kind: WaitingKind, limit: Int, limitPerNetwork: Int) {
        #expect(kind.limit == limit && kind.limitPerNetwork == limitPerNetwork)
    }

    @Test(arguments: kinds)
    func `exactly as many as the limit may wait`(kind: WaitingKind) {
        var limits = WaitingLimits()
        let (inside, beyond) = (entered(kind.limit, kind, &limits), entered(3, kind, &limits))
        limits.leave(kind)
        limits.leave(kind)
        let again = entered(3, kind, &limits)
        #expect(inside == kind.limit && beyond == 0 && again == 2)
    }

    @Test(arguments: kinds)
    func `exactly as many as its share may come from one network`(kind: WaitingKind) {
        var limits = WaitingLimits()
        let inside = entered(kind.limitPerNetwork, kind, for: Self.first, &limits)
        let beyond = entered(3, kind, for: Self.first, &limits)
        // What was rejected does not count: the others get all that is left.
        let others = entered(kind.limit, kind, &limits)
        #expect(inside == kind.limitPerNetwork && beyond == 0 && others == kind.limit - kind.limitPerNetwork)
    }

    @Test func `a rejection by the limit of all does not count in a network's share`() {
        var limits = WaitingLimits()
        let kind = WaitingKind.keys(provider: "apple")
        _ = entered(kind.limit, kind, &limits)
        let rejected = entered(100, kind, for: Self.first, &limits)
        for _ in 0..<kind.limit { limits.leave(kind) }
        let share = entered(100, kind, for: Self.first, &limits)
        #expect(rejected == 0 && share == 64)
    }

    @Test func `leaving for one network frees none of another's share`() {
        var limits = WaitingLimits()
        let kind = WaitingKind.provider("apple")
        let both = [
            entered(256, kind, for: Self.first, &limits), entered(256, kind, for: Self.second, &limits),
        ]
        for _ in 0..<10 { limits.leave(kind, for: Self.second) }
        let (first, second) = (
            entered(20, kind, for: Self.first, &limits), entered(20, kind, for: Self.second, &limits)
        )
        #expect(both == [256, 256] && first == 0 && second == 10)
    }

    @Test func `the shares of a network are apart by kind`() {
        var limits = WaitingLimits()
        let full = entered(100, .keys(provider: "apple"), for: Self.first, &limits)
        let (other, thread) = (
            entered(100, .keys(provider: "google"), for: Self.first, &limits),
            entered(100, .thread(provider: "apple"), for: Self.first, &limits)
        )
        limits.leave(.keys(provider: "google"), for: Self.first)
        let again = entered(100, .keys(provider: "apple"), for: Self.first, &limits)
        #expect(full == 64 && other == 64 && thread == 100 && again == 0)
    }

    @Test func `leaving without having entered frees nothing`() {
        var limits = WaitingLimits()
        let kind = WaitingKind.keys(provider: "apple")
        for _ in 0..<10 { limits.leave(kind, for: Self.first) }
        let share = entered(100, kind, for: Self.first, &limits)
        let others = entered(kind.limit, kind, &limits)
        #expect(share == 64 && others == 192)
    }

    @Test func `a network that leaves completely has its whole share again`() {
        var limits = WaitingLimits()
        let kind = WaitingKind.keys(provider: "apple")
        for _ in 0..<3 {
            let share = entered(100, kind, for: Self.first, &limits)
            #expect(share == 64)
            for _ in 0..<64 { limits.leave(kind, for: Self.first) }
        }
    }
}
