internal import MartletAuthenticator
internal import MartletCore
internal import MartletCrypto
internal import MartletProvider
internal import MartletUpstreams

/// What looks at the body of a request while it streams: a comparison with the digest that its credential vouches for,
/// and the copy for another upstream.
///
/// The last piece of a body whose length is known, or the end of any other, is forwarded only after the comparison: the
/// upstream never gets a complete request with another body.
struct BodyWatch: ~Copyable {
    /// What is made of a complete body.
    enum Result {
        /// It is the announced one, or none was announced; with its copy, if it is to have one.
        case accepted(MirrorRequest?)
        case differs
    }

    /// What is in progress: apart, as an exchange has a size that is known when this is compiled, and few have any.
    private final class Progress {
        var check: BodyDigestCheck?
        var copy: MirrorCopy?
    }

    private var progress: Progress?

    /// Whether the pieces of the body, and its end, have to be looked at.
    @inline(__always)
    var isActive: Bool { progress != nil }

    /// Expects a body with a digest.
    /// - Throws: without memory for it.
    mutating func expect(_ digest: BodyDigest) throws(CryptoError) {
        let progress = progress ?? Progress()
        progress.check = try BodyDigestCheck(sha256: digest.sha256, sha512: digest.sha512)
        self.progress = progress
    }

    /// Completes a copy with the body.
    mutating func collect(_ copy: MirrorCopy) {
        let progress = progress ?? Progress()
        progress.copy = copy
        self.progress = progress
    }

    /// Continues with the next bytes of the body.
    mutating func add(_ piece: UnsafeBufferPointer<UInt8>) {
        guard let progress else { return }
        unsafe progress.check?.update(UnsafeRawBufferPointer(piece))
        guard let copy = progress.copy, unsafe !copy.append(piece) else { return }
        // It is too long to be copied.
        progress.copy = nil
        if progress.check == nil { self.progress = nil }
    }

    /// Ends with the bytes so far, which are all.
    mutating func finish() -> Result {
        guard let progress = progress.take() else { return .accepted(nil) }
        if let matches = progress.check.take()?.matches(), !matches { return .differs }
        return .accepted(progress.copy?.complete)
    }

    @inline(__always)
    mutating func end() { if isActive { drop() } }

    // Not in `end`: few requests have one.
    @inline(never)
    private mutating func drop() { progress = nil }
}

extension BodyWatch {
    /// Begins the comparison that a verified credential asks for.
    /// - Parameter hasBody: whether bytes follow; otherwise the body is known already.
    /// - Returns: why the request is rejected.
    mutating func begin(_ result: VerificationResult?, hasBody: Bool) -> AuthenticationError? {
        guard case .success(let verified) = result, let digest = verified.principal.identity.bodyDigest else {
            return nil
        }
        do throws(CryptoError) { try expect(digest) } catch {
            return .unavailable(error.code, cause: error)
        }
        if hasBody { return nil }
        guard case .differs = finish() else { return nil }
        return .malformed(Self.mismatch)
    }

    /// The reason for a body that is not the announced one.
    static let mismatch: ErrorCode = "digest.mismatch"
}
