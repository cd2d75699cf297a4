public import MartletConfig
internal import MartletCore
internal import MartletJOSE
public import MartletProvider

/// Sign in with Apple: judges identity tokens that come as bearer tokens or in a login.
public struct AppleProvider: LocallyVerifying {
    /// What its block is decoded to.
    public typealias Configuration = AppleConfiguration

    public static let kind: ProviderKind = "apple"

    let configuration: AppleConfiguration
    let context: ProviderContext
    private let keys: IssuerKeys
    private let bearerChecks: TokenChecklist
    private let loginChecks: TokenChecklist

    /// Checks URLs and lists.
    public static func validate(_ configuration: AppleConfiguration, into diagnostics: inout Diagnostics) {
        configuration.validate(into: &diagnostics)
    }

    public init(_ configuration: AppleConfiguration, context: ProviderContext) throws(ConfigurationError) {
        self.configuration = configuration
        self.context = context
        keys = context.issuerKeys(at: configuration.jwksURL.value.text, allowing: configuration.algorithms)
        let headers = JWSHeaderMemory()
        bearerChecks = TokenChecklist(
            configuration: configuration, maximumAge: configuration.maximumAge, headers: headers)
        loginChecks = TokenChecklist(
            configuration: configuration, maximumAge: configuration.loginMaximumAge, headers: headers)
    }

    public var accepts: [CredentialSource] { [.bearerJWT(issuers: configuration.issuers.map(\.value))] }

    /// One signature and a few hundred bytes of JSON.
    public var isQuick: Bool { true }

    /// Judges with the keys in memory; `undecided` when a fetch may bring the key.
    public func verify(
        _ credential: Credential, in context: AuthenticationContext
    ) throws(AuthenticationError) -> LocalVerdict {
        var trail = CheckTrail(recorded: false)
        do throws(Refusal) {
            return .authenticated(
                try judge(credential, for: .bearer, at: context.now, trail: &trail) { keys.lookup($0) }.identity)
        } catch {
            if case .undecided = error.kind { return .undecided }
            throw Self.error(error)
        }
    }

    /// Judges, after a fetch if one is allowed and may bring the key.
    public func authenticate(
        _ credential: Credential, in context: AuthenticationContext
    ) async throws(AuthenticationError) -> Identity {
        var trail = CheckTrail(recorded: false)
        do throws(Refusal) {
            return try await settle(credential, for: .bearer, at: context.now, trail: &trail).identity
        } catch {
            throw Self.error(error)
        }
    }

    /// What a token is good for.
    enum Use { case bearer, login }

    /// Judges with the keys at hand, and once more if one had to be fetched.
    func settle(
        _ credential: Credential, for use: Use, at now: UnixTime, trail: inout CheckTrail
    ) async throws(Refusal) -> CheckedToken {
        let empty = trail
        do throws(Refusal) {
            return try judge(credential, for: use, at: now, trail: &trail) { keys.lookup($0) }
        } catch {
            guard case .undecided(let id) = error.kind else { throw error }
            let settled = await keys.settle(id)
            trail = empty
            return try judge(credential, for: use, at: now, trail: &trail) { _ in settled }
        }
    }

    private func judge(
        _ credential: Credential, for use: Use, at now: UnixTime, trail: inout CheckTrail,
        lookup: (KeyID) -> IssuerKeys.Lookup
    ) throws(Refusal) -> CheckedToken {
        try credential.withBytes { (token) throws(Refusal) in
            switch use {
            case .bearer: try bearerChecks.run(token, at: now, trail: &trail, lookup: lookup)
            case .login: try loginChecks.run(token, at: now, trail: &trail, lookup: lookup)
            }
        }
    }

    static func error(_ refusal: Refusal) -> AuthenticationError {
        switch refusal.kind {
        case .rejected: .rejected(refusal.code, cause: refusal)
        case .undecided, .unavailable: .unavailable(refusal.code, cause: refusal)
        }
    }
}

extension AppleProvider: Explaining {
    /// Runs the same checks, and tells how each went.
    public func explain(_ credential: Credential, in context: AuthenticationContext) async -> [CheckVerdict] {
        var trail = CheckTrail(recorded: true)
        _ = try? await settle(credential, for: .bearer, at: context.now, trail: &trail)
        return trail.verdicts
    }
}

extension AppleProvider: Running {
    /// Gets Apple's keys and begins to keep them fresh.
    public func start() async { await keys.start() }
    /// Ends that.
    public func shutdown() async { await keys.stop() }
}

extension AppleProvider: Reporting {
    public var health: ProviderHealth {
        let status = keys.status
        let state: ProviderHealth.State = status.source == .none ? .unavailable : status.isStale ? .degraded : .ready
        return ProviderHealth(state: state, detail: Self.detail(of: status), gauges: Self.gauges(of: status))
    }

    private static func detail(of status: IssuerKeysStatus) -> String {
        let names = status.keyIDs.map(\.text).joined(separator: " ")
        let age = status.age.map { ", \($0.wholeSeconds) s old" } ?? ""
        let error = status.lastError.map { ", last refresh: \($0)" } ?? ""
        return status.source == .none
            ? "no keys\(error)" : "keys \(names) from the \(status.source.rawValue)\(age)\(error)"
    }

    private static func gauges(of status: IssuerKeysStatus) -> [ProviderHealth.Gauge] {
        var gauges: [ProviderHealth.Gauge] = [
            .init(
                name: "jwks_keys", help: "Keys of the issuer in use.", kind: .gauge, value: Double(status.keyIDs.count)),
            .init(
                name: "jwks_fetches_total", help: "Requests for the issuer's keys.", kind: .counter,
                value: Double(status.fetches)),
            .init(
                name: "jwks_failures_total", help: "Failed refreshes of the issuer's keys.", kind: .counter,
                value: Double(status.failures)),
        ]
        if let age = status.age {
            gauges.append(
                .init(
                    name: "jwks_age_seconds", help: "Time since the issuer gave out the keys in use.", kind: .gauge,
                    value: Double(age.wholeMilliseconds) / 1000))
        }
        return gauges
    }
}
