internal import MartletCore

extension ByteBuffer {
    /// Appends 16 lower-case hexadecimal digits.
    mutating func append(sixteenDigits value: UInt64) {
        append(eightDigits: UInt32(truncatingIfNeeded: value >> 32))
        append(eightDigits: UInt32(truncatingIfNeeded: value))
    }
}
