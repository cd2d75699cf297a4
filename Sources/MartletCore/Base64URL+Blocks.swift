private import CHeadScan

/// Decodes 16 or 32 digits at a time without a table; a token has about fifty blocks of 16.
extension Base64URL {
    /// The value of each digit, 0 to 63; greater for a byte that is not a digit.
    private typealias Values = SIMD16<UInt8>

    @unsafe static func decodeBlocks(_ text: UnsafeBufferPointer<UInt8>) -> [UInt8]? {
        let tail = text.count % 4
        guard tail != 1 else { return nil }
        guard let first = text.baseAddress else { return [] }
        let size = text.count / 4 &* 3 &+ (tail == 0 ? 0 : tail &- 1)
        var isStrict = false
        // Blocks are written whole: reserve the bytes that the last one writes past the end.
        let bytes = unsafe [UInt8](unsafeUninitializedCapacity: (text.count / 16 &+ 1) &* 12 &+ 4) { buffer, count in
            guard let output = buffer.baseAddress else { return }
            isStrict = unsafe decode(first, text.count, into: UnsafeMutableRawPointer(output))
            count = isStrict ? size : 0
        }
        return isStrict ? bytes : nil
    }

    /// - Returns: `false` for a byte that is not a digit, and for nonzero trailing bits.
    @unsafe private static func decode(
        _ text: UnsafePointer<UInt8>, _ count: Int, into output: UnsafeMutableRawPointer
    ) -> Bool {
        var output = unsafe output
        // The union of all values: digits never set the two highest bits.
        var seen = Values(repeating: 0)
        var index = 0
        if count >= 32, martlet_has_wide_blocks() {
            unsafe martlet_base64url_blocks(text, count / 32, output, &seen)
            index = count & ~31
            unsafe output += index / 4 &* 3
        }
        while index &+ 16 <= count {
            let digits = unsafe UnsafeRawPointer(text + index).loadUnaligned(as: Values.self)
            let values = martlet_base64url_values(digits)
            seen |= values
            unsafe store(values, at: output)
            unsafe output += 12
            index &+= 16
        }
        let rest = count &- index
        guard rest > 0 else { return areDigits(seen) }
        // The rest is decoded as a block padded with zeros.
        var digits = Values(repeating: UInt8(ascii: "A"))
        for lane in 0..<rest { unsafe digits[lane] = text[index &+ lane] }
        let values = martlet_base64url_values(digits)
        unsafe store(values, at: output)
        let spare: UInt8 =
            switch rest % 4 {
            case 2: 0x0F
            case 3: 0x03
            default: 0
            }
        return areDigits(seen | values) && values[rest &- 1] & spare == 0
    }

    @inline(__always)
    private static func areDigits(_ seen: Values) -> Bool {
        let halves = unsafe unsafeBitCast(seen, to: SIMD2<UInt64>.self)
        return (halves[0] | halves[1]) & 0xC0C0_C0C0_C0C0_C0C0 == 0
    }

    /// Writes the 12 bytes that 16 values encode, and 2 bytes past them.
    @inline(__always)
    @unsafe private static func store(_ values: Values, at output: UnsafeMutableRawPointer) {
        let halves = unsafe unsafeBitCast(values, to: SIMD2<UInt64>.self)
        unsafe output.storeBytes(of: joined(halves[0]), as: UInt64.self)
        unsafe (output + 6).storeBytes(of: joined(halves[1]), as: UInt64.self)
    }

    /// The 6 bytes that 8 values encode, in memory order.
    @inline(__always)
    private static func joined(_ values: UInt64) -> UInt64 {
        var bits = UInt64(bigEndian: values)
        bits = (bits & 0x3F00_3F00_3F00_3F00) >> 2 | bits & 0x003F_003F_003F_003F
        bits = (bits & 0x0FFF_0000_0FFF_0000) >> 4 | bits & 0x0000_0FFF_0000_0FFF
        bits = (bits & 0x00FF_FFFF_0000_0000) >> 8 | bits & 0x0000_0000_00FF_FFFF
        return (bits << 16).bigEndian
    }
}
