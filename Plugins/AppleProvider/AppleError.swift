internal import MartletCore
internal import MartletJOSE
internal import MartletProvider

/// Why a token or a login is not accepted; the guide to Sign in with Apple lists the codes.
struct AppleError: CodedError {
    /// How the failure is handled.
    enum Kind: Sendable {
        /// The credential is invalid.
        case rejected
        /// A login does not have a member of this name.
        case incomplete(String)
        /// The key is not cached; a fetch may bring it.
        case undecided(KeyID)
        /// Apple's keys, Apple's API or the store are unavailable.
        case unavailable
        /// Apple limits the rate of calls.
        case throttled
        /// The client has used up its share of the store.
        case shareUsedUp
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

    /// A check that all signed tokens have in common.
    init(_ error: TokenError) {
        kind =
            switch error.kind {
            case .rejected: .rejected
            case .undecided(let id?): .undecided(id)
            // Apple's tokens name their keys.
            case .undecided(nil): .rejected
            case .unavailable: .unavailable
            }
        code = error.code
        message = error.message
    }

    /// What all signed tokens have in common.
    static func fromToken<Value>(_ value: @autoclosure () throws(TokenError) -> Value) throws(AppleError) -> Value {
        do throws(TokenError) { return try value() } catch { throw AppleError(error) }
    }

    static func badAudience(_ message: String) -> AppleError { AppleError(.rejected, "bad_audience", message) }
    static func wrongTokenKind(_ message: String) -> AppleError { AppleError(.rejected, "wrong_token_kind", message) }
    static func badClaim(_ message: String) -> AppleError { AppleError(.rejected, "bad_claim", message) }

    static let tokenMissing = AppleError(.rejected, "token_missing", "no identity token came with the code")
    static let authorizationFailed = AppleError(.rejected, "authorization_failed", "Apple's page returned an error")
    static let userMismatch = AppleError(.rejected, "user_mismatch", "user does not match sub")
    static let codeMismatch = AppleError(.rejected, "code_mismatch", "the code does not match c_hash")
    static let nonceMissing = AppleError(.rejected, "nonce_missing", "nonce missing from the token")
    static let nonceNotSent = AppleError(.incomplete("nonce"), "nonce_missing", "nonce missing from the body")
    static let nonceMismatch = AppleError(.rejected, "nonce_mismatch", "the nonces of body and token do not match")
    static let nonceReused = AppleError(
        .rejected, "nonce_reused", "the nonce was used, has expired or was not issued here")
    static let codeReused = AppleError(.rejected, "code_reused", "the code was used before")
    static let codeRejected = AppleError(.rejected, "code_rejected", "Apple did not accept the code")
    static func exchangeMismatch(_ message: String) -> AppleError {
        AppleError(.rejected, "exchange_mismatch", message)
    }
    static func badNotification(_ message: String) -> AppleError {
        AppleError(.rejected, "bad_notification", message)
    }
    static func apiOverloaded(_ message: String) -> AppleError { AppleError(.unavailable, "api_overloaded", message) }
    static func apiUnreachable(_ message: String) -> AppleError {
        AppleError(.unavailable, "api_unreachable", message)
    }
    static func apiBadResponse(_ message: String) -> AppleError {
        AppleError(.unavailable, "api_bad_response", message)
    }
    /// Apple refused a call for a reason that an operator has to remove.
    static func apiRefused(_ error: TokenResponse.APIError) -> AppleError {
        AppleError(.unavailable, error.rawValue, "Apple refused the call: \(error.rawValue)")
    }
    static let apiThrottled = AppleError(.throttled, "api_throttled", "Apple limits the rate of calls")
    /// A value that could not be stored or read.
    init(_ error: StoreError, _ message: String) {
        let isUsedUp = error.code == .storeShareUsedUp
        kind = isUsedUp ? .shareUsedUp : .unavailable
        code = isUsedUp ? error.code : "apple.store_unavailable"
        self.message = "\(message) [\(error.code)]"
    }
}
