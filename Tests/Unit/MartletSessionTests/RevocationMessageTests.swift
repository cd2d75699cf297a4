import MartletSession
import Testing

@Suite struct RevocationMessageTests {
    @Test func `decodes the IDs of ended sessions`() {
        let message = Array("00000000000000010123456789abcdefffffffffffffffff".utf8)
        #expect(RevocationMessage.numbers(in: message) == [1, 0x0123_4567_89AB_CDEF, .max])
        #expect(RevocationMessage.channel(prefix: "martlet:") == "martlet:revoked")
    }

    @Test func `reads what it writes`() {
        let numbers: [UInt64] = [1, 0x0123_4567_89AB_CDEF, .max]
        #expect(RevocationMessage.bytes(numbers) == Array("00000000000000010123456789abcdefffffffffffffffff".utf8))
        #expect(RevocationMessage.numbers(in: RevocationMessage.bytes(numbers)) == numbers)
    }

    @Test func `tells ended sessions from changed ones`() {
        let ended = Array("0000000000000001".utf8)
        let changed = Array("changed:0000000000000001".utf8)
        #expect(RevocationMessage.numbers(in: ended) == [1] && RevocationMessage.numbers(in: changed) == nil)
        #expect(RevocationMessage.changedNumbers(in: changed) == [1])
        #expect(RevocationMessage.changedNumbers(in: ended) == nil)
        #expect(RevocationMessage.changedNumbers(in: Array("changed:".utf8)) == nil)
        #expect(RevocationMessage.changedNumbers(in: Array("changed:1".utf8)) == nil)
    }

    @Test(arguments: [
        "", "0", "000000000000001", "00000000000000010", "000000000000000g", "000000000000000A", "-000000000000001",
        "0x00000000000001", " 00000000000001 ",
    ])
    func `rejects malformed messages`(text: String) {
        #expect(RevocationMessage.numbers(in: Array(text.utf8)) == nil)
    }

    @Test func `rejects messages over the size limit`() {
        let digit: UInt8 = 0x30
        #expect(RevocationMessage.numbers(in: Array(repeating: digit, count: 16 * 1024))?.count == 1024)
        #expect(RevocationMessage.numbers(in: Array(repeating: digit, count: 16 * 1025)) == nil)
    }
}
