package import MartletAuthenticator
package import MartletProvider
package import MartletResponder
package import MartletRouter

/// The components for sessions, accounts and the gateway's own endpoints.
package struct SignInComponents: Sendable {
    /// Verifies session tokens; `nil` rejects them.
    package let sessions: (any SessionVerifying)?
    /// Finds the account of a provider's identity; `nil` without accounts.
    package let subjects: (any SubjectResolving)?
    /// Signs the assertion for upstreams; `nil` without `assertion:`.
    package let assertion: AssertionSigner?
    /// Verifies proofs of credentials that are bound to keys; `nil` rejects them.
    package let proofs: (any ProofVerifying)?
    /// The handler of the route table's mounts.
    package let handler: LocalHandler
    /// Why the handler gets no request of a network now; never waits.
    package let rejection: @Sendable (_ network: ClientNetwork?) -> Failure?
    /// What concerns browsers; `nil` without `browser:`.
    package let browser: BrowserRules?

    package init(
        sessions: (any SessionVerifying)?, subjects: (any SubjectResolving)?, assertion: AssertionSigner?,
        proofs: (any ProofVerifying)? = nil, handler: @escaping LocalHandler,
        rejection: @escaping @Sendable (_ network: ClientNetwork?) -> Failure? = { _ in nil },
        browser: BrowserRules? = nil
    ) {
        self.sessions = sessions
        self.subjects = subjects
        self.assertion = assertion
        self.proofs = proofs
        self.handler = handler
        self.rejection = rejection
        self.browser = browser
    }
}
