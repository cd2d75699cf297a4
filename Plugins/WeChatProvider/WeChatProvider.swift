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

    private let configuration: WeChatConfiguration
    private let context: ProviderContext
    private let client: WeChatClient
    private let figures = WeChatFigures()
    private let breaker = Breaker()
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

    /// Exchanges a code that was never sent before, or gives again what the same post got a moment ago.
    public func signIn(
        with form: SignInForm, in login: AuthenticationContext
    ) async throws(AuthenticationError) -> SignIn {
        let post = try LoginPost(form, configuration: configuration)
        try breaker.check(post.app.clientName, at: context.clock.monotonicTime)
        let deadline = login.deadline + (.zero - Self.reserve)
        guard client.hasTime(until: deadline) else { throw .noTime }
        let ledger = CodeLedger(post, context: context, pause: pause)
        do throws(AuthenticationError) {
            let signIn =
                switch try await ledger.claim(until: deadline) {
                case .first: try await exchange(post, ledger, at: login.now, until: deadline).get()
                case .repeated(let outcome): try outcome.get()
                }
            return SignIn(identity: signIn.identity, aliases: signIn.aliases, repetition: post.repetition)
        } catch {
            if error.code == AuthenticationError.codeReused.code {
                figures.recordReuse()
                context.logger.warning("a code came back", ("app", post.app.clientName), ("code", error.code.rawValue))
            }
            throw error
        }
    }

    /// Sends the code and keeps what comes of it, also when the client does not wait for it: its next try gets the answer.
    ///
    /// The task ends by the login's deadline.
    private func exchange(
        _ post: LoginPost, _ ledger: CodeLedger, at now: UnixTime, until deadline: MonotonicTime
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
