import Testing

@testable import MartletFetch

@Suite struct `What arrives of a response` {
    @Test func `is read up to its limits, and what is wanted is kept`() {
        var intake = ResponseIntake(headLimit: 8, bodyLimit: 4, keepsHead: true, keepsBody: false)
        let bytes: [UInt8] = [1, 2, 3, 4]
        unsafe bytes.withUnsafeBytes { bytes in
            for _ in 0..<2 { #expect(unsafe intake.add(head: bytes)) }
            #expect(unsafe !intake.add(head: UnsafeRawBufferPointer(rebasing: bytes[..<1])))
            #expect(unsafe intake.add(body: bytes))
            #expect(!intake.isBodyTooLarge)
            #expect(unsafe !intake.add(body: UnsafeRawBufferPointer(rebasing: bytes[..<1])))
        }
        #expect(intake.isHeadTooLarge && intake.isBodyTooLarge)
        #expect(intake.head == bytes + bytes && intake.body.isEmpty)
    }
}
