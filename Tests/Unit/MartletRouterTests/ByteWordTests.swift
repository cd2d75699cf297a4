import Testing

@testable import MartletRouter

@Suite struct ByteWords {
    @Test func `contain the bytes at any offset, and zeros after the end`() {
        for count in 0...24 {
            let bytes = (0..<count).map { UInt8($0 + 1) }
            for offset in 0...26 {
                let word = bytes.span.word(at: offset)
                let expected = (0..<8).map { offset + $0 < count ? bytes[offset + $0] : 0 }
                #expect((0..<8).map { UInt8(truncatingIfNeeded: word >> UInt64($0 * 8)) } == expected)
            }
        }
    }

    @Test func `match and lowercase every byte independently`() {
        for byte in UInt8.min...UInt8.max {
            for index in 0..<8 {
                for other: UInt64 in [0, 0x2F2F_2F2F_2F2F_2F2F, 0xFFFF_FFFF_FFFF_FFFF, 0x2E30_2E30_2E30_2E30] {
                    let shift = UInt64(index * 8)
                    let word = other & ~(0xFF << shift) | UInt64(byte) << shift
                    for wanted in [UInt8(ascii: "/"), 0x2E, 0, 0xFF, 0x80] {
                        let found = ByteWord.matches(of: wanted, in: word)
                        #expect((found >> shift & 0xFF == 0x80) == (byte == wanted))
                        #expect(found & ~0x8080_8080_8080_8080 == 0)
                    }
                    let lowered = ByteWord.lowercased(word)
                    #expect(UInt8(truncatingIfNeeded: lowered >> shift) == byte.lowercased)
                    #expect((lowered ^ word) & ~(0xFF << shift) == 0)
                }
            }
        }
    }

    @Test(arguments: 0...9) func `are cut to their first bytes`(_ count: Int) {
        let expected: UInt64 = count >= 8 ? .max : (1 << UInt64(count * 8)) - 1
        #expect(ByteWord.prefix(.max, count) == expected)
    }
}
