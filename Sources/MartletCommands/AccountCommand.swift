internal import MartletAccounts
internal import MartletConfig
internal import MartletCore
internal import MartletIdentities
internal import MartletJSON
internal import MartletProvider
internal import MartletServer

/// `martlet account list|show|set|unset|disable|enable|delete`: manages the accounts in `accounts:`.
struct AccountCommand: Command {
    private enum Action {
        case list(AccountFilter, from: String, limit: Int?)
        case show(String)
        case change(String, ClaimPatch)
        case setDisabled(String, Bool)
        case delete(String)

        var access: StoreAccess {
            switch self {
            case .list, .show: .readOnly
            case .change, .setDisabled, .delete: .full
            }
        }
    }

    private let word: String
    private let action: Action
    private let asJSON: Bool
    private let command: OperatorCommand

    /// - Throws: `UsageError` for claims that cannot be set, and a limit that is no number.
    init(_ options: Options, _ program: Program) throws(Options.UsageError) {
        word = options.words.first ?? ""
        action = try Self.action(word, Array(options.words.dropFirst()), options)
        asJSON = options.has("json")
        // No gateway lists accounts, and none has any in its memory.
        command = OperatorCommand(options, program, isOffline: word == "list")
    }

    private static func action(
        _ word: String, _ arguments: [String], _ options: Options
    ) throws(Options.UsageError) -> Action {
        guard word != "list" else {
            let filter = AccountFilter(onlyDisabled: options.has("disabled"), claim: try claim(options["claim"]))
            return .list(filter, from: options["after"] ?? "", limit: try options.limit(of: "accounts"))
        }
        let subject = arguments.first ?? ""
        let rest = Array(arguments.dropFirst())
        do throws(ClaimArgument.ParseError) {
            switch word {
            case "show": return .show(subject)
            case "delete": return .delete(subject)
            case "set": return .change(subject, try ClaimArgument.patch(rest))
            case "unset": return .change(subject, try ClaimArgument.removal(of: rest))
            default: return .setDisabled(subject, word == "disable")
            }
        } catch {
            throw Options.UsageError(message: error.message)
        }
    }

    private static func claim(_ text: String?) throws(Options.UsageError) -> AccountFilter.Claim? {
        guard let text else { return nil }
        let parts = text.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
        guard parts.count == 2, !parts[0].isEmpty else {
            throw Options.UsageError(message: "--claim requires NAME=VALUE")
        }
        return AccountFilter.Claim(name: String(parts[0]), value: String(parts[1]))
    }

    var title: String { "account \(word)" }

    func run() async throws(StartError) -> ExitCode {
        let unknown = StartError(
            code: .accountsUnknownAccount, message: "account not found, or the gateway has no accounts", exit: .usage)
        return try await command.run(unknown: unknown) { gateway throws(StartError) in
            try perform(at: gateway, unknown)
        } inStores: { blueprint, services throws(StartError) in
            try await perform(blueprint, services)
        }
    }

    private func perform(at gateway: AdminRequests, _ unknown: StartError) throws(StartError) {
        switch action {
        case .list: break
        case .show(let subject):
            guard let account = try Self.account(subject, at: gateway) else { throw unknown }
            show(account)
        case .change(let subject, let patch):
            _ = try gateway.document(
                "\(Self.path(subject))/claims", with: "claims", method: "PATCH", json: patch.changes)
            guard let account = try Self.account(subject, at: gateway) else { throw unknown }
            show(account)
        case .setDisabled(let subject, _):
            _ = try gateway.document("\(Self.path(subject))/\(word)", with: "subject", method: "POST")
            let line = "account \(TerminalText.escaped(subject)) \(word)d"
            report([line], asJSON ? try Self.account(subject, at: gateway) : nil, subject)
        case .delete(let subject):
            try gateway.delete(Self.path(subject))
            let account = asJSON ? try Self.account(subject, at: gateway) : nil
            report(AccountAdministration.ended(subject), account, subject)
        }
    }

    private static func path(_ subject: String) -> String { "/subjects/\(AdminRequests.escaped(subject))" }

    /// The account with what its gateway knows besides the store: sessions, and the state of its credentials.
    private static func account(_ subject: String, at gateway: AdminRequests) throws(StartError) -> JSONObject? {
        guard let account = try gateway.find(path(subject), with: "subject") else { return nil }
        let claims = try gateway.find("\(path(subject))/claims", with: "claims")
        let own = claims?["identities"]?.object
        return AccountPage.document(account, claims: claims?["claims"]) { own?[$0] }
    }

    private func perform(_ blueprint: Blueprint, _ services: Services) async throws(StartError) {
        let missing = StartError(
            code: "account.no_accounts", message: "the configuration has no accounts:", exit: .configuration)
        try await CommandStores.withAccounts(blueprint, services, access: action.access, missing: missing) {
            accounts async throws(StartError) in
            let store = try await action.access == .full ? CommandStores.shared(blueprint, services) : nil
            defer { store?.shutdown() }
            let configuration = blueprint.configuration.accounts?.deletion ?? DeletionConfiguration()
            try await perform(
                AccountAdministration(
                    accounts: accounts, clock: services.clock,
                    claims: store.map { store in
                        let publisher = ClaimPublisher(in: store, accounts, blueprint, services)
                        return OperatorClaims(accounts, publisher: publisher, logger: services.logger) { store.outage }
                    },
                    runner: store.map { store in
                        SessionEnding(in: store, accounts, blueprint, services)
                            .runner(in: store, accounts, blueprint, services)
                    }, deletion: DeletionPolicy(configuration, [])))
        }
    }

    private func perform(_ administration: AccountAdministration) async throws(StartError) {
        switch action {
        case .list(let filter, let start, let limit):
            var (array, table) = (JSONArrayPrinter(), TablePrinter("SUBJECT", "STATE", "CREATED"))
            try await administration.list(filter, from: start, limit: limit) { account in
                if asJSON { array.print(account.json) } else { table.add(account.line) }
            }
            if asJSON { array.finish() } else { table.finish() }
        case .show(let subject): show(try await administration.show(subject))
        case .change(let subject, let patch): show(try await administration.change(subject, by: patch))
        case .setDisabled(let subject, let isDisabled):
            let lines = try await administration.setDisabled(subject, isDisabled)
            report(lines, asJSON ? try await administration.show(subject) : nil, subject)
        case .delete(let subject):
            let lines = try await administration.delete(subject)
            report(lines, asJSON ? try await administration.show(subject) : nil, subject)
        }
    }

    /// Prints what was done.
    /// - Parameter account: as it is now; `nil` if nothing is left of it.
    private func report(_ lines: [String], _ account: JSONObject?, _ subject: String) {
        guard asJSON else { return lines.forEach(Output.line) }
        show(account ?? ["subject": .string(subject), "state": "deleted"])
    }

    private func show(_ account: JSONObject) {
        if asJSON {
            Output.line(String(decoding: JSON.write(account), as: UTF8.self))
        } else {
            AccountPage(account).show(.output, print: Output.line)
        }
    }

    static let grammar = CommandGrammar("account", "Manage accounts and their claims") { grammar in
        grammar.details = """
            Manages the accounts in the account store. Claims of an account are delivered like those of its providers, and win
            over them, within a second and without ending sessions. Disabling an account rejects its credentials of every kind
            and its sessions, which do not end, until it is enabled again. Deleting an account does the same as its owner's
            DELETE /auth/account: its sessions end, running gateways revoke what its issuers granted, and account.deleted
            has the reason operator. list reads the account store, whether or not a gateway is running.

            \(OperatorCommand.details)
            """
        let subject = CommandArgument.one("SUBJECT", .text, "the account's subject")
        let list = CommandGrammar("list", "List accounts") { list in
            list.options = [
                .flag("disabled", "list only accounts that are disabled"),
                .value(
                    "claim", "NAME=VALUE", .text,
                    "list only accounts with this claim, set by set or by the configuration; in a list, one of its "
                        + "values is enough"),
                .value("limit", "N", .number, "list at most N accounts"),
                .value(
                    "after", "SUBJECT", .text, "list the accounts behind this subject: the last one of the page before"),
                .json, .config,
            ]
        }
        let named = [
            ("show", "Show an account", "its identities and claims"),
            ("disable", "Reject all credentials of an account", "keeps a caller out, whatever the way to sign in"),
            ("enable", "Accept an account's credentials again", "lets a disabled account in again"),
            ("delete", "Delete an account", "for an owner who has asked for it elsewhere"),
        ].map { name, summary, purpose in
            CommandGrammar(name, summary) { action in
                action.arguments = [subject]
                action.example("martlet account \(name) usr_01J8Z4T9Q3V6W2X5Y7A0B1C2D3", purpose)
            }
        }
        let set = CommandGrammar("set", "Set claims of an account") { set in
            set.arguments = [
                subject,
                .several(
                    "NAME=VALUE", .text, upTo: ClaimRules.maximumCount,
                    "at least one claim: role=staff is a text; teams=a,b a list of texts, where \\, is a comma and \\\\ a "
                        + "backslash; level:=3 a value as JSON: a number, true, a text, a list"),
            ]
        }
        let unset = CommandGrammar("unset", "Remove claims of an account") { unset in
            unset.arguments = [
                subject, .several("NAME", .text, upTo: ClaimRules.maximumCount, "at least one claim"),
            ]
            unset.example("martlet account unset usr_01J8Z4T9Q3V6W2X5Y7A0B1C2D3 role", "takes a role away")
        }
        grammar.subcommands =
            [list]
            + (named + [set, unset]).map { action in
                var action = action
                action.options = [.json]
                action.addOperatorOptions()
                return action
            }
        grammar.example("martlet account list --claim role=staff", "who is staff")
        grammar.example(
            "martlet account set usr_01J8Z4T9Q3V6W2X5Y7A0B1C2D3 role=staff teams=a,b level:=3",
            "three claims of an account")
        grammar.exits = [
            .ok: "done", .usage: "no such account, a claim that cannot be set, or usage",
            .unavailable: "a store is unavailable, or the gateway does not respond or rejects the request",
            .configuration:
                "the configuration has errors or no accounts:, or no gateway is running, and set and unset need a store that "
                + "instances share",
        ]
    }
}
