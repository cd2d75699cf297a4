package import MartletCore

extension ErrorCode {
    /// The identity was unlinked, or its password changed, while a login was in progress.
    package static let sessionOvertaken: ErrorCode = "signin.overtaken"
    /// The text is not a token of this kind.
    package static let sessionTokenMalformed: ErrorCode = "session.token_malformed"
    /// No session exists for the token: it has ended, or never existed.
    package static let sessionUnknown: ErrorCode = "session.unknown"
    /// The session exists, but did not issue the token.
    package static let sessionTokenUnknown: ErrorCode = "session.token_unknown"
    /// The access token has expired; a privilege change has replaced the cookie token.
    package static let sessionTokenExpired: ErrorCode = "session.token_expired"
    /// A refresh token or cookie token was reused after its grace period; its session has been ended.
    package static let sessionTokenReused: ErrorCode = "session.token_reused"
    /// The stored record cannot be decrypted or parsed: it was modified, or written by another version.
    package static let sessionRecordUnreadable: ErrorCode = "session.record_unreadable"
    /// The stored claims of the subject's account cannot be decrypted or parsed.
    package static let sessionClaimsUnreadable: ErrorCode = "session.claims_unreadable"
    /// An operator has disabled the subject's account.
    package static let accountDisabled: ErrorCode = "account.disabled"
    /// The claims exceed the size or depth limit of a record.
    package static let sessionRecordTooLarge: ErrorCode = "session.record_too_large"
    /// Too many refreshes or replaced cookies in one grace period, or too many live access tokens for one session.
    package static let sessionThrottled: ErrorCode = "session.throttled"
    /// The store is unavailable.
    package static let sessionStoreUnavailable: ErrorCode = "session.store_unavailable"
    /// Too many lookups are waiting, from the client's network or in total.
    package static let sessionLookupsFull: ErrorCode = "session.lookups_full"
    /// The memory store is full.
    package static let sessionStoreFull: ErrorCode = "session.store_full"
    /// The session is bound to a key, or has to be, and the request has no proof of one.
    package static let sessionProofMissing: ErrorCode = "dpop.missing"
    /// The session is bound to another key than the one that the request proved.
    package static let sessionWrongKey: ErrorCode = "dpop.wrong_key"
    /// A refresh lost the race against concurrent refreshes on every attempt.
    package static let sessionContended: ErrorCode = "session.contended"
    /// Random bytes or the cipher are unavailable.
    package static let sessionCryptoFailed: ErrorCode = "session.crypto_failed"
}

extension SessionError {
    static func invalid(_ code: ErrorCode) -> SessionError { SessionError(code, .invalid) }

    /// Maps a store error.
    static func unavailable(_ error: StoreError) -> SessionError {
        SessionError(
            error.code == .sessionStoreFull ? .sessionStoreFull : .sessionStoreUnavailable, .unavailable, cause: error)
    }
}
