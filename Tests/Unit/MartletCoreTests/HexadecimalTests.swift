import MartletCore
import Testing

@Suite struct `Hexadecimal digits` {
    @Test(arguments: [([], ""), ([0], "00"), ([0x0F, 0xA0, 0xFF], "0fa0ff")] as [([UInt8], String)])
    func `have one form`(bytes: [UInt8], text: String) {
        #expect(Hexadecimal.text(bytes) == text)
        #expect(Hexadecimal.bytes(text) == bytes)
    }

    @Test(arguments: ["0", "0F", "0g", " 0", "0fa", "é0"])
    func `in another form are none`(text: String) {
        #expect(Hexadecimal.bytes(text) == nil)
    }
}
