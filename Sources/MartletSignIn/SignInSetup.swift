package import MartletAccounts
package import MartletAudit
package import MartletConfig
package import MartletCore
package import MartletIdentities
package import MartletJSON
package import MartletProvider
package import MartletResponder
package import MartletSession

/// The dependencies of the sign-in endpoints; a reload builds new ones.
// lint:large-type one property for each dependency of the endpoints
package struct SignInSetup: Sendable {
    package var providers: [ProviderHandle]
    package var sessions: any SessionStoring
    /// `nil` without `accounts:`.
    package var accounts: (any AccountStoring)?
    /// What is done about identities beyond their login; `nil` without `accounts:`.
    package var life: IdentityLife?
    /// Recognizes users who moved from another team of developers; `nil` if none is expected.
    package var transfers: TransferredIdentities?
    /// The one-time links of users who register or reset a password; `nil` without `accounts:`.
    package var links: AccountStore?
    /// Stores nonces, the marks of ``LoginFence`` and the responses of ``LoginRepetition``.
    package var store: any PartitionedStoring
    /// The prefix of all keys in the store.
    package var storeKeyPrefix: String
    package var configuration: SessionsConfiguration
    package var wellKnown: WellKnownConfiguration
    /// The public keys of the assertion; `nil` if it is not configured.
    package var keySet: JSONObject?
    package var clock: Clock
    package var logger: Logger
    /// Issues the nonces that providers consume; shares the providers' store and prefix.
    package var nonces: NonceIssuer
    /// Invalidates a subject's cached direct credentials in all loops of all instances; returns when this instance has
    /// none left and the others have been notified.
    package var invalidateDecisions: @Sendable (_ subject: String) async -> Void
    /// Makes gateways apply the claims of an account; `nil` without `accounts:`.
    package var claims: ClaimPublisher?
    /// Verifies proofs of clients' keys; `nil` rejects them.
    package var proofs: (any KeyProofVerifying)?
    /// What browsers need; `nil` without `browser:`.
    package var browser: BrowserSetup?
    /// How long after a request an account is deleted.
    package var deletionGrace: Duration
    /// Decides before the credential of a login is read whether it comes too often; `nil` without such limits.
    package var loginLimit: (@Sendable (_ request: LocalRequest) async -> Failure?)?
    /// Rules that give accounts claims.
    package var claimRules: LoginClaimRules
    /// Takes what users do; `nil` without `audit:`.
    package var audit: (any AuditRecording)?

    /// - Parameters:
    ///   - nonces: `nil` for those of the store.
    package init(
        providers: [ProviderHandle], sessions: any SessionStoring, accounts: (any AccountStoring)?,
        links: AccountStore? = nil, claims: ClaimPublisher? = nil,
        transfers: TransferredIdentities? = nil, store: any PartitionedStoring, storeKeyPrefix: String,
        nonces: NonceIssuer? = nil, proofs: (any KeyProofVerifying)? = nil, configuration: SessionsConfiguration,
        wellKnown: WellKnownConfiguration, keySet: JSONObject?, browser: BrowserSetup? = nil,
        claimRules: LoginClaimRules = LoginClaimRules(), deletionGrace: Duration = .zero,
        loginLimit: (@Sendable (_ request: LocalRequest) async -> Failure?)? = nil,
        audit: (any AuditRecording)? = nil, clock: Clock, logger: Logger,
        invalidateDecisions: @escaping @Sendable (_ subject: String) async -> Void
    ) {
        (self.providers, self.sessions) = (providers, sessions)
        (self.accounts, self.links, self.claims, self.transfers) = (accounts, links, claims, transfers)
        (self.store, self.storeKeyPrefix, self.proofs) = (store, storeKeyPrefix, proofs)
        self.nonces = nonces ?? NonceIssuer(store: store, keyPrefix: storeKeyPrefix, clock: clock)
        (self.configuration, self.wellKnown, self.keySet) = (configuration, wellKnown, keySet)
        (self.browser, self.claimRules, self.deletionGrace) = (browser, claimRules, deletionGrace)
        (self.loginLimit, self.audit, self.clock, self.logger) = (loginLimit, audit, clock, logger)
        self.invalidateDecisions = invalidateDecisions
    }

    func provider(_ name: String) -> ProviderHandle? { providers.first { $0.name.hasSameBytes(as: name) } }
}

/// The paths that the endpoints serve.
package struct SignInMounts: Sendable {
    /// This path and everything below it; without a final slash.
    package let base: String
    /// Single paths outside the base path.
    package let paths: [String]

    /// - Parameters:
    ///   - hasKeySet: whether an assertion is configured, whose keys are published.
    ///   - hasBrowser: whether browsers, and apps by a browser, can sign in.
    package init(
        _ sessions: SessionsConfiguration, _ wellKnown: WellKnownConfiguration, hasKeySet: Bool,
        hasBrowser: Bool = false
    ) {
        base = sessions.path
        var paths: [String] = []
        if hasBrowser { paths.append(Endpoint.metadataPath) }
        if hasKeySet { paths.append(Endpoint.keySetPath) }
        if !wellKnown.webCredentialApps.isEmpty { paths.append(Endpoint.appSiteAssociationPath) }
        if wellKnown.changePasswordURL != nil { paths.append(Endpoint.changePasswordPath) }
        self.paths = paths
    }
}
