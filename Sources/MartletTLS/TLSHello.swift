internal import MartletCore

/// The first record of a client, kept until it is whole (RFC 8446 §5.1).
///
/// OpenSSL makes room for the largest record and the largest message as soon as it sees the first byte. A client that
/// sends its hello byte by byte, or never to the end, costs what it has sent.
struct TLSHello: ~Copyable {
    private static let headerBytes = 5
    private static let maximumRecord = 16 * 1024
    /// The kind of record that a handshake consists of, and the first byte of every version.
    private static let handshake: UInt8 = 22
    private static let major: UInt8 = 3

    private var buffer = ByteBuffer()

    /// Adds bytes.
    mutating func append(_ bytes: UnsafeBufferPointer<UInt8>) { unsafe buffer.append(bytes) }

    /// Lends what is here.
    borrowing func withBytes<Failure: Error>(
        _ body: (UnsafeBufferPointer<UInt8>) throws(Failure) -> Void
    ) throws(Failure) { try unsafe body(buffer.bytes) }

    /// Whether OpenSSL could do something with what is here and `more`: a whole record, or what is no record at all.
    func isReady(with more: UnsafeBufferPointer<UInt8>) -> Bool {
        let count = buffer.count + more.count
        func byte(_ place: Int) -> UInt8 {
            unsafe place < buffer.count ? buffer.bytes[place] : more[place - buffer.count]
        }
        if count > 0, byte(0) != Self.handshake { return true }
        if count > 1, byte(1) != Self.major { return true }
        guard count >= Self.headerBytes else { return false }
        return count >= Self.headerBytes + min(Int(byte(3)) << 8 | Int(byte(4)), Self.maximumRecord)
    }
}
