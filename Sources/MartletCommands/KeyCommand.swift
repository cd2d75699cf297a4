internal import MartletAccounts
internal import MartletConfig
internal import MartletCore
internal import MartletJSON
internal import MartletProvider
internal import MartletServer

/// `martlet key create|list|revoke|rotate`: manages the API keys of a provider.
struct KeyCommand {
    /// A provider with keys.
    private struct Keeper {
        let name: String
        let prepared: PreparedProvider
        let issuing: any APIKeyIssuing
    }

    private let arguments: KeyArguments
    private let command: ConfiguredCommand
    private let provider: String?
    private let asJSON: Bool

    /// - Throws: `UsageError` unless the arguments are those of an action.
    init(_ words: [String], _ registry: ProviderRegistry) throws(Options.UsageError) {
        let options = try Options(
            words, allowing: ["config", "provider", "subject", "expires", "grace", "limit", "after"],
            flags: ["json", "account"], repeatable: ["claims", "scope"], words: 2, isSilent: true)
        arguments = try KeyArguments(options)
        command = ConfiguredCommand(options, registry)
        provider = options["provider"]
        asJSON = options.has("json")
    }

    func run() async -> ExitCode {
        await command.run("key \(arguments.word)") { blueprint, services throws(StartError) in
            let keeper = try keeper(blueprint)
            guard keeper.issuing.storesKeysInAccounts || needsAccounts else {
                try await perform(administration(keeper, keeper.issuing, nil, services))
                return .ok
            }
            let missing = StartError(
                code: "key.no_accounts", message: "the configuration has no accounts:", exit: .configuration)
            try await CommandStores.withAccounts(blueprint, services, access: access, missing: missing) {
                accounts async throws(StartError) in
                let issuing = try issuing(keeper, accounts, services)
                try await perform(administration(keeper, issuing, accounts, services))
            }
            return .ok
        }
    }

    private var needsAccounts: Bool {
        if case .create(let creation) = arguments.action { creation.isAccount } else { false }
    }

    private var access: StoreAccess {
        if case .list = arguments.action { .readOnly } else { .full }
    }

    private func administration(
        _ keeper: Keeper, _ issuing: any APIKeyIssuing, _ accounts: (any AccountAdministering)?, _ services: Services
    ) -> KeyAdministration {
        KeyAdministration(issuing: issuing, provider: keeper.name, accounts: accounts, clock: services.clock)
    }

    /// The provider over the account store, or over its file as before.
    private func issuing(
        _ keeper: Keeper, _ accounts: any AccountDatabase, _ services: Services
    ) throws(StartError) -> any APIKeyIssuing {
        guard keeper.issuing.storesKeysInAccounts else { return keeper.issuing }
        let offline = ProviderContext.Services.detached(
            clock: services.clock, hasUsers: true, keys: accounts.keys[keeper.name])
        return try Self.build(keeper.prepared, .detached(keeper.name, services: offline)) ?? keeper.issuing
    }

    private static func build(
        _ prepared: PreparedProvider, _ context: ProviderContext
    ) throws(StartError) -> (any APIKeyIssuing)? {
        do throws(ConfigurationError) { return try prepared.build(context).keyIssuing } catch {
            throw StartError(code: error.code, message: error.description, exit: .configuration)
        }
    }

    /// The provider that has keys: the one of `--provider`, or the only one.
    private func keeper(_ blueprint: Blueprint) throws(StartError) -> Keeper {
        var keepers: [Keeper] = []
        for prepared in blueprint.providers where provider == nil || prepared.name == provider {
            let context = ProviderContext.detached(prepared.name, clock: .system, hasUsers: true)
            guard let issuing = try Self.build(prepared, context) else { continue }
            keepers.append(Keeper(name: prepared.name, prepared: prepared, issuing: issuing))
        }
        guard let keeper = keepers.first else {
            throw StartError(
                code: "key.no_provider",
                message: provider == nil
                    ? "no provider has API keys: one of kind api_key does"
                    : "the provider of --provider has no API keys",
                exit: provider == nil ? .configuration : .usage)
        }
        guard keepers.count == 1 else {
            let names = keepers.map { "'\($0.name)'" }.joined(separator: ", ")
            throw StartError(
                code: "key.many_providers", message: "--provider is required: one of \(names)", exit: .usage)
        }
        return keeper
    }

    private func perform(_ administration: KeyAdministration) async throws(StartError) {
        let now = administration.clock.unixTime
        switch arguments.action {
        case .create(let creation): report(try await administration.create(creation), now)
        case .revoke(let id): report(try await administration.revoke(id), now)
        case .rotate(let id, let grace): report(try await administration.rotate(id, grace: grace), now)
        case .list(let start, let limit):
            var array = JSONArrayPrinter()
            try await administration.list(after: start, limit: limit) { key in
                if asJSON { array.print(key.json(at: now)) } else { Output.line(key.line(at: now)) }
            }
            if asJSON { array.finish() }
        }
    }

    /// Prints a new key alone on standard output, so that it can be passed on.
    private func report(_ outcome: KeyAdministration.Outcome, _ now: UnixTime) {
        let key = outcome.key.map { $0.withBytes { String(decoding: $0, as: UTF8.self) } }
        if asJSON {
            let json = outcome.record.json(at: now, key: key)
            return Output.line(String(decoding: JSON.write(json), as: UTF8.self))
        }
        guard let key else { return Output.line(outcome.line) }
        Output.error("\(outcome.line)\n")
        Output.line(key)
    }
}
