internal import MartletAccounts
internal import MartletConfig
internal import MartletCore
internal import MartletIO
internal import MartletProvider
internal import MartletRedis
internal import MartletSession
internal import MartletSignIn

/// `martlet user add|passwd|disable|enable|list`: the password users under `accounts:`.
struct UserCommand {
    private let action: UserAdministration.Action
    private let name: String
    private let configurationPath: String
    private let provider: String?
    private let registry: ProviderRegistry

    /// - Throws: when the words are not one of the actions and, but for `list`, one name.
    init(_ options: Options, _ registry: ProviderRegistry) throws(Options.UsageError) {
        guard let word = options.words.first, let action = UserAdministration.Action(rawValue: word) else {
            throw Options.UsageError(message: "say one of add, passwd, disable, enable, list")
        }
        let names = options.words.dropFirst()
        guard names.count == (action == .list ? 0 : 1) else {
            throw Options.UsageError(message: action == .list ? "list takes no name" : "\(word) needs the user's name")
        }
        self.action = action
        name = names.first ?? ""
        configurationPath = options["config"] ?? "config.yaml"
        provider = options["provider"]
        self.registry = registry
    }

    func run() async -> ExitCode {
        let (blueprint, diagnostics) = Blueprint.read(
            configurationPath, registry: registry, environment: SystemInformation.environment)
        for diagnostic in diagnostics.sorted { Output.error("\(diagnostic)\n") }
        guard let blueprint else { return .configuration }
        do throws(StartError) {
            for line in try await administer(blueprint) { Output.line(line) }
            return .ok
        } catch {
            Output.error("martlet user \(action): \(error)\n")
            return error.exit
        }
    }

    private func administer(_ blueprint: Blueprint) async throws(StartError) -> [String] {
        let maker = try maker(blueprint)
        guard let url = blueprint.configuration.accounts?.url.value else {
            throw StartError(
                code: "user.no_accounts",
                message: "users are kept under accounts:, which the configuration does not have",
                exit: .configuration)
        }
        let services = try Services(sink: LogSink.standardError(), level: .error)
        defer { services.shutdown() }
        let accounts = try await open(url, services)
        let redis = try await redis(blueprint, services)
        let desk = UserAdministration(
            accounts: accounts, maker: maker.making, provider: maker.name, clock: services.clock,
            sessions: redis.map { sessions(on: $0, blueprint, services) },
            fence: redis.map { LoginFence(store: $0, keyPrefix: blueprint.configuration.store.keyPrefix) })
        let outcome: Result<[String], StartError>
        do throws(StartError) {
            let name = name
            outcome = .success(
                try await desk.perform(action, name: name) { () throws(StartError) in try PasswordEntry.new(for: name) }
            )
        } catch {
            outcome = .failure(error)
        }
        redis?.shutdown()
        await accounts.shutdown()
        return try outcome.get()
    }

    /// The provider that makes users: the one that is named, or the only one.
    private func maker(_ blueprint: Blueprint) throws(StartError) -> (name: String, making: any UserMaking) {
        var makers: [(name: String, making: any UserMaking)] = []
        for prepared in blueprint.providers where provider == nil || prepared.name == provider {
            do throws(ConfigurationError) {
                let context = ProviderContext.detached(prepared.name, clock: .system, hasUsers: true)
                if let making = try prepared.build(context).userMaking { makers.append((prepared.name, making)) }
            } catch {
                throw StartError(code: error.code, message: error.description, exit: .configuration)
            }
        }
        guard let maker = makers.first else {
            let what = provider.map { "there is no provider '\($0)' that has users" } ?? "no provider has users"
            throw StartError(code: "user.no_provider", message: what, exit: provider == nil ? .configuration : .usage)
        }
        guard makers.count == 1 else {
            let names = makers.map { "'\($0.name)'" }.joined(separator: ", ")
            throw StartError(
                code: "user.many_providers", message: "say --provider with one of \(names)", exit: .usage)
        }
        return maker
    }

    private func open(_ url: String, _ services: Services) async throws(StartError) -> any AccountStoring {
        let store: any AccountStoring
        do throws(AccountError) {
            store = try Accounts.open(
                try AccountURL(url), clock: services.clock, logger: services.logger, loop: services.loop,
                resolver: services.resolver)
        } catch {
            throw StartError(code: error.code, message: error.message, exit: .configuration)
        }
        do throws(AccountError) {
            try await store.start()
        } catch {
            await store.shutdown()
            throw StartError(code: error.code, message: error.message, exit: .unavailable)
        }
        return store
    }

    /// The connection to the sessions of running gateways, for the actions that end some.
    ///
    /// Without it the user is changed all the same, and the end of the sessions fails.
    private func redis(_ blueprint: Blueprint, _ services: Services) async throws(StartError) -> RedisClient? {
        guard action.endsSessions, case .redis(let url) = blueprint.store else { return nil }
        do throws(StoreError) {
            let client = try RedisClient(
                url, options: RedisOptions(), loop: services.loop, resolver: services.resolver, clock: services.clock,
                logger: services.logger)
            client.start()
            try? await client.settle()
            return client
        } catch {
            throw StartError(code: error.code, message: error.message, exit: .configuration)
        }
    }

    private func sessions(on redis: RedisClient, _ blueprint: Blueprint, _ services: Services) -> SessionStore {
        var policy = SessionPolicy()
        policy.idleTimeout = blueprint.configuration.sessions.idleTimeout
        let backend = RedisSessions(client: redis, keyPrefix: blueprint.configuration.store.keyPrefix)
        return SessionStore(policy: policy, backend: backend, clock: services.clock) { _ in }
    }
}
