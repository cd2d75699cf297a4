internal import MartletAuthenticator
internal import MartletCore
internal import MartletCrypto
internal import MartletProvider

/// Compares the body of a request with the digest that its credential vouches for, while it streams.
///
/// The last piece of a body whose length is known, or the end of any other, is forwarded only after the comparison: the
/// upstream never gets a complete request with another body.
struct BodyCheck: ~Copyable {
    /// A digest in progress: apart, as an exchange has a size that is known when this is compiled.
    private final class Progress {
        var check: BodyDigestCheck?

        init(_ digest: BodyDigest) throws(CryptoError) {
            check = try BodyDigestCheck(sha256: digest.sha256, sha512: digest.sha512)
        }
    }

    private var progress: Progress?

    /// Whether a digest was announced and the body is not yet known to be the announced one.
    @inline(__always)
    var isPending: Bool { progress != nil }

    /// Expects a body.
    /// - Throws: without memory for it.
    mutating func expect(_ digest: BodyDigest) throws(CryptoError) { progress = try Progress(digest) }

    /// Continues with the next bytes of the body.
    mutating func add(_ piece: UnsafeBufferPointer<UInt8>) {
        unsafe progress?.check?.update(UnsafeRawBufferPointer(piece))
    }

    /// Whether the bytes so far are the announced body, which ends the check.
    mutating func holds() -> Bool { progress.take()?.check.take()?.matches() ?? false }

    @inline(__always)
    mutating func end() { if isPending { drop() } }

    // Not in `end`: few requests have one.
    @inline(never)
    private mutating func drop() { progress = nil }
}

extension BodyCheck {
    /// Begins the check that a verified credential asks for.
    /// - Parameter hasBody: whether bytes follow; otherwise the body is known already.
    /// - Returns: why the request is rejected.
    mutating func begin(_ result: VerificationResult?, hasBody: Bool) -> AuthenticationError? {
        guard case .success(let verified) = result, let digest = verified.principal.identity.bodyDigest else {
            return nil
        }
        do throws(CryptoError) { try expect(digest) } catch {
            return .unavailable(error.code, cause: error)
        }
        return hasBody || holds() ? nil : .malformed(Self.mismatch)
    }

    /// The reason for a body that is not the announced one.
    static let mismatch: ErrorCode = "digest.mismatch"
}
