package import MartletCore
package import MartletProvider

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

    package init(
        token: Secret, lifetime: Duration, session: SessionReference, provider: String, proof: SessionProof,
        claimsVersion: Int64? = nil
    ) {
        self.claimsVersion = claimsVersion
        self.token = token
        self.lifetime = lifetime
        self.session = session
        self.provider = provider
        self.proof = proof
    }
}

/// A session store whose sessions may belong to a browser: they have one cookie token, and no other tokens.
///
/// In everything else they are sessions like others: in lists, ends, limits, revocations and claims.
package protocol CookieSessionStoring: SessionStoring {
    /// Creates a session with a cookie token; the parameters are those of a session with other tokens.
    func createCookie(
        subject: String, provider: String, identity: Identity, client: SessionClient, evicting: Bool,
        mark: ChangeMark?
    ) async throws(SessionError) -> IssuedCookie
    /// Replaces the cookie token immediately, because the rights of its session change: after another authentication, a
    /// change of password, or a link.
    ///
    /// The tokens before it are accepted for the grace period, and get no replacement. Returns when this instance has
    /// no cached copy of the session, and the other instances have been notified.
    /// - Parameters:
    ///   - proof: of another authentication; a proof older than the session's changes nothing.
    ///   - address: the client's address: 16 bytes, or empty.
    /// - Throws: `invalid`, with `session.token_expired` for a token that a privilege change has replaced before: the
    ///   response then sets no cookie.
    func reissue(
        _ cookie: Secret, renewedBy proof: SessionProof?, from address: [UInt8]
    ) async throws(SessionError) -> IssuedCookie
    /// Ends the session that issued a cookie token, whether or not the token has been replaced.
    /// - Parameter report: called before the session ends; `nil` without interest.
    /// - Throws: `invalid` for a token that no live session has issued; `unavailable`.
    func endSession(withCookie cookie: Secret, reporting report: EndReport?) async throws(SessionError)
}
