extension AuthorizedRequest {
    /// The identity headers, as complete lines.
    @inlinable @inline(__always)
    package var headers: UnsafeBufferPointer<UInt8> {
        unsafe UnsafeBufferPointer(start: block, count: Int(headerCount))
    }

    /// The caller for the access log, as ``CallerNames`` writes it; empty for an anonymous one.
    @inlinable @inline(__always)
    package var names: UnsafeBufferPointer<UInt8> {
        unsafe UnsafeBufferPointer(start: block.map { unsafe $0 + Int(headerCount) }, count: Int(nameCount))
    }
}
