internal import MartletCore
internal import MartletJOSE

/// Why a token does not prove who presents it, in Apple's terms; the list is that of the guide to Sign in with Apple.
struct Refusal: Error, CustomStringConvertible {
    /// What can be done about it.
    enum Kind: Sendable {
        /// The token is not good.
        case rejected
        /// The issuer may have this key; it is not known yet.
        case undecided(KeyID)
        /// There are no keys to judge with, or no store to ask.
        case unavailable
    }

    let kind: Kind
    let code: ErrorCode
    /// For operators and `martlet explain`.
    let message: String

    private init(_ kind: Kind, _ reason: String, _ message: String) {
        self.kind = kind
        code = ErrorCode(rawValue: "apple.\(reason)")
        self.message = message
    }

    init(_ error: JOSEError) { self.init(.rejected, error.reason.rawValue, error.message) }

    static func undecided(_ id: KeyID) -> Refusal {
        Refusal(.undecided(id), "unknown_key", "the key has to be fetched")
    }
    static let unavailable = Refusal(.unavailable, "keys_unavailable", "Apple's keys cannot be had")

    static func badSignature(_ message: String) -> Refusal { Refusal(.rejected, "bad_signature", message) }
    static func badIssuer(_ message: String) -> Refusal { Refusal(.rejected, "bad_issuer", message) }
    static func badAudience(_ message: String) -> Refusal { Refusal(.rejected, "bad_audience", message) }
    static func expired(_ message: String) -> Refusal { Refusal(.rejected, "expired", message) }
    static func badTimes(_ message: String) -> Refusal { Refusal(.rejected, "bad_times", message) }
    static func issuedInFuture(_ message: String) -> Refusal { Refusal(.rejected, "issued_in_future", message) }
    static func notYetValid(_ message: String) -> Refusal { Refusal(.rejected, "not_yet_valid", message) }
    static func tooOld(_ message: String) -> Refusal { Refusal(.rejected, "too_old", message) }
    static func badSubject(_ message: String) -> Refusal { Refusal(.rejected, "bad_subject", message) }
    static func wrongTokenKind(_ message: String) -> Refusal { Refusal(.rejected, "wrong_token_kind", message) }
    static func badClaim(_ message: String) -> Refusal { Refusal(.rejected, "bad_claim", message) }

    static let userMismatch = Refusal(.rejected, "user_mismatch", "user is not the token's sub")
    static let codeMismatch = Refusal(.rejected, "code_mismatch", "the code is not the one that came with the token")
    static let nonceMissing = Refusal(.rejected, "nonce_missing", "body and token do not both have a nonce")
    static let nonceMismatch = Refusal(.rejected, "nonce_mismatch", "the nonces of body and token differ")
    static let nonceReused = Refusal(.rejected, "nonce_reused", "the nonce was used, has expired or is not ours")
    static func storeUnavailable(_ message: String) -> Refusal { Refusal(.unavailable, "store_unavailable", message) }

    var description: String { "\(message) [\(code)]" }
}
