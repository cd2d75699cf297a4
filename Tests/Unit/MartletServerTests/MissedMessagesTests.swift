import Testing

@testable import MartletServer

@Suite struct `Missed messages` {
    @Test func `invalidate caches when the store is available, not before`() {
        var missed = MissedMessages()
        #expect(missed.gapDetected() == .probe)
        #expect(missed.probed(isAvailable: false) == .probeLater)
        #expect(missed.probed(isAvailable: false) == .probeLater)
        #expect(missed.probed(isAvailable: true) == .invalidate)
        #expect(missed.gapDetected() == .probe)
    }

    @Test func `one probe is enough for several gaps`() {
        var missed = MissedMessages()
        #expect(missed.gapDetected() == .probe)
        #expect(missed.gapDetected() == nil)
        #expect(missed.probed(isAvailable: true) == .invalidate)
    }
}
