import Testing

@testable import MartletServer

@Suite struct `Missed messages` {
    @Test func `make copies go when the store can be asked, not before`() {
        var missed = MissedMessages()
        #expect(missed.noticed() == .ask)
        #expect(missed.asked(canAnswer: false) == .askLater)
        #expect(missed.asked(canAnswer: false) == .askLater)
        #expect(missed.asked(canAnswer: true) == .forget)
        #expect(missed.noticed() == .ask)
    }

    @Test func `one question is enough for several gaps`() {
        var missed = MissedMessages()
        #expect(missed.noticed() == .ask)
        #expect(missed.noticed() == nil)
        #expect(missed.asked(canAnswer: true) == .forget)
    }
}
