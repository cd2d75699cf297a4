extension UnsafeBufferPointer<UInt8> {
    /// The bytes in a parser's range.
    package subscript(range: ByteRange) -> UnsafeBufferPointer<UInt8> {
        @inlinable @inline(__always) get {
            unsafe UnsafeBufferPointer(rebasing: self[range.start..<range.end])
        }
    }
}
