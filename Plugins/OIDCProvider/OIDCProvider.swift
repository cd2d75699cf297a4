public import MartletConfig
internal import MartletCore
internal import MartletJOSE
public import MartletProvider

/// Any OpenID Connect issuer: verifies its tokens as bearer tokens, asks it about opaque ones, and signs users in.
public struct OIDCProvider: LocallyVerifying {
    /// The type of the provider's configuration block.
    public typealias Configuration = OIDCConfiguration

    public static let kind: ProviderKind = "oidc"

    let configuration: OIDCConfiguration
    let context: ProviderContext
    /// `nil` if everything is configured.
    let discovery: Discovery?
    let keys: KeySource
    /// `nil` if there are no opaque tokens.
    let introspector: Introspector?
    private let bearerChecks: OIDCChecklist
    /// For logins by redirect and of apps; `nil` if they are off.
    private let webChecks: OIDCChecklist?
    private let loginChecks: OIDCChecklist?

    /// Checks URLs, lists and prefixes.
    public static func validate(_ configuration: OIDCConfiguration, into diagnostics: inout Diagnostics) {
        configuration.validate(into: &diagnostics)
    }

    /// What the gateway needs for it.
    public static func facts(_ configuration: OIDCConfiguration) -> ProviderFacts {
        var facts = ProviderFacts()
        facts.redirects = configuration.redirectLocation
        return facts
    }

    public init(_ configuration: OIDCConfiguration, context: ProviderContext) throws(ConfigurationError) {
        self.configuration = configuration
        self.context = context
        let headers = JWSHeaderCache()
        (keys, discovery) = Self.keys(configuration, context)
        introspector = configuration.introspection.map { Introspector($0, configuration, context, headers) }
        bearerChecks = OIDCChecklist(
            .bearer(demandsAccessToken: configuration.demandsAccessTokens), configuration,
            maximumAge: configuration.maximumAge.value, maximumTokenBytes: context.maximumTokenBytes, headers: headers)
        webChecks = configuration.web.map {
            OIDCChecklist(
                .identity(clients: [$0.client.id]), configuration, maximumAge: CodeFlow.maximumTokenAge,
                maximumTokenBytes: CodeFlow.maximumTokenBytes, headers: headers)
        }
        loginChecks = configuration.login.map {
            OIDCChecklist(
                .identity(clients: $0.clientIDs.elements), configuration, maximumAge: $0.maximumAge,
                maximumTokenBytes: context.maximumTokenBytes, headers: headers)
        }
    }

    private static func keys(
        _ configuration: OIDCConfiguration, _ context: ProviderContext
    ) -> (KeySource, Discovery?) {
        func discovery(
            _ onDocument: @escaping @Sendable (DiscoveryDocument) async -> Void, needsKeys: Bool
        ) -> Discovery {
            Discovery(
                issuer: configuration.issuer.value, context: context, timeout: configuration.timeout,
                needsKeys: needsKeys, onDocument: onDocument)
        }
        // For the endpoints alone.
        let other = configuration.needsDiscovery ? discovery({ _ in }, needsKeys: false) : nil
        switch configuration.keys {
        case .url(let url):
            return (.url(context.issuerKeys(at: url.value.text, allowing: configuration.algorithms)), other)
        case .file(let set): return (.file(set), other)
        case .discovered:
            let keys = DiscoveredKeys(context: context, algorithms: configuration.algorithms)
            let discovery = discovery({ await keys.adopt($0) }, needsKeys: true)
            return (.discovered(keys, by: discovery), discovery)
        }
    }

    public var accepts: [CredentialSource] {
        [.bearerJWT(issuers: configuration.issuers)] + configuration.prefixes.map { .bearerPrefix($0.value) }
    }

    /// One signature and a few hundred bytes of JSON; for an opaque token the result is that the issuer is asked.
    public var isQuick: Bool { true }

    /// Verifies with the cached keys; `undecided` for opaque tokens, and when a fetch may bring the key.
    public func verify(
        _ credential: Credential, in context: AuthenticationContext
    ) throws(AuthenticationError) -> LocalVerification {
        if let introspector, introspector.accepts(credential) { return .undecided }
        var log = CheckLog(recorded: false)
        do throws(OIDCError) {
            return .authenticated(try run(credential, .bearer, at: context.now, log: &log) { keys.lookup($0) }.identity)
        } catch {
            if case .undecided = error.kind { return .undecided }
            throw error.authenticationError
        }
    }

    /// Verifies, after a fetch if one is allowed and may bring the key; asks the issuer about an opaque token.
    public func authenticate(
        _ credential: Credential, in context: AuthenticationContext
    ) async throws(AuthenticationError) -> Identity {
        var log = CheckLog(recorded: false)
        return try await OIDCError.result(await identity(credential, in: context, log: &log))
    }

    private func identity(
        _ credential: Credential, in context: AuthenticationContext, log: inout CheckLog
    ) async throws(OIDCError) -> Identity {
        if let introspector, introspector.accepts(credential) {
            return try await introspector.run(credential, in: context, log: &log).identity
        }
        return try await verifyFetchingKey(credential, for: .bearer, at: context.now, log: &log).identity
    }

    /// What a token is presented for.
    enum Purpose { case bearer, web, login }

    /// Verifies with the cached keys, and again if the key had to be fetched.
    func verifyFetchingKey(
        _ credential: Credential, for purpose: Purpose, at now: UnixTime, log: inout CheckLog
    ) async throws(OIDCError) -> VerifiedClaims {
        let empty = log
        do throws(OIDCError) {
            return try run(credential, purpose, at: now, log: &log) { keys.lookup($0) }
        } catch {
            guard case .undecided(let id) = error.kind else { throw error }
            let fetched = await keys.resolve(id)
            log = empty
            do throws(OIDCError) {
                return try run(credential, purpose, at: now, log: &log) { _ in fetched }
            } catch {
                guard case .undecided(nil) = error.kind else { throw error }
                throw OIDCError(rejectedAfterFetch: error)
            }
        }
    }

    private func run(
        _ credential: Credential, _ purpose: Purpose, at now: UnixTime, log: inout CheckLog,
        lookup: (KeyID?) -> IssuerKeys.Lookup
    ) throws(OIDCError) -> VerifiedClaims {
        let checks: OIDCChecklist?
        switch purpose {
        case .bearer: checks = bearerChecks
        case .web: checks = webChecks
        case .login: checks = loginChecks
        }
        guard let checks else { throw OIDCError(.notFound, "login_not_configured", "logins are off") }
        return try credential.withBytes { (token) throws(OIDCError) in
            try checks.run(token, at: now, log: &log, lookup: lookup)
        }
    }
}

extension OIDCProvider: Explaining {
    /// Runs the same checks and reports the result of each; the issuer is asked about an opaque token.
    public func explain(_ credential: Credential, in context: AuthenticationContext) async -> [CheckOutcome] {
        var log = CheckLog(recorded: true)
        _ = try? await identity(credential, in: context, log: &log)
        return log.results
    }
}
