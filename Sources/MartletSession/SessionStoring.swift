package import MartletCore
package import MartletProvider

/// Why a session could not be made, read, refreshed or ended.
package struct SessionError: Error, Sendable, CustomStringConvertible {
    /// What kind of answer it asks for.
    package enum Kind: Sendable, Equatable {
        /// The token is no live session's: 401.
        case invalid
        /// The store cannot tell: 503.
        case unavailable
        /// Too many refreshes in too short a time: 429.
        case throttled
    }

    package let code: ErrorCode
    package let kind: Kind
    package let cause: (any Error)?

    package init(_ code: ErrorCode, _ kind: Kind, cause: (any Error)? = nil) {
        self.code = code
        self.kind = kind
        self.cause = cause
    }

    package var description: String { "\(code)" }
}

/// A pair of tokens, given out once.
package struct IssuedTokens: Sendable {
    package let accessToken: Secret
    package let refreshToken: Secret
    /// Until the access token ends.
    package let accessLifetime: Duration
    /// Until the session ends.
    package let refreshLifetime: Duration
    package let session: SessionReference
    package let provider: String

    package init(
        accessToken: Secret, refreshToken: Secret, accessLifetime: Duration, refreshLifetime: Duration,
        session: SessionReference, provider: String
    ) {
        self.accessToken = accessToken
        self.refreshToken = refreshToken
        self.accessLifetime = accessLifetime
        self.refreshLifetime = refreshLifetime
        self.session = session
        self.provider = provider
    }
}

/// Which session of whom; what names a session without being a credential.
package struct SessionReference: Hashable, Sendable {
    package let subject: String
    /// `ses_…`, as clients and headers see it.
    package let id: String

    package init(subject: String, id: String) {
        self.subject = subject
        self.id = id
    }
}

/// A session as its owner's list shows it.
package struct SessionSummary: Sendable, Equatable {
    package let id: String
    package let provider: String
    package let createdAt: UnixTime
    package let lastSeenAt: UnixTime
    package let expiresAt: UnixTime
    /// Who made it.
    package let client: SessionClient
    /// Where it was last used from: 16 bytes (IPv4 mapped), or empty.
    package let lastAddress: [UInt8]

    package init(
        id: String, provider: String, createdAt: UnixTime, lastSeenAt: UnixTime, expiresAt: UnixTime,
        client: SessionClient = SessionClient(), lastAddress: [UInt8] = []
    ) {
        self.id = id
        self.provider = provider
        self.createdAt = createdAt
        self.lastSeenAt = lastSeenAt
        self.expiresAt = expiresAt
        self.client = client
        self.lastAddress = lastAddress
    }
}

/// Where sessions live; in memory or in Redis, with the same rules.
package protocol SessionStoring: SessionJudging {
    /// Makes a session for a subject; ends the oldest beyond `max_per_subject`.
    /// - Parameters:
    ///   - identity: whose claims the session carries.
    ///   - client: what the subject's list shows of who made it.
    func create(
        subject: String, provider: String, identity: Identity, client: SessionClient
    ) async throws(SessionError) -> IssuedTokens
    /// Exchanges a refresh token.
    /// - Parameter address: where it comes from: 16 bytes, or empty.
    func refresh(_ token: Secret, from address: [UInt8]) async throws(SessionError) -> IssuedTokens
    /// The live sessions of a subject, newest first; the newest 500.
    func list(subject: String) async throws(SessionError) -> [SessionSummary]
    /// Ends one session; `false` if the subject has no such session.
    func end(_ session: SessionReference) async throws(SessionError) -> Bool
    /// Ends a subject's sessions.
    /// - Parameters:
    ///   - provider: only those that this provider's identity made; `nil` for all.
    ///   - kept: one that stays.
    func endAll(subject: String, provider: String?, except kept: SessionReference?) async throws(SessionError)
}
