public import MartletConfig
public import MartletCore
internal import MartletJOSE
public import MartletProvider

/// Sign in with Apple: verifies identity tokens that are sent as bearer tokens or in a login.
public struct AppleProvider: LocallyVerifying {
    /// The type of the provider's configuration block.
    public typealias Configuration = AppleConfiguration

    public static let kind: ProviderKind = "apple"

    /// The longest that a start waits for the probe of the key.
    private static let probeTimeout = Duration.seconds(2)

    let configuration: AppleConfiguration
    let context: ProviderContext
    /// `nil` without a key of the developer account.
    let client: AppleClient?
    /// `nil` without a key of the developer account.
    let migration: MigrationCaller?
    private let keys: IssuerKeys
    private let bearerChecks: TokenChecklist
    private let loginChecks: TokenChecklist
    private let notificationChecks: TokenChecklist

    /// Checks the URLs and lists.
    public static func validate(_ configuration: AppleConfiguration, into diagnostics: inout Diagnostics) {
        configuration.validate(into: &diagnostics)
    }

    /// What the gateway needs for it.
    public static func facts(_ configuration: AppleConfiguration) -> ProviderFacts {
        var facts = ProviderFacts()
        facts.grants = configuration.developer?.location
        facts.notifications = configuration.notificationsLocation
        facts.transfers = configuration.migration?.location
        facts.redirects = configuration.redirectLocation
        return facts
    }

    public init(_ configuration: AppleConfiguration, context: ProviderContext) throws(ConfigurationError) {
        self.configuration = configuration
        self.context = context
        client = configuration.developer.map { developer in
            let secrets = ClientSecrets(
                team: developer.team, key: developer.key, audience: configuration.issuers.first.value)
            return AppleClient(
                context, endpoints: AppleEndpoints(base: configuration.baseURL.value.text),
                timeout: configuration.timeout, secrets: secrets)
        }
        migration = client.map { MigrationCaller($0, clientID: configuration.audiences.first.value, context.clock) }
        keys = context.issuerKeys(at: configuration.jwksURL.value.text, allowing: configuration.algorithms)
        let headers = JWSHeaderCache()
        bearerChecks = TokenChecklist(
            configuration: configuration, maximumAge: configuration.maximumAge, headers: headers)
        loginChecks = TokenChecklist(
            configuration: configuration, maximumAge: configuration.loginMaximumAge, headers: headers)
        notificationChecks = TokenChecklist(
            configuration: configuration, maximumAge: AppleNotification.maximumAge, headers: headers,
            // Some are for the team and not for one of its apps; their users have the same subject in all of them.
            furtherAudiences: configuration.developer.map { [$0.team] } ?? [])
    }

    public var accepts: [CredentialSource] { [.bearerJWT(issuers: configuration.issuers.map(\.value))] }

    /// One signature and a few hundred bytes of JSON.
    public var isQuick: Bool { true }

    /// Verifies with the cached keys; `undecided` when a fetch may bring the key.
    public func verify(
        _ credential: Credential, in context: AuthenticationContext
    ) throws(AuthenticationError) -> LocalVerification {
        var log = CheckLog(recorded: false)
        do throws(AppleError) {
            return .authenticated(
                try verifyToken(credential, for: .bearer, at: context.now, log: &log) { keys.lookup($0) }.identity)
        } catch {
            if case .undecided = error.kind { return .undecided }
            throw Self.authenticationError(error)
        }
    }

    /// Verifies, after a fetch if one is allowed and may bring the key.
    public func authenticate(
        _ credential: Credential, in context: AuthenticationContext
    ) async throws(AuthenticationError) -> Identity {
        var log = CheckLog(recorded: false)
        return try await Self.result(
            await verifyFetchingKey(credential, for: .bearer, at: context.now, log: &log).identity)
    }

    /// What a token is presented for.
    enum Purpose { case bearer, login }

    /// Verifies a notification, after a fetch if one is allowed and may bring the key.
    func verifyNotification(_ token: [UInt8], at now: UnixTime) async throws(AppleError) -> AppleClaims {
        do throws(AppleError) {
            return try notificationChecks.runNotification(token, at: now) { keys.lookup($0) }
        } catch {
            guard case .undecided(let id) = error.kind else { throw error }
            let fetched = await keys.resolve(id)
            return try notificationChecks.runNotification(token, at: now) { _ in fetched }
        }
    }

    /// Verifies with the cached keys, and again if the key had to be fetched.
    func verifyFetchingKey(
        _ credential: Credential, for purpose: Purpose, at now: UnixTime, log: inout CheckLog
    ) async throws(AppleError) -> VerifiedToken {
        let empty = log
        do throws(AppleError) {
            return try verifyToken(credential, for: purpose, at: now, log: &log) { keys.lookup($0) }
        } catch {
            guard case .undecided(let id) = error.kind else { throw error }
            let fetched = await keys.resolve(id)
            log = empty
            return try verifyToken(credential, for: purpose, at: now, log: &log) { _ in fetched }
        }
    }

    private func verifyToken(
        _ credential: Credential, for purpose: Purpose, at now: UnixTime, log: inout CheckLog,
        lookup: (KeyID) -> IssuerKeys.Lookup
    ) throws(AppleError) -> VerifiedToken {
        try credential.withBytes { (token) throws(AppleError) in
            switch purpose {
            case .bearer: try bearerChecks.run(token, at: now, log: &log, lookup: lookup)
            case .login: try loginChecks.run(token, at: now, log: &log, lookup: lookup)
            }
        }
    }

    /// A result for the core, to which errors are those of any provider.
    static func result<Value>(
        _ value: @autoclosure () async throws(AppleError) -> Value
    ) async throws(AuthenticationError) -> Value {
        do throws(AppleError) { return try await value() } catch { throw authenticationError(error) }
    }

    static func authenticationError(_ error: AppleError) -> AuthenticationError {
        switch error.kind {
        case .rejected: .rejected(error.code, cause: error)
        case .incomplete(let member): .malformed(error.code, BodyError(member, .missing))
        case .undecided, .unavailable: .unavailable(error.code, cause: error)
        case .throttled: .unavailable(error.code, retryAfter: .seconds(60), cause: error)
        case .shareUsedUp: .throttled(error.code, retryAfter: StoreError.shareRetryAfter)
        }
    }
}

extension AppleProvider: Explaining {
    /// Runs the same checks, those of a request or those of a login, and reports the result of each.
    public func explain(_ credential: Credential, in context: AuthenticationContext) async -> [CheckOutcome] {
        var log = CheckLog(recorded: true)
        let purpose = context.purpose == .request ? Purpose.bearer : .login
        let token = try? await verifyFetchingKey(credential, for: purpose, at: context.now, log: &log)
        var results = log.results
        if purpose == .login, let token { results.append(explainNonce(of: token)) }
        return results
    }

    /// What the body of a login has to have beside the token.
    private func explainNonce(of token: VerifiedToken) -> CheckOutcome {
        let form = configuration.nonceForm(of: token.audience)
        let detail =
            switch (token.claims.has(.nonce), configuration.nonce) {
            case (_, .off): "not looked at"
            case (true, _): "the login has to send `nonce`, and the token its form \(form.rawValue)"
            case (false, .optional): "the token has none, so the login must not send one"
            case (false, .required): "missing"
            }
        let isMissing = !token.claims.has(.nonce) && configuration.nonce == .required
        return CheckOutcome(check: "nonce", failure: isMissing ? AppleError.nonceMissing.code : nil, detail: detail)
    }
}

extension AppleProvider: Running {
    /// Fetches Apple's keys and starts refreshing them; meanwhile, asks whether Apple accepts the developer's key.
    public func start() async {
        async let probe: Void = probeKey()
        await keys.start()
        await probe
    }

    /// Stops refreshing the keys.
    public func shutdown() async { await keys.stop() }

    /// A key that Apple does not accept would be noticed by the first user otherwise.
    private func probeKey() async {
        let deadline = context.clock.monotonicTime + min(configuration.timeout, Self.probeTimeout)
        _ = await client?.probe(for: configuration.audiences.first.value, until: deadline)
    }
}

extension AppleProvider: Reporting {
    public var health: ProviderHealth {
        let health = ProviderHealth(keys.status)
        guard let problem = client?.keyProblem else { return health }
        return ProviderHealth(
            state: health.state == .ready ? .degraded : health.state, detail: "\(problem); \(health.detail)",
            gauges: health.gauges)
    }
}

extension AppleProvider: OnlineChecking {
    /// Fetches Apple's keys, and asks with a made-up code whether Apple accepts the developer's key for each client.
    public func checkOnline(until deadline: MonotonicTime) async -> [CheckOutcome] {
        await keys.start()
        let health = ProviderHealth(keys.status)
        await keys.stop()
        var results = [
            CheckOutcome(
                check: "keys", failure: health.state == .ready ? nil : "apple.keys_unavailable", detail: health.detail)
        ]
        guard let client else { return results }
        for audience in configuration.audiences {
            results.append(await client.probe(for: audience.value, until: deadline))
        }
        return results
    }
}
