package import MartletCore

/// A session whose token was verified.
@frozen package struct VerifiedSession: Sendable {
    package let principal: Principal
    /// The revocation ID. A collision of two sessions (1 in 2⁶⁴) costs only a lookup.
    package let number: UInt64
    /// How long a loop may cache the session, from the query of the store.
    package let cacheLifetime: Duration
    /// When the token expires and its exchanges end, in milliseconds of Unix time.
    package let end: Int64
    /// The cookie token that the response has to set; `nil` if the presented one stays, and for access tokens.
    package let replacement: ReplacementCookie?

    /// - Parameter end: `nil` is the second at which the identity expires.
    package init(
        principal: Principal, number: UInt64, cacheLifetime: Duration, end: Int64? = nil,
        replacement: ReplacementCookie? = nil
    ) {
        self.principal = principal
        self.number = number
        self.cacheLifetime = cacheLifetime
        self.end = end ?? principal.identity.expiresAt.milliseconds
        self.replacement = replacement
    }
}

/// A cookie token that replaces the one that was presented.
@frozen package struct ReplacementCookie: Sendable {
    package let token: Secret
    /// The remaining lifetime of the session.
    package let lifetime: Duration

    package init(token: Secret, lifetime: Duration) {
        self.token = token
        self.lifetime = lifetime
    }
}

/// Verifies session tokens against the store: access tokens as bearer credentials, and cookie tokens.
package protocol SessionVerifying: Sendable {
    /// The prefix of every access token: `mat_`.
    static var accessPrefix: String { get }
    /// Verifies a token and records the use of its session; a cookie token that is due is replaced.
    /// - Throws: `rejected` for a token without an active session, `unavailable` if the store is unavailable.
    func verify(
        _ token: Credential, in context: AuthenticationContext
    ) async throws(AuthenticationError) -> VerifiedSession
    /// Verifies a token like ``verify(_:in:)``, but changes nothing: it neither records a use of the session, nor
    /// replaces a cookie token, nor ends a session.
    func inspect(
        _ token: Credential, in context: AuthenticationContext
    ) async throws(AuthenticationError) -> VerifiedSession
}

/// The subject of an identity, with the claims of its account.
@frozen package struct ResolvedSubject: Sendable, Equatable {
    package let subject: String
    package let claims: AccountClaims

    package init(_ subject: String, claims: AccountClaims = AccountClaims()) {
        self.subject = subject
        self.claims = claims
    }
}

/// Resolves the subject of an identity.
package protocol SubjectResolving: Sendable {
    /// The subject of the identity's account, which is created if there is none.
    /// - Throws: `unavailable` if the account store is unavailable.
    func subject(of identity: Identity, provider: String) async throws(AuthenticationError) -> ResolvedSubject
    /// The subject of an existing account.
    /// - Returns: `nil` if there is no account yet.
    /// - Throws: `unavailable` if the account store is unavailable.
    func knownSubject(of identity: Identity, provider: String) async throws(AuthenticationError) -> ResolvedSubject?
    /// The subject of a user whose attempt has failed, for logs, with the same work whether or not the user exists.
    /// - Returns: `nil` for an unknown user, and without the account store.
    func subject(of user: AuthenticationError.AttemptedUser, provider: String) async -> String?
}

extension SubjectResolving {
    /// `nil`.
    package func subject(of user: AuthenticationError.AttemptedUser, provider: String) async -> String? { nil }
}

extension AuthenticationError.AttemptedUser {
    /// The subject of a user without an account.
    package func subject(provider: String) -> String? {
        if case .known(let subject) = self { "\(provider):\(subject)" } else { nil }
    }
}

extension Principal {
    /// The principal of an identity whose subject was resolved.
    package init(identity: Identity, provider: String, _ resolved: ResolvedSubject) {
        self.init(
            identity: identity.adding(resolved.claims, provider: provider), provider: provider,
            subject: resolved.subject, sessionID: nil)
    }
}
