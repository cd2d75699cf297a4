internal import MartletCore
internal import MartletCrypto

/// The certificate of a client, as the authenticator needs it: made once for each connection.
@safe package final class ClientCertificateBytes: Sendable {
    // nonisolated(unsafe): never changed after init.
    private nonisolated(unsafe) let memory: UnsafeMutableBufferPointer<UInt8>
    private let digestCount: Int
    /// The SHA-256 of the certificate in base64url, as `x5t#S256` of a bound token has it (RFC 8705 §3.1).
    package let thumbprint: String

    /// - Parameter der: the certificate.
    package init(der: [UInt8]) {
        let digest = SHA256.digest(der)
        digestCount = digest.count
        thumbprint = Base64URL.encode(digest)
        unsafe memory = .allocate(capacity: digest.count + der.count)
        _ = unsafe memory.initialize(from: digest + der)
    }

    deinit { unsafe memory.deallocate() }

    /// Valid as long as the certificate is.
    var digest: UnsafeBufferPointer<UInt8> { unsafe UnsafeBufferPointer(rebasing: memory[..<digestCount]) }
    /// Valid as long as the certificate is.
    var der: UnsafeBufferPointer<UInt8> { unsafe UnsafeBufferPointer(rebasing: memory[digestCount...]) }
}
