/// The constants that blocks are compared with, and classes of single bytes.
enum ASCII {
    static var space: SIMD16<Int8> { .init(repeating: 0x20) }
    static var delete: SIMD16<Int8> { .init(repeating: 0x7F) }
    static var hash: SIMD16<Int8> { .init(repeating: 0x23) }
    static var question: SIMD16<Int8> { .init(repeating: 0x3F) }
    static var percent: SIMD16<Int8> { .init(repeating: 0x25) }
    static var backslash: SIMD16<Int8> { .init(repeating: 0x5C) }
    static var colon: SIMD16<Int8> { .init(repeating: 0x3A) }
    static var slash: SIMD16<Int8> { .init(repeating: 0x2F) }
    static var dot: SIMD16<Int8> { .init(repeating: 0x2E) }
    static var dash: SIMD16<Int8> { .init(repeating: 0x2D) }
    static var zero: SIMD16<Int8> { .init(repeating: 0x30) }
    static var nine: SIMD16<Int8> { .init(repeating: 0x39) }
    static var a: SIMD16<Int8> { .init(repeating: 0x61) }
    static var z: SIMD16<Int8> { .init(repeating: 0x7A) }
    static var underscore: SIMD16<Int8> { .init(repeating: 0x5F) }
    static var tilde: SIMD16<Int8> { .init(repeating: 0x7E) }
    static var caseBit: SIMD16<Int8> { .init(repeating: 0x20) }
    static var lineFeed: SIMD16<Int8> { .init(repeating: 0x0A) }

    /// Letters, digits and dashes: the characters of most field names and host labels.
    @inline(__always)
    static func areNameCharacters(_ block: SIMD16<Int8>) -> SIMDMask<SIMD16<Int8>> {
        let lower = block | caseBit
        return ((lower .>= a) .& (lower .<= z)) .| ((block .>= zero) .& (block .<= nine)) .| (block .== dash)
    }

    /// Bytes other than 0x20–0x7E: adding one makes 0x7F negative.
    @inline(__always)
    static func areNoText(_ block: SIMD16<Int8>) -> SIMDMask<SIMD16<Int8>> {
        (block &+ SIMD16(repeating: 1)) .<= space
    }

    static func isDigit(_ byte: UInt8) -> Bool { byte &- 0x30 < 10 }
    static func isLetter(_ byte: UInt8) -> Bool { (byte | 0x20) &- 0x61 < 26 }
    static func isLower(_ byte: UInt8) -> Bool { byte &- 0x61 < 26 }
    static func isBlank(_ byte: UInt8) -> Bool { byte == 0x20 || byte == 0x09 }

    /// The value of a hexadecimal digit, or nil.
    static func hexValue(_ byte: UInt8) -> UInt8? {
        if isDigit(byte) { return byte &- 0x30 }
        let letter = (byte | 0x20) &- 0x61
        return letter < 6 ? letter &+ 10 : nil
    }

    /// The byte with an upper-case letter made lower case.
    static func lowered(_ byte: UInt8) -> UInt8 { byte &- 0x41 < 26 ? byte | 0x20 : byte }
}
