public import MartletConfig
internal import MartletCore
public import MartletProvider

/// Sign-in with WeChat: exchanges the code that an app, a page or a mini-program got for who the person is.
///
/// WeChat signs nothing and knows no proof of possession; all trust comes from our own call to it with our own secret.
public struct WeChatProvider: SigningIn {
    /// What its block is decoded to.
    public typealias Configuration = WeChatConfiguration

    public static let kind: ProviderKind = "wechat"

    /// What is left of a login's time for what comes after the provider.
    private static let reserve = Duration.milliseconds(500)

    let configuration: WeChatConfiguration
    private let context: ProviderContext
    let client: WeChatClient
    private let figures = WeChatFigures()
    private let breaker = Breaker()
    private let limit = ExchangeLimit()
    private let pause: @Sendable (Duration) async -> Void

    /// Checks apps and URLs.
    public static func validate(_ configuration: WeChatConfiguration, into diagnostics: inout Diagnostics) {
        configuration.validate(into: &diagnostics)
    }

    public init(_ configuration: WeChatConfiguration, context: ProviderContext) throws(ConfigurationError) {
        self.init(configuration, context: context) { try? await Task.sleep(for: $0) }
    }

    /// The same with a way of one's own to let time pass.
    init(
        _ configuration: WeChatConfiguration, context: ProviderContext,
        pause: @escaping @Sendable (Duration) async -> Void
    ) {
        self.configuration = configuration
        self.context = context
        self.pause = pause
        client = WeChatClient(context: context, timeout: configuration.timeout, figures: figures)
    }

    /// Each failed code is a call to WeChat that counts against the application's quota there.
    public var failureLimit: FailureLimit { FailureLimit(attempts: 120, window: .seconds(120)) }

    /// Exchanges a code that was never sent before, or gives again what the same post got a moment ago.
    public func signIn(
        with form: SignInForm, in login: AuthenticationContext
    ) async throws(AuthenticationError) -> SignIn {
        let post = try LoginPost(form, in: login, of: context.name, configuration: configuration)
        let deadline = login.deadline + (.zero - Self.reserve)
        guard client.hasTime(until: deadline) else { throw .noTime }
        let ledger = CodeLedger(post, context: context, pause: pause)
        do throws(AuthenticationError) {
            var outcome: Result<SignIn, AuthenticationError>?
            if try await !ledger.isClaimed() {
                outcome = try await send(post, ledger, at: login.now, until: deadline)
            }
            if outcome == nil { outcome = try await ledger.outcomeOfFirst(until: deadline) }
            guard let signIn = try outcome?.get() else { throw .outcomeUnknown }
            return SignIn(identity: signIn.identity, aliases: signIn.aliases, repetition: post.repetition)
        } catch {
            if error.code == AuthenticationError.codeReused.code {
                figures.recordReuse()
                context.logger.warning("a code came back", ("app", post.app.clientName), ("code", error.code.rawValue))
            }
            throw error
        }
    }

    /// Takes the code once it can be sent, and sends it.
    ///
    /// In this order: a code that is taken and not sent is lost to whoever it belongs to.
    /// - Returns: `nil` when another post has taken it meanwhile.
    private func send(
        _ post: LoginPost, _ ledger: CodeLedger, at now: UnixTime, until deadline: MonotonicTime
    ) async throws(AuthenticationError) -> Result<SignIn, AuthenticationError>? {
        guard limit.enter(post.app.clientName) else { throw .overloaded(nil) }
        defer { limit.leave(post.app.clientName) }
        let client = try await client.reserved(until: deadline)
        guard client.hasTime(until: deadline) else { throw .noTime }
        try breaker.check(post.app.clientName, at: context.clock.monotonicTime)
        guard try await ledger.claim() else { return nil }
        return await exchange(post, ledger, client, at: now, until: deadline)
    }

    /// Sends the code and keeps what comes of it, also when the client does not wait for it: its next try gets the answer.
    ///
    /// The task ends by the login's deadline.
    private func exchange(
        _ post: LoginPost, _ ledger: CodeLedger, _ client: WeChatClient, at now: UnixTime,
        until deadline: MonotonicTime
    ) async -> Result<SignIn, AuthenticationError> {
        await Task { () -> Result<SignIn, AuthenticationError> in
            let exchange = Exchange(
                configuration: configuration, endpoints: WeChatEndpoints(configuration.baseURL.value), client: client,
                context: context, now: now, deadline: deadline)
            let outcome: Result<SignIn, AuthenticationError>
            do throws(AuthenticationError) { outcome = .success(try await exchange.run(post)) } catch {
                outcome = .failure(error)
            }
            breaker.record(outcome.failure, for: post.app.clientName, at: context.clock.monotonicTime)
            await ledger.settle(outcome)
            return outcome
        }.value
    }
}

extension WeChatProvider: Reporting {
    public var health: ProviderHealth { figures.health(at: context.clock.monotonicTime) }
}

extension Result {
    fileprivate var failure: Failure? {
        if case .failure(let error) = self { error } else { nil }
    }
}
