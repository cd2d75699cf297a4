/// The authenticated caller of a request: an identity with the subject that upstreams see.
@frozen package struct Principal: Sendable {
    /// The identity that the provider authenticated.
    package let identity: Identity
    /// The provider's name in `providers:`; for a session, the provider that created it.
    package let provider: String
    /// The stable subject; without an account store `<provider name>:<provider subject>`.
    package let subject: String
    /// The session, if a session token was presented.
    package let sessionID: String?

    package init(identity: Identity, provider: String, subject: String, sessionID: String?) {
        self.identity = identity
        self.provider = provider
        self.subject = subject
        self.sessionID = sessionID
    }

    /// The principal of an identity without an account store.
    package init(identity: Identity, provider: String, sessionID: String?) {
        self.init(
            identity: identity, provider: provider, subject: "\(provider):\(identity.providerSubject)",
            sessionID: sessionID)
    }
}
