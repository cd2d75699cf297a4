package import MartletAccounts
package import MartletConfig
package import MartletCore
package import MartletJSON
package import MartletProvider
package import MartletSession

/// What the sign-in endpoints are made of; a reload makes them anew.
package struct SignInSetup: Sendable {
    package var providers: [ProviderHandle]
    package var sessions: any SessionStoring
    /// `nil` without `accounts:`.
    package var accounts: (any AccountStoring)?
    /// Where nonces, the marks of ``LoginFence`` and the answers of ``LoginRepetition`` are kept.
    package var store: any SharedStoring
    /// What every key of the store begins with.
    package var storeKeyPrefix: String
    package var configuration: SessionsConfiguration
    package var wellKnown: WellKnownConfiguration
    /// The public keys of the assertion; `nil` where there is none.
    package var keySet: JSONObject?
    package var clock: Clock
    package var logger: Logger
    /// Gives out what providers use up: the same as theirs.
    package var nonces: NonceIssuer
    /// Drops the verdicts on direct credentials of a subject that any loop of any instance has cached; returns when this
    /// instance has none left, and the others have been told.
    package var forgetVerdicts: @Sendable (_ subject: String) async -> Void

    package init(
        providers: [ProviderHandle], sessions: any SessionStoring, accounts: (any AccountStoring)?,
        store: any SharedStoring, storeKeyPrefix: String, configuration: SessionsConfiguration,
        wellKnown: WellKnownConfiguration, keySet: JSONObject?, clock: Clock, logger: Logger,
        forgetVerdicts: @escaping @Sendable (_ subject: String) async -> Void
    ) {
        self.providers = providers
        self.sessions = sessions
        self.accounts = accounts
        self.store = store
        self.storeKeyPrefix = storeKeyPrefix
        self.configuration = configuration
        self.wellKnown = wellKnown
        self.keySet = keySet
        self.clock = clock
        self.logger = logger
        nonces = NonceIssuer(store: store, keyPrefix: storeKeyPrefix, clock: clock)
        self.forgetVerdicts = forgetVerdicts
    }

    func provider(_ name: String) -> ProviderHandle? { providers.first { $0.name.hasSameBytes(as: name) } }
}

/// Which paths the endpoints answer; every other path is somebody else's.
package struct SignInMounts: Sendable {
    /// This path and everything below it; without a final slash.
    package let base: String
    /// Single paths beside it.
    package let paths: [String]

    /// - Parameter hasKeySet: whether there is an assertion whose keys are published.
    package init(_ sessions: SessionsConfiguration, _ wellKnown: WellKnownConfiguration, hasKeySet: Bool) {
        base = sessions.path
        var paths: [String] = []
        if hasKeySet { paths.append(Endpoint.keySetPath) }
        if !wellKnown.webCredentialApps.isEmpty { paths.append(Endpoint.appSiteAssociationPath) }
        if wellKnown.changePasswordURL != nil { paths.append(Endpoint.changePasswordPath) }
        self.paths = paths
    }
}
