import Foundation
import MartletCore
import Testing

@Suite struct Base64URLTests {
    @Test(arguments: ["", "f", "fo", "foo", "foob", "fooba", "foobar", "\u{0}\u{FF}ÿ~?>"])
    func `reads back what it wrote`(text: String) {
        let bytes = Array(text.utf8)
        #expect(Base64URL.decode(Base64URL.encode(bytes)) == bytes)
    }

    @Test func `agrees with another implementation on every length`() {
        for length in 0..<100 {
            let bytes = (0..<length).map { UInt8(truncatingIfNeeded: $0 &* 37 &+ length) }
            let expected = Data(bytes).base64EncodedString()
                .replacingOccurrences(of: "+", with: "-").replacingOccurrences(of: "/", with: "_")
                .replacingOccurrences(of: "=", with: "")
            #expect(Base64URL.encode(bytes) == expected)
            #expect(Base64URL.decode(expected) == bytes)
        }
    }

    @Test(arguments: [
        "A", "AAAAA", "Zg==", "Zm8=", "Zm9v\n", " Zm9v", "Zm+v", "Zm/v", "Zm9\u{0}", "Zm9é", "Zh", "Zm9vZ", "Zm9",
        "__9=",
    ])
    func `refuses every second spelling`(text: String) {
        #expect(Base64URL.decode(text) == nil)
    }

    @Test func `refuses spare bits that are not zero`() {
        let last = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_")
        #expect(last.filter { Base64URL.decode("A\($0)") != nil } == ["A", "Q", "g", "w"])
        #expect(last.filter { Base64URL.decode("AA\($0)") != nil }.count == 16)
        #expect(last.allSatisfy { Base64URL.decode("AAA\($0)") != nil })
    }

    @Test func `decodes a part of a larger run`() {
        let bytes = Array("..Zm9v..".utf8)
        #expect(Base64URL.decode(bytes[2..<6]) == Array("foo".utf8))
    }

    @Test func `tells texts apart by bytes`() {
        #expect("K" == "\u{212A}")
        #expect(!"K".hasSameBytes(as: "\u{212A}"))
        #expect(!"é".hasSameBytes(as: "e\u{301}"))
        #expect("é".hasSameBytes(as: "é"))
    }
}
