internal import MartletConfig
internal import MartletJSON
internal import MartletServer

/// `martlet subject SUBJECT` and `martlet subject disable|enable|delete SUBJECT`: the account of a subject at the running
/// gateway.
struct SubjectCommand: Command {
    private enum Action: String, CaseIterable { case show, disable, enable, delete }

    private let action: Action
    private let subject: String
    private let printsJSON: Bool
    private let requests: AdminRequests

    /// - Throws: `UsageError` unless there is a subject, alone or behind an action.
    init(_ options: Options, _ program: Program) throws(Options.UsageError) {
        let words = options.words
        guard let last = words.last, !last.isEmpty else {
            throw Options.UsageError(message: "expected SUBJECT, or one of disable, enable, delete with a SUBJECT")
        }
        guard let action = words.count == 1 ? .show : Action(rawValue: words[0]) else {
            let hint = Suggestion.phrase(for: words[0], among: Action.allCases.map(\.rawValue))
            throw Options.UsageError(message: "expected one of disable, enable, delete\(hint)")
        }
        guard words.count == 2 || Action(rawValue: last) == nil else {
            throw Options.UsageError(message: "\(last) requires a subject")
        }
        self.action = action
        subject = last
        printsJSON = options.has("json")
        requests = AdminRequests("subject", options, program)
    }

    func run() -> ExitCode {
        requests.run { () throws(StartError) in
            let target = "/subjects/\(AdminQuery.escaped(subject))"
            switch action {
            case .show: return show(try requests.send(target))
            case .disable, .enable: return show(try requests.send("\(target)/\(action.rawValue)", method: "POST"))
            case .delete: return deleted(try requests.send(target, method: "DELETE"))
            }
        }
    }

    private func deleted(_ response: AdminClient.Response) -> ExitCode {
        guard response.status == 204 else { return fail(response) }
        if printsJSON {
            let document: JSONObject = ["subject": .string(subject), "state": "being_deleted"]
            Output.line(String(decoding: JSON.write(document), as: UTF8.self))
        } else {
            Output.line("\(TerminalText.escaped(subject))\tbeing_deleted")
        }
        return .ok
    }

    private func fail(_ response: AdminClient.Response) -> ExitCode {
        requests.fail(response, unknown: "no such subject, or the gateway has no accounts")
    }

    /// Prints the account, and one line for each identity.
    private func show(_ response: AdminClient.Response) -> ExitCode {
        guard response.status == 200, let account = response.document?.object, account["subject"] != nil else {
            return fail(response)
        }
        guard !printsJSON else {
            Output.line(response.text)
            return .ok
        }
        Self.show(account, .output, print: Output.line)
        return .ok
    }

    /// Prints an account and its identities: two tables on a terminal.
    static func show(_ account: JSONObject, _ terminal: Terminal, print: @escaping (String) -> Void) {
        var columns = [
            ("SUBJECT", account["subject"]?.string ?? ""), ("STATE", account["state"]?.string ?? ""),
            ("CREATED", "created \(AdminRequests.time(account["created_at"]))"),
        ]
        if account["disabled"] == true {
            columns.append(("DISABLED", "disabled \(AdminRequests.time(account["disabled_at"]))"))
        }
        if let deletion = account["deletion"]?.object {
            columns.append(("DELETION", "deletion \(AdminRequests.time(deletion["due_at"]))"))
        }
        columns.append(("SESSIONS", account["sessions"]?.int64.map { "sessions \($0)" } ?? "sessions unknown"))
        var table = TablePrinter(columns.map(\.0), terminal: terminal, print: print)
        table.add(columns.map { TerminalText.escaped($0.1) }.joined(separator: "\t"))
        table.finish()
        let identities = (account["identities"]?.array ?? []).compactMap(\.object)
        guard !identities.isEmpty else { return }
        if terminal.isTerminal { print("") }
        var identityTable = TablePrinter(
            "PROVIDER", "SUBJECT", "LINKED", "LAST LOGIN", "CREDENTIAL", "THROTTLED", terminal: terminal, print: print)
        for identity in identities {
            identityTable.add(Self.columns(of: identity).map(TerminalText.escaped).joined(separator: "\t"))
        }
        identityTable.finish()
    }

    private static func columns(of identity: JSONObject) -> [String] {
        var columns = [
            identity["provider"]?.string ?? "", identity["subject"]?.string ?? "",
            "linked \(AdminRequests.time(identity["linked_at"]))",
            "last login \(AdminRequests.time(identity["last_login_at"]))",
            "credential \(identity["credential_state"]?.string ?? "unknown")",
        ]
        if let lock = identity["lock"]?.object {
            let seconds = lock["seconds"]?.int64.map { "\($0) s" } ?? "known networks"
            columns.append("throttled \(seconds)")
        }
        return columns
    }
}

extension SubjectCommand {
    static let grammar = CommandGrammar("subject", "Show, block or delete an account at the running gateway") {
        grammar in
        grammar.details = """
            Shows an account with its identities, through the admin listener of the running gateway; or blocks it: within a
            second every instance rejects its logins, refreshes and requests with 403. Nothing ends by that: after enable
            the same sessions are accepted again. delete ends the sessions, and deletes the account as DELETE /auth/account
            does.
            """
        grammar.arguments = [
            .one(
                "SUBJECT|disable|enable|delete", .words(Action.allCases.filter { $0 != .show }.map(\.rawValue)),
                "the account's subject; or what to do with it"),
            .optional("SUBJECT", .text, "the account's subject, behind disable, enable or delete"),
        ]
        grammar.options = [.json] + AdminAddress.options
        grammar.alternatives = AdminAddress.alternatives
        grammar.example("martlet subject usr_01J8Z4T9Q3V6W2X5Y7A0B1C2D3", "the ways to sign in, and their state")
        grammar.example("martlet subject disable usr_01J8Z4T9Q3V6W2X5Y7A0B1C2D3", "keeps a user out, for now")
        grammar.exits = [
            .ok: "done", .rejected: "no such subject, or the gateway has no accounts",
            .unavailable: "a store is unavailable, or no gateway is running, or it rejects the request",
            .configuration: AdminAddress.configurationExit,
        ]
    }
}
