internal import MartletAccounts
internal import MartletConfig
internal import MartletCore
internal import MartletJSON
internal import MartletProvider
internal import MartletServer

/// `martlet key create|list|revoke|rotate`: manages the API keys of a provider.
struct KeyCommand: Command {
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
    init(_ options: Options, _ program: Program) throws(Options.UsageError) {
        arguments = try KeyArguments(options)
        command = ConfiguredCommand(options, program.registry)
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
        _ keeper: Keeper, _ issuing: any APIKeyIssuing, _ accounts: AccountStore?, _ services: Services
    ) -> KeyAdministration {
        KeyAdministration(issuing: issuing, provider: keeper.name, accounts: accounts, clock: services.clock)
    }

    /// The provider over the account store, or over its file as before.
    private func issuing(
        _ keeper: Keeper, _ accounts: AccountStore, _ services: Services
    ) throws(StartError) -> any APIKeyIssuing {
        guard keeper.issuing.storesKeysInAccounts else { return keeper.issuing }
        let offline = ProviderContext.Services.detached(
            clock: services.clock, hasUsers: true, keys: accounts.keys(of: keeper.name))
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
        case .create(let creation): try await report(administration.create(creation), administration)
        case .revoke(let id): try await report(administration.revoke(id), administration)
        case .rotate(let id, let grace):
            try await report(administration.rotate(id, grace: grace), administration)
        case .list(let start, let limit):
            var array = JSONArrayPrinter()
            var table = TablePrinter("ID", "SUBJECT", "STATE", "CREATED", "UNTIL", "LAST USED")
            try await administration.list(after: start, limit: limit) { key in
                if asJSON { array.print(key.json(at: now)) } else { table.add(key.line(at: now)) }
            }
            if asJSON { array.finish() } else { table.finish() }
        }
    }

    /// Prints a new key alone on standard output, so that it can be passed on; otherwise no one would have it.
    private func report(
        _ outcome: KeyAdministration.Outcome, _ administration: KeyAdministration
    ) async throws(StartError) {
        let key = outcome.key.map { $0.withBytes { String(decoding: $0, as: UTF8.self) } }
        if asJSON {
            let json = outcome.record.json(at: administration.clock.unixTime, key: key)
            Output.line(String(decoding: JSON.write(json), as: UTF8.self))
        } else {
            Output.line(key ?? outcome.line)
        }
        guard key != nil else { return }
        if Output.writeError != nil {
            Output.error("martlet key: \(try await administration.takeBack(outcome))\n")
        } else if !asJSON {
            Output.error("\(outcome.line)\n")
        }
    }

    static let grammar = CommandGrammar("key", "Manage API keys") { grammar in
        grammar.details = """
            Manages the API keys of a provider of kind api_key, in the account store or in its keys_file. create and rotate
            print the key on standard output, and never again: only a digest of it is stored. A change reaches running
            gateways within a second.
            """
        grammar.isSilent = true
        let shared: [CommandOption] = [
            .json, .config, .value("provider", "NAME", .text, "the provider, if several have keys"),
        ]
        let id = CommandArgument.one("ID", .text, "the key's id")
        grammar.subcommands = [
            CommandGrammar("create", "Create a key, and print it once") { create in
                create.options =
                    [
                        .value("subject", "SUBJECT", .text, "whose key it is: upstreams see <provider>:SUBJECT")
                            .required,
                        .flag(
                            "account", "SUBJECT is that of an account, which upstreams see as it is, with its claims"),
                        .value(
                            "claims", "NAME=VALUE", .text,
                            "a claim of the key: role=partner is a text, teams=a,b a list, level:=3 a value as JSON"
                        ).repeatable,
                        .value("scope", "A,B", .text, "the scopes of the key, as the claim scope").repeatable,
                        .value("expires", "DURATION", .duration, "when the key expires, such as 90d; default: never"),
                    ] + shared
            },
            CommandGrammar("list", "List keys, without the keys themselves") { list in
                list.options =
                    [
                        .value("limit", "N", .number, "list at most N keys"),
                        .value("after", "ID", .text, "list the keys behind this id: the last one of the page before"),
                    ] + shared
            },
            CommandGrammar("revoke", "Revoke a key") { revoke in
                revoke.arguments = [id]
                revoke.options = shared
                revoke.example("martlet key revoke 4f1c2a9be07d", "a key that became known to others")
            },
            CommandGrammar("rotate", "Replace a key, and print the new one once") { rotate in
                rotate.arguments = [id]
                rotate.options =
                    [
                        .value(
                            "grace", "DURATION", .duration,
                            "for how long the old key stays valid, too; default: 0s")
                    ] + shared
                rotate.example("martlet key rotate 4f1c2a9be07d --grace 1d", "leaves a day to replace the old key")
            },
        ]
        grammar.example("martlet key create --subject billing --scope orders:read --expires 90d", "a key for a program")
        grammar.example("martlet key list --json", "all keys, when they expire and whose they are")
        grammar.exits = [
            .ok: "done", .usage: "no such key or account, or usage",
            .unavailable: "a store is unavailable or the file cannot be changed",
            .configuration: "the configuration has errors or no provider with keys",
        ]
    }
}
