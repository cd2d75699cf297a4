internal import MartletCore
internal import MartletDecisions

extension ByteBuffer {
    /// Appends the text of an address.
    @inline(__always)
    mutating func append(_ address: AddressText) {
        let letters = address.letters.span
        unsafe letters.withUnsafeBufferPointer { letters in
            unsafe append(UnsafeBufferPointer(rebasing: letters[..<address.count]))
        }
    }

    /// Appends the digits of the gateway's pseudonym.
    @inline(__always)
    mutating func append(_ pseudonym: ViaPseudonym) {
        unsafe withUnsafeBytes(of: pseudonym.digits.littleEndian) { bytes in
            unsafe append(bytes.bindMemory(to: UInt8.self))
        }
    }
}
