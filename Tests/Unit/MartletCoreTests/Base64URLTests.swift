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

    @Test func `rejects nonzero trailing bits`() {
        let last = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_")
        #expect(last.filter { Base64URL.decode("A\($0)") != nil } == ["A", "Q", "g", "w"])
        #expect(last.filter { Base64URL.decode("AA\($0)") != nil }.count == 16)
        #expect(last.allSatisfy { Base64URL.decode("AAA\($0)") != nil })
    }

    /// Lengths around the block sizes.
    static let lengths = Array(0...70) + [255, 256, 257]

    static func digits(_ count: Int) -> [UInt8] {
        let alphabet = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_".utf8)
        var text = (0..<count).map { alphabet[($0 &* 29 &+ count) % 64] }
        // The last digit has no trailing bits.
        if count % 4 > 1 { text[count - 1] = UInt8(ascii: "w") }
        return text
    }

    @Test(arguments: lengths)
    func `refuses every foreign byte at every place`(count: Int) {
        let text = Self.digits(count)
        #expect((Base64URL.decode(text) == nil) == (count % 4 == 1))
        guard count % 4 != 1, count <= 70 else { return }
        let known = Set("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_".utf8)
        var missed: [(Int, UInt8)] = []
        for position in text.indices {
            var changed = text
            for byte in UInt8.min ... .max where !known.contains(byte) {
                changed[position] = byte
                if Base64URL.decode(changed) != nil { missed.append((position, byte)) }
            }
        }
        #expect(missed.isEmpty)
    }

    @Test(arguments: lengths.filter { $0 % 4 != 1 })
    func `has one spelling for every value of each length`(count: Int) throws {
        let text = Self.digits(count)
        let bytes = try #require(Base64URL.decode(text))
        #expect(bytes.count == count * 3 / 4)
        #expect(Base64URL.encode(bytes) == String(decoding: text, as: UTF8.self))
        let spellings = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_".utf8
            .filter { Base64URL.decode(text.dropLast() + [$0]) != nil }
        #expect(spellings.count == (count == 0 ? 0 : [64, 0, 4, 16][count % 4]))
    }

    @Test func `decodes every digit at every position of a block`() {
        let alphabet = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_".utf8)
        for position in 0..<32 {
            for (value, digit) in alphabet.enumerated() {
                var text = [UInt8](repeating: UInt8(ascii: "A"), count: 32)
                text[position] = digit
                let bytes = Base64URL.decode(text) ?? []
                let group = bytes.dropFirst(position / 4 * 3).prefix(3).reduce(0) { $0 << 8 | Int($1) }
                #expect(bytes.count == 24)
                #expect(group == value << (18 - position % 4 * 6))
                #expect(bytes.count { $0 != 0 } <= 2)
            }
        }
    }

    @Test func `compares strings of every representation`() {
        let texts = ["", "a", "b", "ab", "é", "e\u{301}", "fifteen letters", "sixteen letters!", "sixteen letters?"]
        let long = texts.map { $0 + String(repeating: "x", count: 40) }
        for left in texts + long {
            for right in texts + long {
                let bridged = String(String.UnicodeScalarView(right.unicodeScalars))
                #expect(left.hasSameBytes(as: bridged) == (Array(left.utf8) == Array(right.utf8)))
            }
        }
    }

    @Test func `decodes a slice of a larger array`() {
        let bytes = Array("..Zm9v..".utf8)
        #expect(Base64URL.decode(bytes[2..<6]) == Array("foo".utf8))
    }

    @Test func `compares strings by bytes`() {
        #expect("K" == "\u{212A}")
        #expect(!"K".hasSameBytes(as: "\u{212A}"))
        #expect(!"é".hasSameBytes(as: "e\u{301}"))
        #expect("é".hasSameBytes(as: "é"))
    }
}
