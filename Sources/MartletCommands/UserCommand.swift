internal import MartletAccounts
internal import MartletConfig
internal import MartletCore
internal import MartletProvider
internal import MartletRedis
internal import MartletServer
internal import MartletSession
internal import MartletSignIn

/// `martlet user add|passwd|disable|enable|list`: manages the password users in `accounts:`.
struct UserCommand {
    private let action: UserAdministration.Action
    private let name: String
    private let configurationPath: String
    private let provider: String?
    private let registry: ProviderRegistry

    /// - Throws: `UsageError` unless the words are an action and, except for `list`, one name.
    init(_ options: Options, _ registry: ProviderRegistry) throws(Options.UsageError) {
        guard let word = options.words.first, let action = UserAdministration.Action(rawValue: word) else {
            let words = UserAdministration.Action.allCases.map(\.rawValue)
            let hint = Suggestion.phrase(for: options.words.first ?? "", among: words)
            throw Options.UsageError(message: "expected one of \(words.joined(separator: ", "))\(hint)")
        }
        let names = options.words.dropFirst()
        guard names.count == (action == .list ? 0 : 1) else {
            throw Options.UsageError(
                message: action == .list ? "list takes no name" : "\(word) requires the user's name")
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
        Output.report(diagnostics)
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
        let services = try Services(sink: LogSink.standardError(), level: .error)
        defer { services.shutdown() }
        let accounts = try await open(blueprint, services)
        let outcome: Result<[String], StartError>
        do throws(StartError) {
            let store = try await store(blueprint, services)
            defer { store?.shutdown() }
            let administration = UserAdministration(
                accounts: accounts, maker: maker.making, provider: maker.name, clock: services.clock,
                sessions: store.map { sessions(in: $0, blueprint, services) },
                fence: store.map { LoginFence(store: $0.values, keyPrefix: $0.label.prefix) },
                invalidateDecisions: { await store?.notifyOthers($0) })
            let name = name
            outcome = .success(
                try await administration.perform(action, name: name) { () throws(StartError) in
                    try PasswordEntry.new(for: name)
                })
        } catch {
            outcome = .failure(error)
        }
        await accounts.shutdown()
        return try outcome.get()
    }

    /// The provider that creates users: the one of `--provider`, or the only one.
    private func maker(_ blueprint: Blueprint) throws(StartError) -> (name: String, making: any UserCreating) {
        var makers: [(name: String, making: any UserCreating)] = []
        for prepared in blueprint.providers where provider == nil || prepared.name == provider {
            do throws(ConfigurationError) {
                let context = ProviderContext.detached(prepared.name, clock: .system, hasUsers: true)
                guard let making = try prepared.build(context).userCreating, making.storesRecords else { continue }
                makers.append((prepared.name, making))
            } catch {
                throw StartError(code: error.code, message: error.description, exit: .configuration)
            }
        }
        guard let maker = makers.first else {
            let what = provider == nil ? "no provider stores users" : "the provider of --provider does not store users"
            throw StartError(
                code: "user.no_provider", message: "\(what) in accounts:",
                exit: provider == nil ? .configuration : .usage)
        }
        guard makers.count == 1 else {
            let names = makers.map { "'\($0.name)'" }.joined(separator: ", ")
            throw StartError(
                code: "user.many_providers", message: "--provider is required: one of \(names)", exit: .usage)
        }
        return maker
    }

    private func open(_ blueprint: Blueprint, _ services: Services) async throws(StartError) -> any AccountStoring {
        guard let accounts = try OpenAccounts.make(blueprint.configuration.accounts, services, previous: nil) else {
            throw StartError(
                code: "user.no_accounts",
                message: "users are stored in accounts:, which the configuration does not have", exit: .configuration)
        }
        do throws(AccountError) {
            try await accounts.store.start()
        } catch {
            await accounts.store.shutdown()
            throw StartError(code: error.code, message: error.message, exit: .unavailable)
        }
        return accounts.store
    }

    /// The store of running gateways, for the actions that end sessions; `nil` for `memory:`.
    ///
    /// While it is unavailable, the user is changed nevertheless, and ending the sessions fails.
    private func store(_ blueprint: Blueprint, _ services: Services) async throws(StartError) -> SharedStore? {
        guard action.endsSessions, case .redis = blueprint.store else { return nil }
        let store = try SharedStore.make(blueprint, services, CacheInvalidator(logger: services.logger))
        try? await store.redis?.waitUntilConnected()
        return store
    }

    private func sessions(in store: SharedStore, _ blueprint: Blueprint, _ services: Services) -> SessionStore {
        SessionStore(
            policy: SessionPolicy(blueprint.configuration.sessions), backend: store.sessions, clock: services.clock
        ) { _ in }
    }
}
