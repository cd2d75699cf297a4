package import MartletCore
private import MartletCrypto
private import MartletJSON

/// A DPoP proof (RFC 9449 §4.2): parsed strictly, not yet verified.
///
/// Nothing of it can be read: ``confirmation(for:policy:now:)`` verifies it for one request, and returns what it shows.
package struct DPoPProof: Sendable {
    /// The maximum length of a proof in bytes.
    package static let maximumBytes = 8 * 1024
    /// The maximum length of `jti` in bytes.
    package static let maximumIDBytes = 128

    private let token: CompactJWS
    private let key: PublicKey
    private let thumbprint: String
    private let claims: DPoPClaims

    /// Parses a proof and the key in it.
    ///
    /// - Parameter policy: of which only the algorithms are used.
    /// - Throws: `dpop.too_large` before any other work, `dpop.malformed`, one of the codes of headers and keys, or one
    ///   for a claim that is missing or malformed.
    package init(_ text: [UInt8], policy: DPoPPolicy) throws(DPoPError) {
        token = try Self.token(text)
        let header = token.header.fields
        guard header["typ"] == "dpop+jwt" else {
            throw DPoPError(.dpopBadType, "the type of the proof is not dpop+jwt")
        }
        for name in JWSHeader.forbidden + JWSHeader.unusual where name != "jwk" && header.has(name) {
            throw DPoPError(.dpopHeaderNotAllowed, "the header of the proof has '\(name)'")
        }
        guard let algorithm = token.header.algorithm, let scheme = algorithm.scheme,
            policy.algorithms.contains(algorithm)
        else { throw DPoPError(.dpopAlgorithmNotAllowed, "the algorithm of the proof is not allowed") }
        key = try Self.key(header["jwk"], algorithm, scheme)
        thumbprint = key.parts.thumbprint
        claims = try DPoPClaims(token.payload)
    }

    /// The only one of a request's `DPoP` fields (RFC 9449 §4.3, check 1).
    /// - Throws: `dpop.missing` or `dpop.repeated`.
    package static func only(of fields: [[UInt8]]) throws(DPoPError) -> [UInt8] {
        guard let first = fields.first else { throw DPoPError(.dpopMissing, "there is no proof") }
        guard fields.count == 1 else { throw DPoPError(.dpopRepeated, "there are \(fields.count) proofs") }
        return first
    }

    private static func token(_ text: [UInt8]) throws(DPoPError) -> CompactJWS {
        do throws(JOSEError) {
            return try CompactJWS(text, maximumLength: maximumBytes)
        } catch {
            switch error.reason {
            case .tokenMissing: throw DPoPError(.dpopMissing, "there is no proof")
            case .tokenTooLarge: throw DPoPError(.dpopTooLarge, "the proof has \(text.count) bytes")
            default: throw DPoPError(.dpopMalformed, error.message)
            }
        }
    }

    private static func key(
        _ jwk: JSONValue?, _ algorithm: SignatureAlgorithm, _ scheme: SignatureScheme
    ) throws(DPoPError) -> PublicKey {
        guard let jwk else { throw DPoPError(.dpopKeyMissing, "the proof has no key") }
        guard let jwk = jwk.object else { throw DPoPError(.dpopBadKey, "the key is not an object") }
        guard jwk["kty"] != "oct", !PublicKeyParts.privateMembers.contains(where: jwk.has) else {
            throw DPoPError(.dpopKeyPrivate, "the key is private or symmetric")
        }
        if let use = jwk["use"], use != "sig" { throw DPoPError(.dpopBadKey, "the key is not for signatures") }
        if let operations = jwk["key_ops"], operations.array?.contains("verify") != true {
            throw DPoPError(.dpopBadKey, "the key is not for verifying")
        }
        let parts: PublicKeyParts
        do throws(JOSEError) { parts = try PublicKeyParts(jwk: jwk) } catch {
            throw DPoPError(.dpopBadKey, error.message)
        }
        guard parts.algorithms.contains(algorithm), jwk["alg"].map({ $0 == .string(algorithm.rawValue) }) ?? true else {
            throw DPoPError(.dpopKeyMismatch, "the key is not one for \(algorithm.rawValue)")
        }
        do throws(CryptoError) {
            return try PublicKey(parts, for: scheme)
        } catch {
            throw DPoPError(error.code == .cryptoWeakKey ? .dpopWeakKey : .dpopBadKey, error.message)
        }
    }

    /// Verifies the proof for one request (RFC 9449 §4.3): the claims, then the signature, which takes the most time.
    ///
    /// The caller compares the thumbprint with that of the access token (check 12), and records the replay key.
    /// - Throws: the code of the first check that fails.
    package func confirmation(
        for request: DPoPRequest, policy: DPoPPolicy, now: UnixTime
    ) throws(DPoPError) -> DPoPConfirmation {
        try claims.check(for: request)
        try claims.checkTimes(policy, now)
        guard key.verify(token.signature, over: token.signingInput) else {
            throw DPoPError(.dpopBadSignature, "the signature of the proof is not valid")
        }
        // The thumbprint has a fixed length, so that no two pairs give the same text.
        let replayed = Array((thumbprint + "." + claims.id).utf8)
        return DPoPConfirmation(
            thumbprint: thumbprint, replayKey: Base64URL.encode(SHA256.digest(replayed)),
            acceptedUntil: claims.issuedAt.advanced(bySeconds: policy.maximumAge))
    }
}
