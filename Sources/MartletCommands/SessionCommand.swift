internal import MartletAccounts
internal import MartletConfig
internal import MartletCore
internal import MartletEvents
internal import MartletIdentities
internal import MartletJSON
internal import MartletServer
internal import MartletSession

/// `martlet session list|end`: shows and ends sessions.
struct SessionCommand: Command {
    private enum Action {
        case list(subject: String, Filter)
        case end(String, of: String?)
        case endAll(of: String)
    }

    private struct Filter {
        let provider: String?
        let limit: Int
        /// The session behind which the list starts.
        let start: String?

        /// - Returns: `nil` without the session to start behind.
        func chosen(of sessions: [JSONObject]) -> ArraySlice<JSONObject>? {
            var rest = sessions[...]
            if let start {
                guard let index = rest.firstIndex(where: { $0["session_id"]?.string?.hasSameBytes(as: start) == true })
                else { return nil }
                rest = rest[(index + 1)...]
            }
            guard let provider else { return rest.prefix(limit) }
            return rest.filter { $0["provider"]?.string?.hasSameBytes(as: provider) == true }[...].prefix(limit)
        }
    }

    private let word: String
    private let action: Action
    private let asJSON: Bool
    private let command: OperatorCommand

    /// - Throws: `UsageError` without a subject or a session, and for a limit that is no number.
    init(_ options: Options, _ program: Program) throws(Options.UsageError) {
        word = options.words.first ?? ""
        let limit = try options.limit(of: "sessions") ?? .max
        let (subject, id) = (options["subject"], options["id"])
        guard subject?.isEmpty != true, id?.isEmpty != true, subject != nil || id != nil else {
            throw Options.UsageError(message: "--subject\(word == "end" ? " or --id" : "") is required")
        }
        if word == "list", let subject {
            let filter = Filter(provider: options["provider"], limit: limit, start: options["after"])
            action = .list(subject: subject, filter)
        } else if let id {
            action = .end(id, of: subject)
        } else {
            action = .endAll(of: subject ?? "")
        }
        asJSON = options.has("json")
        command = OperatorCommand(options, program)
    }

    var title: String { "session \(word)" }

    func run() async throws(StartError) -> ExitCode {
        try await command.run(unknown: unknown) { gateway throws(StartError) in
            switch action {
            case .list(let subject, let filter):
                let sessions = try gateway.list("/sessions?subject=\(AdminRequests.escaped(subject))")
                guard show(filter.chosen(of: sessions)) else { throw unknown }
            case .end(let id, let subject):
                let query = subject.map { "?subject=\(AdminRequests.escaped($0))" } ?? ""
                try gateway.delete("/sessions/\(AdminRequests.escaped(id))\(query)")
            case .endAll(let subject):
                try gateway.delete("/subjects/\(AdminRequests.escaped(subject))/sessions")
            }
            report()
        } inStores: { blueprint, services throws(StartError) in
            guard let store = try await CommandStores.shared(blueprint, services) else {
                throw StartError(
                    code: "session.not_shared",
                    message: "with the store memory: sessions are in the memory of the running gateway",
                    exit: .configuration)
            }
            defer { store.shutdown() }
            try await perform(in: store, blueprint, services)
        }
    }

    private var unknown: StartError {
        let what =
            switch action {
            case .list, .end(_, .some): "the subject has no such session"
            case .end: "no such session"
            case .endAll: "no such subject"
            }
        return StartError(code: "session.unknown", message: what, exit: .usage)
    }

    /// Without the account store the sessions end all the same: that matters more than that it is reported.
    private func perform(
        in store: SharedStore, _ blueprint: Blueprint, _ services: Services
    ) async throws(StartError) {
        let isReported = !blueprint.subscriptions.hooks(for: .sessionRevoked).isEmpty
        if blueprint.configuration.accounts != nil, usesAccounts(isReported: isReported) {
            var isOpen = false
            let missing = StartError(code: .sessionStoreUnavailable, message: "", exit: .internalFault)
            do throws(StartError) {
                return try await CommandStores.withAccounts(
                    blueprint, services, access: isReported ? .full : .readOnly, missing: missing
                ) { accounts async throws(StartError) in
                    isOpen = true
                    try await perform(SessionEnding(in: store, accounts, blueprint, services), accounts)
                }
            } catch {
                guard !isOpen else { throw error }
                if isReported {
                    Output.error("warning: the account store is unavailable: the end is not reported to webhooks\n")
                }
            }
        }
        try await perform(SessionEnding(in: store, nil, blueprint, services), nil)
    }

    private func usesAccounts(isReported: Bool) -> Bool {
        switch action {
        case .list: false
        case .end: isReported
        case .endAll: true
        }
    }

    private func perform(
        _ ending: SessionEnding, _ accounts: AccountStore?
    ) async throws(StartError) {
        let sessions = OperatorSessions(
            ending.sessions, life: ending.life, accounts: accounts, logger: ending.logger)
        let isKnown: Bool
        do throws(SessionError) {
            switch action {
            case .list(let subject, let filter):
                isKnown = show(filter.chosen(of: try await sessions.entries(of: subject)))
            case .end(let id, let subject): isKnown = try await sessions.end(id, of: subject)
            case .endAll(let subject): isKnown = try await sessions.endAll(of: subject)
            }
        } catch {
            throw StartError(code: error.code, message: "the store is unavailable", exit: .unavailable)
        }
        guard isKnown else { throw unknown }
        report()
    }

    private func report() {
        let (subject, id): (String?, String?)
        switch action {
        case .list: return
        case .end(let one, let owner): (subject, id) = (owner, one)
        case .endAll(let owner): (subject, id) = (owner, nil)
        }
        guard asJSON else {
            let what = id.map { "session \($0)" } ?? "all sessions of \(subject ?? "")"
            return Output.line("\(TerminalText.escaped(what)) ended")
        }
        var ended = JSONObject()
        ended["subject"] = subject.map { .string($0) }
        ended["ended"] = .string(id ?? "all")
        Output.line(String(decoding: JSON.write(ended), as: UTF8.self))
    }

    private func show(_ sessions: ArraySlice<JSONObject>?) -> Bool {
        guard let sessions else { return false }
        var array = JSONArrayPrinter()
        var table = TablePrinter("ID", "PROVIDER", "CREATED", "LAST SEEN", "UNTIL", "CLIENT")
        for session in sessions {
            if asJSON { array.print(session) } else { table.add(Self.line(session)) }
        }
        if asJSON { array.finish() } else { table.finish() }
        return true
    }

    private static func line(_ session: JSONObject) -> String {
        let times = ["created_at", "last_seen_at", "expires_at"].map { AdminRequests.time(session[$0]) ?? "-" }
        let columns = [
            session["session_id"]?.string ?? "", session["provider"]?.string ?? "", "created \(times[0])",
            "seen \(times[1])", "until \(times[2])",
            session["device_name"]?.string ?? session["user_agent"]?.string ?? "",
        ]
        return columns.map(TerminalText.escaped).joined(separator: "\t")
    }

    static let grammar = CommandGrammar("session", "Show or end sessions") { grammar in
        grammar.details = """
            Shows the sessions of a subject, or ends one of them or all. What ends is rejected by every instance within a
            second.

            \(OperatorCommand.details)
            """
        let subject = CommandOption.value("subject", "SUBJECT", .text, "the subject, as upstreams see it")
        grammar.subcommands = [
            CommandGrammar("list", "List the sessions of a subject, the newest first") { list in
                list.options = [
                    subject.required,
                    .value("provider", "NAME", .text, "list only sessions that this provider created"),
                    .value("limit", "N", .number, "list at most N sessions"),
                    .value("after", "ID", .text, "start the list behind this session"),
                    .flag("json", "print a JSON array"),
                ]
                list.addOperatorOptions()
            },
            CommandGrammar("end", "End one session, or all of a subject") { end in
                end.options = [
                    .value(
                        "subject", "SUBJECT", .text,
                        "whose sessions end; without it every session is searched for --id, and no webhook gets its end"
                    ),
                    .value("id", "ID", .text, "end only this session, as list shows it"),
                    .flag("json", "print a JSON object"),
                ]
                end.addOperatorOptions()
            },
        ]
        grammar.example("martlet session list --subject usr_01J8Z4T9Q3V6W2X5Y7A0B1C2D3", "where a user is signed in")
        grammar.example("martlet session end --id ses_0123456789abcdef0123456789abcdef", "signs one device out")
        grammar.example("martlet session end --subject apple:001234.abc", "signs a user out everywhere")
        grammar.exits = [
            .ok: "done", .usage: "no such session or subject, or usage",
            .unavailable: "the store is unavailable, or the gateway does not respond or rejects the request",
            .configuration: "the configuration has errors, or no gateway is running and its store is not shared",
        ]
    }
}
