import MartletCore
import Testing

@Suite struct Base32Tests {
    @Test(
        arguments: [
            ("", ""), ("fooba", "mzxw6ytb"), ("foobarfoob", "mzxw6ytbojtg633c"), ("f", "m"), ("fo", "mzx"),
        ])
    func `encodes as RFC 4648 does, without padding and unfinished characters`(text: String, expected: String) {
        #expect(Base32.encode(text.utf8, in: .lowercase) == expected)
    }

    @Test func `zero bits in front fill a number of bytes up to whole characters`() {
        let bytes = [UInt8](repeating: 0xFF, count: 16)
        let text = Base32.encode(bytes, in: .crockford, afterZeroBits: 2)
        #expect(text == "7" + String(repeating: "Z", count: 25))
    }
}
