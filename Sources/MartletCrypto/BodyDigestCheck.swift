/// Compares a body with the digests that were announced for it, while it streams (RFC 9530 §2).
package struct BodyDigestCheck: ~Copyable {
    private let sha256: [UInt8]?
    private let sha512: [UInt8]?
    private var running256: IncrementalHash?
    private var running512: IncrementalHash?

    /// - Parameters:
    ///   - sha256: the announced digest; `nil` if there is none.
    ///   - sha512: likewise. Where both are given, both have to match.
    /// - Throws: `crypto.failure`, also if there is nothing to compare with.
    package init(sha256: [UInt8]?, sha512: [UInt8]?) throws(CryptoError) {
        guard sha256 != nil || sha512 != nil else { throw CryptoError(.cryptoFailure, "there is no digest") }
        let running256 = sha256 == nil ? nil : try IncrementalHash(.sha256)
        let running512 = sha512 == nil ? nil : try IncrementalHash(.sha512)
        self.sha256 = sha256
        self.sha512 = sha512
        self.running256 = running256
        self.running512 = running512
    }

    /// Continues with the next bytes of the body.
    package mutating func update(_ bytes: UnsafeRawBufferPointer) {
        unsafe running256?.update(bytes)
        unsafe running512?.update(bytes)
    }

    /// Continues with the next bytes of the body.
    package mutating func update(_ bytes: [UInt8]) { unsafe bytes.withUnsafeBytes { unsafe update($0) } }

    /// Whether the bytes so far are the announced body. Call it before the body's last byte is passed on.
    package consuming func matches() -> Bool {
        let (announced256, announced512) = (sha256, sha512)
        return running256.take()?.finish() == announced256 && running512.take()?.finish() == announced512
    }
}
