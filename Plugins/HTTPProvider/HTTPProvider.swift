public import MartletConfig
internal import MartletCore
internal import MartletCrypto
internal import MartletJSON
public import MartletProvider

/// Lets a service of one's own verify credentials, by a call for each one: any language, a process of its own.
public struct HTTPProvider: RequestInspecting, Selective, SigningIn {
    /// The type of the provider's configuration block.
    public typealias Configuration = HTTPConfiguration

    public static let kind: ProviderKind = "http"

    /// When an identity expires of which the service does not say it: never, as far as anyone is concerned.
    private static let never = UnixTime(seconds: 253_402_300_799)

    private let configuration: HTTPConfiguration
    private let context: ProviderContext
    private let client: VerifyClient
    private let state: CallState

    /// Checks across fields.
    public static func validate(_ configuration: Configuration, into diagnostics: inout Diagnostics) {
        configuration.validate(into: &diagnostics)
    }

    public init(_ configuration: Configuration, context: ProviderContext) throws(ConfigurationError) {
        self.configuration = configuration
        self.context = context
        client = VerifyClient(configuration, context)
        state = CallState(configuration.circuit)
        accepts = configuration.accepts.map(\.source.value)
    }

    public let accepts: [CredentialSource]

    public var reuseKey: Set<RequestPart> { configuration.cacheKey }

    public var acceptsSignIn: Bool { configuration.signIn }

    /// Asks the service, unless it has said lately that this credential is not valid.
    public func authenticate(
        _ credential: Credential, in request: AuthenticationContext
    ) async throws(AuthenticationError) -> Identity {
        guard let call = VerifyCall(credential, accepts) else { throw .rejected(.httpNotText) }
        let digest = digest(of: credential, call.kind, in: request)
        if state.rejects(digest, at: context.clock.monotonicTime) { throw .rejected(.httpInactive) }
        switch try await ask(call, isRepeatable: true, in: request) {
        case .active(let response): return try identity(of: response, at: request.now)
        case .denied: throw .denied(.httpDenied)
        case .unreadable: throw .rejected(.httpBadRequest)
        case .inactive(let code, let reuse):
            let seconds = reusableSeconds(reuse)
            if seconds > 0 { state.add(digest, until: context.clock.monotonicTime + .seconds(seconds)) }
            throw .rejected(.httpInactive, cause: code.map(ServiceReason.init))
        }
    }

    /// Sends the members of the body to the service.
    public func signIn(
        with form: SignInForm, in request: AuthenticationContext
    ) async throws(AuthenticationError) -> SignIn {
        // What it has may be single-use.
        switch try await ask(VerifyCall(form), isRepeatable: false, in: request) {
        case .active(let response): return SignIn(identity: try identity(of: response, at: request.now))
        case .denied: throw .denied(.httpDenied)
        case .unreadable(let errors): throw AuthenticationError(.httpBadRequest, .malformed, bodyErrors: errors)
        case .inactive(let code, _): throw .rejected(.httpInactive, cause: code.map(ServiceReason.init))
        }
    }

    private func ask(
        _ call: VerifyCall, isRepeatable: Bool, in request: AuthenticationContext
    ) async throws(AuthenticationError) -> VerifyResponse {
        guard state.admits(at: context.clock.monotonicTime) else { throw .unavailable(.httpCircuitOpen) }
        let body = call.body(in: request, provider: context.name)
        let outcome = await client.send(body, isRepeatable: isRepeatable, until: request.deadline)
        if state.record(outcome, at: context.clock.monotonicTime), let reason = outcome.malformed {
            context.logger.info("response of the service is not usable", ("reason", reason))
        }
        return try outcome.result.get()
    }

    private func identity(
        of response: VerifyResponse.Active, at now: UnixTime
    ) throws(AuthenticationError) -> Identity {
        if let end = response.expiresAt, end <= now { throw .rejected(.httpExpired) }
        let seconds = reusableSeconds(response.reuse)
        return Identity(
            providerSubject: response.subject, issuer: response.issuer ?? configuration.address.value.issuer,
            claims: response.claims, authTime: response.authTime ?? now, issuedAt: response.authTime ?? now,
            expiresAt: response.expiresAt ?? Self.never, reusableUntil: now.advanced(bySeconds: seconds),
            subjectSource: configuration.subjectSource)
    }

    /// How long a response may be reused: not at all if the service decided by more of the request than is configured.
    private func reusableSeconds(_ reuse: VerifyResponse.Reuse) -> Int64 {
        guard configuration.cache.usesResponse, reuse.parts.isSubset(of: configuration.cacheKey) else { return 0 }
        return min(reuse.seconds, configuration.cache.maximum.wholeSeconds)
    }

    private func digest(
        of credential: Credential, _ kind: VerifyCall.Kind, in request: AuthenticationContext
    ) -> [UInt8] {
        var text = Array("\(kind.rawValue) ".utf8)
        for part in RequestPart.allCases where configuration.cacheKey.contains(part) {
            let value = Array((request.request?.text(of: part) ?? "").utf8)
            text += Array("\(value.count) ".utf8) + value
        }
        return SHA256.digest(credential.withBytes { text + $0 })
    }
}

/// What the service says about its reason, for the log.
struct ServiceReason: Error, CustomStringConvertible {
    let code: String

    var description: String { "the service says \(code)" }
}

/// What concurrent calls share: the circuit, the rejections, and counts.
final class CallState: Sendable {
    private struct Values {
        var circuit: Circuit
        var rejections = RejectionCache()
        /// When a response that is not usable may be logged again.
        var nextLine = MonotonicTime(nanoseconds: .min)
        var calls = 0
        var failures = 0
    }

    private static let logInterval = Duration.seconds(10)

    private let values: Lock<Values>

    init(_ block: HTTPConfiguration.CircuitBlock) {
        values = Lock(Values(circuit: Circuit(failures: block.failures, open: block.open)))
    }

    func rejects(_ digest: [UInt8], at now: MonotonicTime) -> Bool {
        values.withLock { $0.rejections.contains(digest, at: now) }
    }

    func add(_ digest: [UInt8], until end: MonotonicTime) { values.withLock { $0.rejections.add(digest, until: end) } }

    func admits(at now: MonotonicTime) -> Bool {
        values.withLock { values in
            guard values.circuit.admits(at: now) else { return false }
            values.calls += 1
            return true
        }
    }

    /// Records the outcome of a call.
    /// - Returns: whether a response that is not usable is to be logged: clients cause as many of them as they like.
    func record(_ outcome: VerifyOutcome, at now: MonotonicTime) -> Bool {
        values.withLock { values in
            if outcome.isFailure { values.failures += 1 }
            switch outcome.service {
            case .works: values.circuit.record(isFailure: false, at: now)
            case .fails: values.circuit.record(isFailure: true, at: now)
            case .unknown: break
            }
            guard outcome.malformed != nil, now >= values.nextLine else { return false }
            values.nextLine = now + Self.logInterval
            return true
        }
    }

    /// The health, for operators.
    var health: ProviderHealth {
        let (isOpen, calls, failures, rejections) = values.withLock {
            ($0.circuit.isOpen, $0.calls, $0.failures, $0.rejections.count)
        }
        return ProviderHealth(
            state: isOpen ? .unavailable : .ready,
            detail: isOpen ? "not called after failures in a row" : "\(calls) calls",
            gauges: [
                .init(name: "calls", help: "Calls of the service.", kind: .counter, value: Double(calls)),
                .init(
                    name: "call_failures", help: "Calls without a response.", kind: .counter, value: Double(failures)),
                .init(
                    name: "circuit_open", help: "1 while the service is not called.", kind: .gauge,
                    value: isOpen ? 1 : 0),
                .init(
                    name: "cached_rejections", help: "Credentials that are rejected without a call.", kind: .gauge,
                    value: Double(rejections)),
            ])
    }
}

extension HTTPProvider: Throttling {
    /// Rejects the credentials of a network that has as many calls under way as it may have.
    public func rejection(of client: ClientNetwork) -> AuthenticationError? {
        context.http.hasCapacity(for: client.workOwner) ? nil : .unavailable(.httpOverloaded, retryAfter: .seconds(1))
    }

    /// Rejects the same logins.
    public func rejection(ofLoginFrom client: ClientNetwork?) -> AuthenticationError? { client.flatMap(rejection(of:)) }
}

extension HTTPProvider: Reporting {
    public var health: ProviderHealth { state.health }
}

extension HTTPProvider: Explaining {
    /// One call, and what follows from its response.
    public func explain(_ credential: Credential, in request: AuthenticationContext) async -> [CheckOutcome] {
        do throws(AuthenticationError) {
            let identity = try await authenticate(credential, in: request)
            return [
                CheckOutcome(
                    check: "response", failure: nil, detail: "active; reusable until \(identity.reusableUntil)")
            ]
        } catch {
            return [CheckOutcome(check: "response", failure: error.code, detail: error.cause.map { "\($0)" } ?? "")]
        }
    }
}
