internal import MartletAccounts
internal import MartletConfig
internal import MartletCore
internal import MartletJSON
internal import MartletProvider
internal import MartletServer
internal import MartletSignIn

/// `martlet user add|passwd|disable|enable|delete|verify|show|unlock|list`: manages the password users in `accounts:`.
struct UserCommand: Command {
    private let action: UserAdministration.Action
    private let name: String
    private let command: ConfiguredCommand
    private let provider: String?
    private let asJSON: Bool
    private let filter: UserAdministration.Filter
    private let isVerified: Bool

    init(_ options: Options, _ program: Program) throws(Options.UsageError) {
        action = options.words.first.flatMap(UserAdministration.Action.init) ?? .list
        filter = UserAdministration.Filter(
            onlyDisabled: options.has("disabled"), after: options["after"] ?? "", limit: try options.limit(of: "users"))
        asJSON = options.has("json")
        isVerified = options.has("verified")
        name = options.words.dropFirst().first ?? ""
        command = ConfiguredCommand(options, program.registry)
        provider = options["provider"]
    }

    var title: String { "user \(action)" }

    func run() async throws(StartError) -> ExitCode {
        try await command.run { blueprint, services throws(StartError) in
            try await administer(blueprint, services)
            return .ok
        }
    }

    private func administer(_ blueprint: Blueprint, _ services: Services) async throws(StartError) {
        let what = provider == nil ? "no provider stores users" : "the provider of --provider does not store users"
        let none = StartError(
            code: "user.no_provider", message: "\(what) in accounts:", exit: provider == nil ? .configuration : .usage)
        let (prepared, maker) = try blueprint.provider(provider, none: none, many: "user.many_providers") { handle in
            handle.userCreating.flatMap { $0.storesRecords ? $0 : nil }
        }
        let missing = StartError(
            code: "user.no_accounts",
            message: "users are stored in accounts:, which the configuration does not have", exit: .configuration)
        let access: StoreAccess = action == .list || action == .show ? .readOnly : .full
        try await CommandStores.withAccounts(blueprint, services, access: access, missing: missing) {
            accounts async throws(StartError) in
            // While the store is unavailable, the user is changed nevertheless, and ending the sessions fails.
            let needsStore = action.endsSessions || action == .unlock || action == .show
            let store = try await needsStore ? CommandStores.shared(blueprint, services) : nil
            defer { store?.shutdown() }
            var administration = UserAdministration(
                accounts: accounts, maker: maker, provider: prepared.name, clock: services.clock,
                ending: store.map { SessionEnding(in: $0, accounts, blueprint, services) })
            administration.isVerified = isVerified
            administration.mailing = mailing(blueprint, maker, accounts, services)
            administration.loggedSubject = { blueprint.loggedSubject($0) }
            if let store {
                // The provider over the store of running gateways, whose counters it resets.
                let offline = ProviderContext.Services.detached(
                    clock: services.clock, hasUsers: true, store: store.values)
                let context = ProviderContext.detached(
                    prepared.name, services: offline, storeKeyPrefix: store.label.prefix)
                administration.throttling = try prepared.built(context).userUnlocking
            }
            try await perform(administration)
        }
    }

    private func perform(_ administration: UserAdministration) async throws(StartError) {
        guard action.takesName else {
            var (array, table) = (JSONArrayPrinter(), TablePrinter("NAME", "STATE"))
            try await administration.list(filter) { user in
                if asJSON { array.print(user.json) } else { table.add(user.line) }
            }
            if asJSON { array.finish() } else { table.finish() }
            return
        }
        let name = name
        let outcome = try await administration.perform(action, name: name) { () throws(StartError) in
            try PasswordEntry.new(for: name)
        }
        guard asJSON else {
            for line in outcome.lines { Output.line(line) }
            return
        }
        Output.line(String(decoding: JSON.write(outcome.json), as: UTF8.self))
    }

    /// `nil` if the provider sends no mails to users.
    private func mailing(
        _ blueprint: Blueprint, _ making: any UserCreating, _ accounts: AccountStore, _ services: Services
    ) -> UserAdministration.Mailing? {
        guard let rules = (making as? any PasswordSelfServing)?.selfService, rules.usesAddresses else { return nil }
        let configuration = blueprint.configuration
        return UserAdministration.Mailing(
            links: accounts,
            mails: AddressMails(
                origin: configuration.browser?.origin.value, base: configuration.sessions.path, clock: services.clock),
            rules: rules)
    }

    static let grammar = CommandGrammar("user", "Manage password users") { grammar in
        grammar.details = """
            Manages password users in the account store. The password is read from a prompt on a terminal, otherwise from the
            first line of standard input, of which the rest is ignored; it is never an argument. passwd, disable and delete
            end the user's sessions. Where users register or reset passwords by mail, add of an address without
            --verified asks for no password: it sends a mail whose link sets it.
            """
        grammar.isSilent = true
        let shared: [CommandOption] = [
            .json, .config, .value("provider", "NAME", .text, "the provider, if several providers store users"),
        ]
        let named = [
            ("add", "Add a user; reads the password", nil),
            ("passwd", "Change a password; reads the new one", "asks for the new password, and ends the sessions"),
            ("disable", "Reject logins of a user", "keeps a user out, and ends the sessions"),
            ("enable", "Accept logins of a user again", "lets a disabled user in again"),
            ("delete", "Delete a user", "removes a user who has left"),
            (
                "verify", "Vouch for the address of a user",
                "the first proof by mail then takes no identities and keys away"
            ),
            ("show", "Show a user and the account", "whether a user exists, and is disabled"),
            ("unlock", "End the throttling after failed logins", "for a user who has mistyped the password too often"),
        ].map { (name: String, summary: String, purpose: String?) in
            CommandGrammar(name, summary) { action in
                action.arguments = [.one("NAME", .text, "the user's name")]
                action.options =
                    name == "add" ? [.flag("verified", "vouch for an address; asks for the password")] + shared : shared
                let user = name == "verify" ? "ada@example.com" : "ada"
                if let purpose { action.example("martlet user \(name) \(user)", purpose) }
            }
        }
        let list = CommandGrammar("list", "List users") { list in
            list.options =
                [
                    .flag("disabled", "list only users that are disabled"),
                    .value("limit", "N", .number, "list at most N users"),
                    .value("after", "NAME", .text, "list the users behind this name: the last one of the page before"),
                ] + shared
        }
        grammar.subcommands = named + [list]
        grammar.example("martlet user add ada", "asks for the password")
        grammar.example("martlet user list --disabled --json", "the users that cannot log in")
        grammar.exits = [
            .ok: "done", .unavailable: "a store is unavailable",
            .configuration:
                "the configuration has errors or no user store, or unlock needs a store that instances share",
        ]
    }
}
