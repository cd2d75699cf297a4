internal import MartletAccounts
internal import MartletConfig
internal import MartletCore
internal import MartletJSON
internal import MartletProvider
internal import MartletServer
internal import MartletSession
internal import MartletSignIn

/// `martlet account list|show|set|unset|disable|enable|delete`: manages the accounts in `accounts:`.
struct AccountCommand {
    /// An action with its arguments.
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

    private static let words = ["list", "show", "set", "unset", "disable", "enable", "delete"]
    /// The most arguments: the action, the subject and the claims of an account.
    static let maximumWords = 2 + ClaimRules.maximumCount

    private let word: String
    private let action: Action
    private let asJSON: Bool
    private let command: ConfiguredCommand

    /// - Throws: `UsageError` unless the words are an action and its arguments.
    init(_ options: Options, _ registry: ProviderRegistry) throws(Options.UsageError) {
        guard let word = options.words.first, Self.words.contains(word) else {
            let hint = Suggestion.phrase(for: options.words.first ?? "", among: Self.words)
            throw Options.UsageError(message: "expected one of \(Self.words.joined(separator: ", "))\(hint)")
        }
        for name in ["claim", "limit", "after"] where options[name] != nil && word != "list" {
            throw Options.UsageError(message: "--\(name) is for list alone")
        }
        guard !options.has("disabled") || word == "list" else {
            throw Options.UsageError(message: "--disabled is for list alone")
        }
        self.word = word
        action = try Self.action(word, Array(options.words.dropFirst()), options)
        asJSON = options.has("json")
        command = ConfiguredCommand(options, registry)
    }

    private static func action(
        _ word: String, _ arguments: [String], _ options: Options
    ) throws(Options.UsageError) -> Action {
        guard word != "list" else {
            guard arguments.isEmpty else { throw Options.UsageError(message: "list takes no subject") }
            let filter = AccountFilter(onlyDisabled: options.has("disabled"), claim: try claim(options["claim"]))
            return .list(filter, from: options["after"] ?? "", limit: try limit(options["limit"]))
        }
        guard let subject = arguments.first else {
            throw Options.UsageError(message: "\(word) requires the account's subject")
        }
        let rest = Array(arguments.dropFirst())
        let takesClaims = word == "set" || word == "unset"
        guard rest.isEmpty == !takesClaims else {
            throw Options.UsageError(
                message: takesClaims ? "\(word) requires at least one claim" : "\(word) takes one subject")
        }
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

    private static func limit(_ text: String?) throws(Options.UsageError) -> Int? {
        guard let text else { return nil }
        guard let number = Int(text), number > 0 else {
            throw Options.UsageError(message: "--limit requires a number of accounts")
        }
        return number
    }

    func run() async -> ExitCode {
        await command.run("account \(word)") { blueprint, services throws(StartError) in
            try await perform(blueprint, services)
            return .ok
        }
    }

    private func perform(_ blueprint: Blueprint, _ services: Services) async throws(StartError) {
        let missing = StartError(
            code: "account.no_accounts", message: "the configuration has no accounts:", exit: .configuration)
        try await CommandStores.withAccounts(blueprint, services, access: action.access, missing: missing) {
            accounts async throws(StartError) in
            let store = try await action.access == .full ? CommandStores.shared(blueprint, services) : nil
            defer { store?.shutdown() }
            let ending = store.map { SessionEnding(in: $0, accounts, blueprint, services) }
            var administration = AccountAdministration(
                accounts: accounts, clock: services.clock, ending: ending,
                publication: store.map { ClaimPublication(in: $0, accounts, blueprint, services) })
            let configuration = blueprint.configuration.accounts?.deletion ?? DeletionConfiguration()
            let runner = store.flatMap { ending?.runner(in: $0, accounts, blueprint, services) }
            administration.deletion = AccountDeletion(
                life: accounts.life, policy: DeletionPolicy(configuration, []), clock: services.clock, runner: runner)
            try await perform(administration)
        }
    }

    private func perform(_ administration: AccountAdministration) async throws(StartError) {
        switch action {
        case .list(let filter, let start, let limit):
            var array = JSONArrayPrinter()
            try await administration.list(filter, from: start, limit: limit) { account in
                if asJSON { array.print(account.json) } else { Output.line(account.line) }
            }
            if asJSON { array.finish() }
        case .show(let subject): show(try await administration.show(subject))
        case .change(let subject, let patch): show(try await administration.change(subject, by: patch))
        case .setDisabled(let subject, let isDisabled):
            try await report(try await administration.setDisabled(subject, isDisabled), of: subject, administration)
        case .delete(let subject):
            try await report(try await administration.deletion?.request(subject) ?? [], of: subject, administration)
        }
    }

    private func report(
        _ lines: [String], of subject: String, _ administration: AccountAdministration
    ) async throws(StartError) {
        guard asJSON else {
            for line in lines { Output.line(line) }
            return
        }
        show(try await administration.show(subject))
    }

    private func show(_ account: AccountDetails) {
        if asJSON {
            Output.line(String(decoding: JSON.write(account.json), as: UTF8.self))
        } else {
            for line in account.lines { Output.line(line) }
        }
    }
}
