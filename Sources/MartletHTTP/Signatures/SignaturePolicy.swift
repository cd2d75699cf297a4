package import MartletCore

/// What signatures of requests are accepted.
package struct SignaturePolicy: Sendable {
    /// How far ahead of the gateway's clock `created` may be, in seconds: as much as clocks differ that are
    /// synchronized badly, and less than the usual maximum age, so that it does not double the time for a replay.
    package static let maximumSkew: Int64 = 30

    /// What a signature has to cover at least, each as such: `@target-uri` does not replace `@path`.
    package var covers: [SignatureComponent]
    /// How long after `created` a signature is accepted, in seconds.
    package var maximumAge: Int64
    package var requiresNonce: Bool

    package init(covers: [SignatureComponent], maximumAge: Int64, requiresNonce: Bool) {
        self.covers = covers
        self.maximumAge = maximumAge
        self.requiresNonce = requiresNonce
    }

    /// Checks everything about a signature except whether it was made with the key.
    ///
    /// - Parameters:
    ///   - algorithm: that of the key; the signature's `alg`, where it has one, must be the same (RFC 9421 §3.2).
    ///   - hasBody: whether the request has a body, which the signature then covers by `content-digest`.
    /// - Returns: the last second in which the signature is accepted: how long its nonce has to be recorded.
    /// - Throws: the code of the first check that fails.
    package func check(
        _ signature: MessageSignature, algorithm: String, hasBody: Bool, now: UnixTime
    ) throws(MessageSignatureError) -> UnixTime {
        if let named = signature.algorithm, named != algorithm {
            throw MessageSignatureError(.signatureAlgorithmMismatch, "the algorithm is not that of the key")
        }
        for component in covers where !signature.components.contains(component) {
            var identifier: [UInt8] = []
            component.appendIdentifier(to: &identifier)
            let name = String(decoding: identifier, as: UTF8.self)
            throw MessageSignatureError(.signatureNotCovered, "the signature does not cover \(name)")
        }
        if hasBody, !signature.coversField("content-digest") {
            throw MessageSignatureError(.signatureDigestNotCovered, "the signature does not cover content-digest")
        }
        if requiresNonce, signature.nonce == nil {
            throw MessageSignatureError(.signatureNonceMissing, "the signature has no nonce")
        }
        return try checkTimes(of: signature, now)
    }

    private func checkTimes(
        of signature: MessageSignature, _ now: UnixTime
    ) throws(MessageSignatureError) -> UnixTime {
        guard let created = signature.created.map({ UnixTime(seconds: $0) }) else {
            throw MessageSignatureError(.signatureCreatedMissing, "the signature has no 'created'")
        }
        guard created <= now.advanced(bySeconds: Self.maximumSkew) else {
            throw MessageSignatureError(.signatureInFuture, "the signature is from the future")
        }
        let end = created.advanced(bySeconds: maximumAge)
        guard now <= end else { throw MessageSignatureError(.signatureTooOld, "the signature is too old") }
        guard let expires = signature.expires.map({ UnixTime(seconds: $0) }) else { return end }
        guard now < expires else { throw MessageSignatureError(.signatureExpired, "the signature has expired") }
        return min(end, expires)
    }
}
