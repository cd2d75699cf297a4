package import MartletCore

extension ErrorCode {
    /// The text is no token of this kind.
    package static let sessionTokenMalformed: ErrorCode = "session.token_malformed"
    /// No session is filed under the token: ended, or never there.
    package static let sessionUnknown: ErrorCode = "session.unknown"
    /// The session is there, and the token is none of its own.
    package static let sessionTokenUnknown: ErrorCode = "session.token_unknown"
    /// An access token that has come to its end.
    package static let sessionTokenExpired: ErrorCode = "session.token_expired"
    /// A refresh token that was used before; its session has been ended.
    package static let sessionTokenReused: ErrorCode = "session.token_reused"
    /// What the store holds cannot be opened or read: changed by someone, or written by another version.
    package static let sessionRecordUnreadable: ErrorCode = "session.record_unreadable"
    /// The claims are more than a record may hold.
    package static let sessionRecordTooLarge: ErrorCode = "session.record_too_large"
    /// More refreshes than one grace, or more access tokens than one session, may have.
    package static let sessionThrottled: ErrorCode = "session.throttled"
    /// The store could not be asked.
    package static let sessionStoreUnavailable: ErrorCode = "session.store_unavailable"
    /// Too many other tokens of the client's network, or of all, wait to be looked up.
    package static let sessionLookupsFull: ErrorCode = "session.lookups_full"
    /// The memory store holds as many sessions as it may.
    package static let sessionStoreFull: ErrorCode = "session.store_full"
    /// A refresh lost every race that it ran.
    package static let sessionContended: ErrorCode = "session.contended"
    /// No random bytes, or no cipher.
    package static let sessionCryptoFailed: ErrorCode = "session.crypto_failed"
}

extension SessionError {
    static func invalid(_ code: ErrorCode) -> SessionError { SessionError(code, .invalid) }

    /// The store's own trouble.
    static func unavailable(_ error: StoreError) -> SessionError {
        SessionError(
            error.code == .sessionStoreFull ? .sessionStoreFull : .sessionStoreUnavailable, .unavailable, cause: error)
    }
}
