package import MartletCore

/// Why a DPoP proof is rejected (RFC 9449 §4.3).
package struct DPoPError: CodedError, Equatable {
    package let code: ErrorCode
    /// For operators; holds no part of the proof.
    package let message: String

    /// - Parameter message: for operators.
    package init(_ code: ErrorCode, _ message: String) {
        self.code = code
        self.message = message
    }

    /// Errors are equal if their codes are.
    package static func == (left: DPoPError, right: DPoPError) -> Bool { left.code == right.code }
}

extension ErrorCode {
    /// The request has no proof, though one is required.
    package static let dpopMissing: ErrorCode = "dpop.missing"
    /// The request has several proofs.
    package static let dpopRepeated: ErrorCode = "dpop.repeated"
    /// The proof exceeds the maximum length.
    package static let dpopTooLarge: ErrorCode = "dpop.too_large"
    /// The proof is not three parts of strict base64url with strict JSON objects in the first two.
    package static let dpopMalformed: ErrorCode = "dpop.malformed"
    /// The header's `typ` is not `dpop+jwt`.
    package static let dpopBadType: ErrorCode = "dpop.bad_type"
    /// The header's `alg` is not one of those allowed.
    package static let dpopAlgorithmNotAllowed: ErrorCode = "dpop.alg_not_allowed"
    /// The header has `crit`, references a key, or has another field that would change the processing.
    package static let dpopHeaderNotAllowed: ErrorCode = "dpop.header_not_allowed"
    /// The header has no `jwk`.
    package static let dpopKeyMissing: ErrorCode = "dpop.key_missing"
    /// The `jwk` is a private or symmetric key.
    package static let dpopKeyPrivate: ErrorCode = "dpop.key_private"
    /// The `jwk` is not a public key of a supported kind, or not one for signatures.
    package static let dpopBadKey: ErrorCode = "dpop.bad_key"
    /// The `jwk` has an insecure size or exponent.
    package static let dpopWeakKey: ErrorCode = "dpop.weak_key"
    /// The `jwk` is of another kind, or for another algorithm, than the header's `alg`.
    package static let dpopKeyMismatch: ErrorCode = "dpop.key_mismatch"
    /// The claim `jti` is missing, not a string, empty or too long.
    package static let dpopBadID: ErrorCode = "dpop.bad_jti"
    /// The claim `iat` is missing, or a time is not an integer.
    package static let dpopBadTime: ErrorCode = "dpop.bad_time"
    /// The claim `htm` is missing or not a string.
    package static let dpopMethodMissing: ErrorCode = "dpop.htm_missing"
    /// The claim `htm` is another method.
    package static let dpopMethodMismatch: ErrorCode = "dpop.htm_mismatch"
    /// The claim `htu` is missing or not an absolute URL.
    package static let dpopBadURL: ErrorCode = "dpop.bad_htu"
    /// The claim `htu` is another URL.
    package static let dpopURLMismatch: ErrorCode = "dpop.htu_mismatch"
    /// The proof was made too long ago, or has expired.
    package static let dpopTooOld: ErrorCode = "dpop.too_old"
    /// The proof is from the future.
    package static let dpopInFuture: ErrorCode = "dpop.in_future"
    /// The claim `ath` is missing, though there is an access token.
    package static let dpopTokenHashMissing: ErrorCode = "dpop.ath_missing"
    /// The claim `ath` is the hash of another access token.
    package static let dpopTokenHashMismatch: ErrorCode = "dpop.ath_mismatch"
    /// The signature was not made with the key in the proof.
    package static let dpopBadSignature: ErrorCode = "dpop.bad_signature"
}
