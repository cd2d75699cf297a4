package import MartletCore
package import MartletProvider

/// The error of creating, listing, refreshing or ending a session.
package struct SessionError: Error, Sendable, CustomStringConvertible {
    /// Determines the response status.
    package enum Kind: Sendable, Equatable {
        /// The token does not belong to a live session: 401.
        case invalid
        /// The subject's account is disabled: 403, and nothing has changed.
        case denied
        /// The store is unavailable: 503.
        case unavailable
        /// Too many refreshes in too short a time: 429.
        case throttled
        /// The session's key was not proved: 401, and nothing has changed.
        case unproven
    }

    package let code: ErrorCode
    package let kind: Kind
    package let cause: (any Error)?

    package init(_ code: ErrorCode, _ kind: Kind, cause: (any Error)? = nil) {
        (self.code, self.kind, self.cause) = (code, kind, cause)
    }

    package var description: String { "\(code)" }
}

/// The token pair issued by a login or a refresh.
package struct IssuedTokens: Sendable {
    package let accessToken: Secret
    package let refreshToken: Secret
    /// The remaining lifetime of the access token.
    package let accessLifetime: Duration
    /// The remaining lifetime of the session.
    package let refreshLifetime: Duration
    package let session: SessionReference
    package let provider: String
    /// The version of the account's claims in the store; `nil` if they are not stored there, or it is not known.
    package let claimsVersion: Int64?
    /// Whether they are of use only with a proof of the client's key.
    package let isBound: Bool
}

/// Identifies a session and its subject without being a credential.
package struct SessionReference: Hashable, Sendable {
    package let subject: String
    /// `ses_…`, as shown to clients and in headers.
    package let id: String

    package init(subject: String, id: String) { (self.subject, self.id) = (subject, id) }
}

/// A session in its owner's list.
package struct SessionSummary: Sendable, Equatable {
    package let id: String
    package let provider: String
    package let createdAt: UnixTime
    package let lastSeenAt: UnixTime
    package let expiresAt: UnixTime
    /// The client that created it.
    package let client: SessionClient
    /// The address of the last use: 16 bytes (IPv4-mapped), or empty.
    package let lastAddress: [UInt8]
    /// Whether it was bound to a key of the client at the login.
    package let isBound: Bool

    package init(
        id: String, provider: String, createdAt: UnixTime, lastSeenAt: UnixTime, expiresAt: UnixTime,
        client: SessionClient = SessionClient(), lastAddress: [UInt8] = [], isBound: Bool = false
    ) {
        (self.isBound, self.id, self.provider, self.createdAt) = (isBound, id, provider, createdAt)
        (self.lastSeenAt, self.expiresAt, self.client, self.lastAddress) = (lastSeenAt, expiresAt, client, lastAddress)
    }
}

/// A place in the list of a subject's sessions.
package struct SessionPosition: Sendable, Equatable {
    /// Higher for sessions that were created later.
    let order: Int64
}

/// A part of the list of a subject's sessions, newest first.
package struct SessionPage: Sendable {
    package let sessions: [SessionSummary]
    /// Where the next page starts; `nil` after the last one.
    package let next: SessionPosition?

    package init(sessions: [SessionSummary], next: SessionPosition?) {
        (self.sessions, self.next) = (sessions, next)
    }
}

/// Receives a session that is about to end.
package typealias EndReport = @Sendable (SessionReference) async -> Void

/// A session store: in memory or in Redis, with the same semantics.
package protocol SessionStoring: SessionVerifying {
    /// Creates a session for a subject.
    /// - Parameters:
    ///   - identity: its claims become those of the session, and the session is bound to the key that it is bound to.
    ///   - client: the client as shown in the subject's list.
    ///   - evicting: whether the subject's sessions beyond `max_per_subject` end, the oldest of the same app first;
    ///     otherwise that many are the error `session.contended`, caused by ``SurplusSessions``.
    ///   - mark: where a change of the identity since the login began would be marked; the session is not created then,
    ///     which is the error `signin.overtaken`. `nil` if there can be none.
    func create(
        subject: String, provider: String, identity: Identity, client: SessionClient, evicting: Bool,
        mark: ChangeMark?
    ) async throws(SessionError) -> IssuedTokens
    /// Whether creating a session looks for the mark; otherwise it has to be looked for when the session exists.
    var findsMarks: Bool { get }
    /// Stores the claims of a subject's account, which from now on are added to those of its sessions; claims older than
    /// the stored ones change nothing.
    ///
    /// Returns when this instance has dropped what it had cached and the others have been notified.
    /// - Returns: whether they are newer than the stored ones.
    @discardableResult
    func apply(_ claims: VersionedClaims, to subject: String) async throws(SessionError) -> Bool
    /// Exchanges a refresh token for a new pair of tokens.
    /// - Parameters:
    ///   - key: what the request shows of the client's key.
    ///   - address: the client's address: 16 bytes, or empty.
    ///   - reportReuse: called before a session ends because its refresh token was used before; `nil` without interest.
    /// - Throws: `invalid`, `throttled` or `unavailable`; `unproven` without the proof that the session needs.
    func refresh(
        _ token: Secret, provenBy key: RefreshKey, from address: [UInt8], reportingReuse reportReuse: EndReport?
    ) async throws(SessionError) -> IssuedTokens
    /// Ends the session that issued a refresh token, whether or not the token has been used.
    /// - Parameter report: called before the session ends; `nil` without interest.
    /// - Throws: `invalid` for a token that no live session has issued; `unavailable`.
    func endSession(withRefreshToken token: Secret, reporting report: EndReport?) async throws(SessionError)
    /// Records that the owner of a session has authenticated again.
    ///
    /// A proof older than the session's changes nothing. Returns when this instance has no cached copy of the session,
    /// and the other instances have been notified.
    /// - Parameter token: an access token of the session.
    /// - Returns: the proof that the session has now.
    func renew(_ token: Credential, with proof: SessionProof) async throws(SessionError) -> SessionProof
    /// Ends one session, whoever it belongs to; `false` if there is none.
    ///
    /// The store finds a session by its subject. Without that every session may have to be looked at, so this is for
    /// operators.
    func end(sessionID id: String) async throws(SessionError) -> Bool
    /// Lists live sessions of a subject, newest first, up to 500.
    /// - Parameter start: the `next` of the page before; `nil` for the first page.
    func page(of subject: String, from start: SessionPosition?) async throws(SessionError) -> SessionPage
    /// Ends one session; `false` if the subject does not have it.
    func end(_ session: SessionReference) async throws(SessionError) -> Bool
    /// Ends a subject's sessions.
    /// - Parameters:
    ///   - provider: only sessions created by this provider; `nil` for all.
    ///   - excluded: a session that does not end.
    func endAll(subject: String, provider: String?, except excluded: SessionReference?) async throws(SessionError)
}

extension SessionStoring {
    /// Lists the newest 500 live sessions of a subject, newest first.
    package func list(subject: String) async throws(SessionError) -> [SessionSummary] {
        try await page(of: subject, from: nil).sessions
    }

    /// Passes all live sessions of a subject on, newest first, until the body returns false.
    package func forEachSession(of subject: String, _ body: (SessionSummary) -> Bool) async throws(SessionError) {
        var start: SessionPosition?
        repeat {
            let page = try await page(of: subject, from: start)
            for session in page.sessions { guard body(session) else { return } }
            start = page.next
        } while start != nil
    }

    /// A live session, whatever the number of its subject's sessions; `nil` if it has ended.
    package func summary(of session: SessionReference) async throws(SessionError) -> SessionSummary? {
        var found: SessionSummary?
        try await forEachSession(of: session.subject) { listed in
            if listed.id.hasSameBytes(as: session.id) { found = listed }
            return found == nil
        }
        return found
    }

    /// Whether a session is live.
    package func isLive(_ session: SessionReference) async throws(SessionError) -> Bool {
        try await summary(of: session) != nil
    }
}

/// The cookie token issued by a login of a browser, or by a privilege change.
package struct IssuedCookie: Sendable {
    package let token: Secret
    /// The remaining lifetime of the session; a cookie need not be kept that long.
    package let lifetime: Duration
    package let session: SessionReference
    package let provider: String
    /// The authentication that the session is based on.
    package let proof: SessionProof
    /// The version of the account's claims in the store; `nil` if they are not stored there, or it is not known.
    package let claimsVersion: Int64?
}
