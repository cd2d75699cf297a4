internal import MartletCore

/// The first record of a client, buffered until it is complete (RFC 8446 §5.1).
///
/// OpenSSL allocates buffers for the largest record and the largest message at the first byte. With this buffer, a
/// client that sends its hello slowly or incompletely only costs the memory of the bytes it has sent.
struct TLSHello: ~Copyable {
    private static let headerBytes = 5
    private static let maximumRecord = 16 * 1024
    /// The content type of handshake records, and the first byte of every version.
    private static let handshake: UInt8 = 22
    private static let major: UInt8 = 3

    private var buffer = ByteBuffer()

    /// Appends bytes.
    mutating func append(_ bytes: UnsafeBufferPointer<UInt8>) { unsafe buffer.append(bytes) }

    /// Calls `body` with the buffered bytes.
    borrowing func withBytes<Failure: Error>(
        _ body: (UnsafeBufferPointer<UInt8>) throws(Failure) -> Void
    ) throws(Failure) { try unsafe body(buffer.bytes) }

    /// Whether OpenSSL can process the buffered bytes and `more`: a complete record, or no handshake record at all.
    func isReady(with more: UnsafeBufferPointer<UInt8>) -> Bool {
        let count = buffer.count + more.count
        func byte(_ offset: Int) -> UInt8 {
            unsafe offset < buffer.count ? buffer.bytes[offset] : more[offset - buffer.count]
        }
        if count > 0, byte(0) != Self.handshake { return true }
        if count > 1, byte(1) != Self.major { return true }
        guard count >= Self.headerBytes else { return false }
        return count >= Self.headerBytes + min(Int(byte(3)) << 8 | Int(byte(4)), Self.maximumRecord)
    }
}
