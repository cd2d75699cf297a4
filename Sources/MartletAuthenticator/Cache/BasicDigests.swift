internal import MartletCore
internal import MartletCrypto
internal import MartletHTTP

/// Digests of names and passwords, under which their decisions are cached.
///
/// They are keyed, and the credentials themselves are never kept: a password may be used elsewhere, too.
struct BasicDigests: ~Copyable {
    private let key = Secret((0..<32).map { _ in UInt8.random(in: .min ... .max) })
    private var buffer = ByteBuffer(capacity: 32)

    /// The digest of a credential; valid until the next one.
    mutating func digest(of value: UnsafeBufferPointer<UInt8>) -> UnsafeBufferPointer<UInt8> {
        buffer.removeAll()
        buffer.append(HMACSHA256.authenticate(unsafe Array(value), key: key))
        return unsafe buffer.bytes
    }
}
