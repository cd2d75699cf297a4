/// Who is calling, as the request carries it: a proven identity under the name that upstreams know it by.
package struct Principal: Sendable {
    /// What the provider proved.
    package let identity: Identity
    /// The provider's name in `providers:`; for a session, that of the provider that created it.
    package let provider: String
    /// The stable subject; without an account store `<provider name>:<provider subject>`.
    package let subject: String
    /// The session, where a session token was presented.
    package let sessionID: String?

    package init(identity: Identity, provider: String, subject: String, sessionID: String?) {
        self.identity = identity
        self.provider = provider
        self.subject = subject
        self.sessionID = sessionID
    }

    /// The principal of an identity where there is no account store.
    package init(identity: Identity, provider: String, sessionID: String?) {
        self.init(
            identity: identity, provider: provider, subject: "\(provider):\(identity.providerSubject)",
            sessionID: sessionID)
    }
}
