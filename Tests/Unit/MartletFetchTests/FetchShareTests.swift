import MartletTesting
import Testing

@testable import MartletFetch

@Suite struct FetchShareTests {
    private static func share() -> FetchShare { FetchShare(FetchLimits(slots: 2, total: 4)) }

    @Test func `gives out its slots, lets some wait and refuses the rest`() {
        var share = Self.share()
        #expect((1...5).map { share.enter($0) } == [.granted, .granted, .queued, .queued, .refused])
        #expect(share.taken == 2)
    }

    @Test func `passes slots on in order`() {
        var share = Self.share()
        for number: UInt64 in 1...4 { _ = share.enter(number) }
        #expect(share.leave() == 3)
        // Who comes now stands behind those who wait.
        #expect(share.enter(5) == .queued)
        #expect(share.leave() == 4 && share.leave() == 5)
        #expect(share.leave() == nil && share.leave() == nil)
        #expect(share.isIdle)
        #expect(share.leave() == nil && share.taken == 0)
    }

    @Test func `forgets who does not wait any more`() {
        var share = Self.share()
        for number: UInt64 in 1...4 { _ = share.enter(number) }
        share.abandon(3)
        share.abandon(9)
        #expect(share.enter(5) == .queued)
        #expect(share.leave() == 4)
        share.abandonAll()
        #expect(share.leave() == nil && share.taken == 1)
    }
}
