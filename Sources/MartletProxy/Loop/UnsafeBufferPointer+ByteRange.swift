internal import MartletCore
internal import MartletHTTP

extension UnsafeBufferPointer<UInt8> {
    /// The bytes in a parser's range.
    subscript(range: ByteRange) -> UnsafeBufferPointer<UInt8> {
        unsafe UnsafeBufferPointer(rebasing: self[Int(range.start)..<Int(range.end)])
    }
}
