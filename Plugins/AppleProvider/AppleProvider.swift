public import MartletConfig
internal import MartletCore
internal import MartletJOSE
public import MartletProvider

/// Sign in with Apple: verifies identity tokens that are sent as bearer tokens or in a login.
public struct AppleProvider: LocallyVerifying {
    /// The type of the provider's configuration block.
    public typealias Configuration = AppleConfiguration

    public static let kind: ProviderKind = "apple"

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
            configuration: configuration, maximumAge: AppleNotification.maximumAge, headers: headers)
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
        do throws(AppleError) {
            return try await verifyFetchingKey(credential, for: .bearer, at: context.now, log: &log).identity
        } catch {
            throw Self.authenticationError(error)
        }
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
    /// Runs the same checks and reports the result of each.
    public func explain(_ credential: Credential, in context: AuthenticationContext) async -> [CheckOutcome] {
        var log = CheckLog(recorded: true)
        _ = try? await verifyFetchingKey(credential, for: .bearer, at: context.now, log: &log)
        return log.results
    }
}

extension AppleProvider: Running {
    /// Fetches Apple's keys and starts refreshing them.
    public func start() async { await keys.start() }
    /// Stops refreshing the keys.
    public func shutdown() async { await keys.stop() }
}

extension AppleProvider: Reporting {
    public var health: ProviderHealth { ProviderHealth(keys.status) }
}
