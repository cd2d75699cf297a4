internal import MartletAccounts
internal import MartletConfig
internal import MartletCore
internal import MartletJSON
internal import MartletProvider
internal import MartletServer

/// `martlet key create|list|revoke|rotate`: manages the API keys of a provider.
struct KeyCommand: Command {
    private let arguments: KeyArguments
    private let command: ConfiguredCommand
    private let provider: String?
    private let asJSON: Bool

    init(_ options: Options, _ program: Program) throws(Options.UsageError) {
        arguments = try KeyArguments(options)
        command = ConfiguredCommand(options, program.registry)
        provider = options["provider"]
        asJSON = options.has("json")
    }

    var title: String { "key \(arguments.word)" }

    func run() async throws(StartError) -> ExitCode {
        try await command.run { blueprint, services throws(StartError) in
            let none = StartError(
                code: "key.no_provider",
                message: provider == nil
                    ? "no provider has API keys: one of kind api_key does"
                    : "the provider of --provider has no API keys",
                exit: provider == nil ? .configuration : .usage)
            let (prepared, issuing) = try blueprint.provider(provider, none: none, many: "key.many_providers") {
                $0.keyIssuing
            }
            var administration = KeyAdministration(
                issuing: issuing, provider: prepared.name, accounts: nil, clock: services.clock)
            guard issuing.storesKeysInAccounts || needsAccounts else {
                try await perform(administration)
                return .ok
            }
            let missing = StartError(
                code: "key.no_accounts", message: "the configuration has no accounts:", exit: .configuration)
            try await CommandStores.withAccounts(blueprint, services, access: access, missing: missing) {
                accounts async throws(StartError) in
                administration.accounts = accounts
                if issuing.storesKeysInAccounts {
                    // Over the account store; otherwise over its file as before.
                    let offline = ProviderContext.Services.detached(
                        clock: services.clock, hasUsers: true, keys: accounts.keys(of: prepared.name))
                    let handle = try prepared.built(.detached(prepared.name, services: offline))
                    administration.issuing = handle.keyIssuing ?? issuing
                }
                try await perform(administration)
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
