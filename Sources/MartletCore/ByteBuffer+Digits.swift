/// Formats numbers with the digits side by side in one word, without a loop.
extension ByteBuffer {
    /// Appends a number in decimal digits.
    @inlinable @inline(__always) package mutating func append(decimal value: Int) {
        let number = UInt(bitPattern: value)
        if number < 10 { return append(UInt8(truncatingIfNeeded: number) &+ 0x30) }
        reserve(Digits.longest)
        let output = unsafe UnsafeMutableRawPointer(base + end)
        if number < 100 {
            unsafe Digits.pair(number, to: output)
            end &+= 2
        } else if number < 10_000 {
            // A division by 100, exact below 10 000.
            let hundreds = (number &* 5243) >> 19
            let rest = number &- hundreds &* 100
            if number < 1000 {
                unsafe output.storeBytes(of: UInt8(truncatingIfNeeded: hundreds) &+ 0x30, as: UInt8.self)
                unsafe Digits.pair(rest, to: output + 1)
                end &+= 3
            } else {
                unsafe Digits.pair(hundreds, to: output)
                unsafe Digits.pair(rest, to: output + 2)
                end &+= 4
            }
        } else {
            end &+= unsafe Digits.write(value, to: base + end)
        }
    }

    /// Appends eight lowercase hexadecimal digits in one store.
    @inlinable @inline(__always) package mutating func append(eightDigits value: UInt32) {
        append(Digits(word: Digits.hexadecimal(value), count: 8))
    }

    /// Appends sixteen lowercase hexadecimal digits.
    @inlinable @inline(__always) package mutating func append(sixteenDigits value: UInt64) {
        reserve(16)
        append(eightDigits: UInt32(truncatingIfNeeded: value >> 32))
        append(eightDigits: UInt32(truncatingIfNeeded: value))
    }

    /// Appends digits: stores eight bytes and advances by `digits.count`.
    @inlinable @inline(__always) mutating func append(_ digits: Digits) {
        reserve(8)
        unsafe UnsafeMutableRawPointer(base + end).storeBytes(of: digits.word.littleEndian, as: UInt64.self)
        end &+= digits.count
    }
}

/// Up to eight ASCII digits; the first is the lowest byte.
@frozen @usableFromInline struct Digits {
    /// The bytes to reserve for any number, including what is written past its end.
    @inlinable static var longest: Int { 24 }

    @usableFromInline let word: UInt64
    @usableFromInline let count: Int

    @inlinable @inline(__always) init(word: UInt64, count: Int) {
        self.word = word
        self.count = count
    }

    /// The numbers 0 to 99, two digits each.
    @inlinable @inline(__always) static var pairs: StaticString {
        """
        0001020304050607080910111213141516171819202122232425262728293031323334353637383940414243444546474849\
        5051525354555657585960616263646566676869707172737475767778798081828384858687888990919293949596979899
        """
    }

    /// Writes the two digits of a number below 100.
    @inlinable @inline(__always) static func pair(_ number: UInt, to output: UnsafeMutableRawPointer) {
        let digits = unsafe UnsafeRawPointer(pairs.utf8Start).loadUnaligned(
            fromByteOffset: Int(bitPattern: number &* 2), as: UInt16.self)
        unsafe output.storeBytes(of: digits, as: UInt16.self)
    }

    /// A number below 100 000 000, with leading zeros.
    @inlinable @inline(__always) static func eight(_ number: UInt32) -> Digits {
        let high = number / 10_000
        let fours = UInt64(high) | UInt64(number &- high &* 10_000) << 32
        let hundreds = ((fours &* 5243) >> 19) & 0x0000_007F_0000_007F
        let pairs = hundreds | (fours &- hundreds &* 100) << 16
        let tens = ((pairs &* 103) >> 10) & 0x000F_000F_000F_000F
        return Digits(word: tens | (pairs &- tens &* 10) << 8 | 0x3030_3030_3030_3030, count: 8)
    }

    /// The digits without leading zeros; at least one.
    @inlinable @inline(__always) var withoutZeros: Digits {
        let zeros = min((word & 0x0F0F_0F0F_0F0F_0F0F).trailingZeroBitCount, 56) & ~7
        return Digits(word: word >> UInt64(truncatingIfNeeded: zeros), count: 8 &- zeros >> 3)
    }

    /// Writes any number, eight digits at a time; `output` must have ``longest`` bytes.
    ///
    /// Takes a pointer instead of a buffer, so that the offsets of a local buffer stay in registers.
    /// - Returns: the length of the number in bytes.
    @inline(never)
    @usableFromInline static func write(_ value: Int, to output: UnsafeMutablePointer<UInt8>) -> Int {
        let run: UInt = 100_000_000
        if UInt(bitPattern: value) < run {
            let digits = eight(UInt32(truncatingIfNeeded: value)).withoutZeros
            unsafe UnsafeMutableRawPointer(output).storeBytes(of: digits.word.littleEndian, as: UInt64.self)
            return digits.count
        }
        return unsafe writeRuns(value, of: run, to: output)
    }

    @inline(never)
    private static func writeRuns(_ value: Int, of run: UInt, to output: UnsafeMutablePointer<UInt8>) -> Int {
        var number = value.magnitude
        var lower: (UInt64, UInt64) = (0, 0)
        var runs = 0
        while number >= run {
            let (rest, low) = number.quotientAndRemainder(dividingBy: run)
            lower = (eight(UInt32(truncatingIfNeeded: low)).word, lower.0)
            runs &+= 1
            number = rest
        }
        let sign = value < 0 ? 1 : 0
        unsafe output.pointee = 0x2D
        let first = eight(UInt32(truncatingIfNeeded: number)).withoutZeros
        let to = unsafe UnsafeMutableRawPointer(output + sign)
        unsafe to.storeBytes(of: first.word.littleEndian, as: UInt64.self)
        if runs > 0 { unsafe to.storeBytes(of: lower.0.littleEndian, toByteOffset: first.count, as: UInt64.self) }
        if runs > 1 { unsafe to.storeBytes(of: lower.1.littleEndian, toByteOffset: first.count &+ 8, as: UInt64.self) }
        return sign &+ first.count &+ runs &* 8
    }

    /// The eight lowercase hexadecimal digits of a number.
    @inlinable @inline(__always) static func hexadecimal(_ value: UInt32) -> UInt64 {
        var digits = UInt64(value)
        digits = (digits & 0xFFFF_0000) << 16 | digits & 0xFFFF
        digits = digits << 8 & 0x00FF_0000_00FF_0000 | digits & 0x0000_00FF_0000_00FF
        digits = digits << 4 & 0x0F00_0F00_0F00_0F00 | digits & 0x000F_000F_000F_000F
        // Adding 6 to a digit above 9 carries into the next bit; 39 is the distance from ':' to 'a'.
        let letters = (digits &+ 0x0606_0606_0606_0606) >> 4 & 0x0101_0101_0101_0101
        return (digits &+ 0x3030_3030_3030_3030 &+ letters &* 39).byteSwapped
    }
}
