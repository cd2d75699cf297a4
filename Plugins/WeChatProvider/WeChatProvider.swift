public import MartletConfig
internal import MartletCore
public import MartletProvider

/// Sign-in with WeChat: exchanges the code of an app, a page or a mini-program for the user's identity.
///
/// WeChat signs nothing and has no proof of possession; all trust comes from the gateway's own call with the app's
/// secret.
public struct WeChatProvider: SigningIn {
    /// The type of the provider's configuration block.
    public typealias Configuration = WeChatConfiguration

    public static let kind: ProviderKind = "wechat"

    /// The part of a login's time that is reserved for the steps after the provider.
    private static let reserve = Duration.milliseconds(500)

    let configuration: WeChatConfiguration
    private let context: ProviderContext
    let client: WeChatClient
    private let tokens: AccountTokens
    private let metrics = WeChatMetrics()
    private let breaker = CircuitBreaker()
    private let limit = ExchangeLimit()
    private let sleep: @Sendable (Duration) async -> Void

    /// Checks the apps and URLs.
    public static func validate(_ configuration: WeChatConfiguration, into diagnostics: inout Diagnostics) {
        configuration.validate(into: &diagnostics)
    }

    /// What the gateway needs for it.
    public static func facts(_ configuration: WeChatConfiguration) -> ProviderFacts {
        var facts = ProviderFacts()
        facts.redirects = configuration.redirectLocation
        return facts
    }

    public init(_ configuration: WeChatConfiguration, context: ProviderContext) throws(ConfigurationError) {
        self.init(configuration, context: context) { try? await Task.sleep(for: $0) }
    }

    /// - Parameter sleep: replaced in tests.
    init(
        _ configuration: WeChatConfiguration, context: ProviderContext,
        sleep: @escaping @Sendable (Duration) async -> Void
    ) {
        self.configuration = configuration
        self.context = context
        self.sleep = sleep
        tokens = AccountTokens(context: context, sleep: sleep)
        client = WeChatClient(context: context, timeout: configuration.timeout, metrics: metrics)
    }

    /// Each failed code costs a call to WeChat that counts against the application's quota.
    public var failureLimit: FailureLimit { FailureLimit(attempts: 120, window: .seconds(120)) }

    /// Exchanges a code that was never sent before, or returns the result of an identical request a moment ago.
    public func signIn(
        with form: SignInForm, in login: AuthenticationContext
    ) async throws(AuthenticationError) -> SignIn {
        try await signIn(
            with: try LoginRequest(form, in: login, of: context.name, configuration: configuration), in: login)
    }

    /// A request with the code of a page.
    /// - Throws: `rejected` for what is not written as a code.
    func makeRequest(
        _ app: WeChatConfiguration.NamedApp, _ code: Secret, in login: AuthenticationContext
    ) throws(AuthenticationError) -> LoginRequest {
        try LoginRequest(app, code, in: login, of: context.name)
    }

    func signIn(
        with request: LoginRequest, in login: AuthenticationContext
    ) async throws(AuthenticationError) -> SignIn {
        let deadline = login.deadline + (.zero - Self.reserve)
        guard client.hasTime(until: deadline) else { throw .noTime }
        let ledger = CodeLedger(request, context: context, sleep: sleep)
        do throws(AuthenticationError) {
            var outcome: Result<SignIn, AuthenticationError>?
            var isFresh = true
            if try await !ledger.isClaimed() {
                outcome = try await send(request, ledger, at: login.now, until: deadline)
            }
            if outcome == nil {
                isFresh = false
                outcome = try await ledger.outcomeOfFirst(until: deadline)
            }
            guard let signIn = try outcome?.get() else { throw .outcomeUnknown }
            return SignIn(
                identity: signIn.identity, aliases: signIn.aliases, repetition: request.repetition, isFresh: isFresh,
                aliasesDecide: signIn.aliasesDecide, unlessKnown: signIn.unlessKnown)
        } catch {
            if error.code == AuthenticationError.codeReused.code {
                metrics.recordReuse()
                context.logger.warning(
                    "login code reused", ("app", request.app.clientName), ("code", error.code.rawValue))
            }
            throw error
        }
    }

    /// Claims the code once it can be sent, and sends it.
    ///
    /// In this order: a code that is claimed but not sent is lost to its user.
    /// - Returns: `nil` when another request has claimed it meanwhile.
    private func send(
        _ request: LoginRequest, _ ledger: CodeLedger, at now: UnixTime, until deadline: MonotonicTime
    ) async throws(AuthenticationError) -> Result<SignIn, AuthenticationError>? {
        guard limit.acquire(request.app.clientName, for: request.owner) else { throw .overloaded(nil) }
        defer { limit.release(request.app.clientName, for: request.owner) }
        let client = try await client.reserved(until: deadline)
        guard client.hasTime(until: deadline) else { throw .noTime }
        try breaker.check(request.app.clientName, at: context.clock.monotonicTime)
        guard try await ledger.claim() else { return nil }
        return await exchange(request, ledger, client, at: now, until: deadline)
    }

    /// Sends the code and stores the outcome, even if the client has disconnected: its next attempt gets the result.
    ///
    /// The task ends by the login's deadline.
    private func exchange(
        _ request: LoginRequest, _ ledger: CodeLedger, _ client: WeChatClient, at now: UnixTime,
        until deadline: MonotonicTime
    ) async -> Result<SignIn, AuthenticationError> {
        await Task { () -> Result<SignIn, AuthenticationError> in
            let exchange = CodeExchange(
                configuration: configuration, endpoints: WeChatEndpoints(configuration.baseURL.value), client: client,
                tokens: tokens, context: context, now: now, deadline: deadline)
            let outcome: Result<SignIn, AuthenticationError>
            do throws(AuthenticationError) { outcome = .success(try await exchange.run(request)) } catch {
                outcome = .failure(error)
            }
            breaker.record(outcome.failure, for: request.app.clientName, at: context.clock.monotonicTime)
            await ledger.complete(outcome)
            return outcome
        }.value
    }
}

extension WeChatProvider: Reporting {
    public var health: ProviderHealth { metrics.health(at: context.clock.monotonicTime) }
}

extension Result {
    fileprivate var failure: Failure? { if case .failure(let error) = self { error } else { nil } }
}
