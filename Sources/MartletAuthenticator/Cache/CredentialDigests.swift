internal import MartletCore
internal import MartletCrypto
internal import MartletHTTP
internal import MartletProvider

/// Digests under which decisions are cached that the credential alone does not name: of names and passwords, which are
/// never kept because a password may be used elsewhere, too, and of credentials together with parts of the request.
struct CredentialDigests: ~Copyable {
    private let key = HMACSHA256.Key(Secret((0..<32).map { _ in UInt8.random(in: .min ... .max) }))
    private var buffer = ByteBuffer(capacity: 32)

    /// The digest of a credential; valid until the next one.
    mutating func digest(of value: UnsafeBufferPointer<UInt8>) -> UnsafeBufferPointer<UInt8> {
        unsafe hold(key.authenticate(Array(value)))
    }

    /// The digest of a credential for requests with the same parts; valid until the next one.
    mutating func digest(
        of value: UnsafeBufferPointer<UInt8>, for facts: RequestFacts, by parts: Set<RequestPart>
    ) -> UnsafeBufferPointer<UInt8> {
        var text: [UInt8] = []
        for part in RequestPart.allCases where parts.contains(part) {
            let bytes = Array(facts.text(of: part).utf8)
            // Each with its length: what ends one part never begins the next.
            text += (0..<8).map { UInt8(truncatingIfNeeded: bytes.count >> (8 * $0)) } + bytes
        }
        unsafe text.append(contentsOf: value)
        return unsafe hold(key.authenticate(text))
    }

    private mutating func hold(_ digest: [UInt8]) -> UnsafeBufferPointer<UInt8> {
        buffer.removeAll()
        buffer.append(digest)
        return unsafe buffer.bytes
    }
}
