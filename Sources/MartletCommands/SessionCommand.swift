internal import MartletAccounts
internal import MartletConfig
internal import MartletCore
internal import MartletEvents
internal import MartletIdentities
internal import MartletJSON
internal import MartletProvider
internal import MartletServer
internal import MartletSession
internal import MartletSignIn

/// `martlet session list|end`: shows and ends the sessions of one subject.
struct SessionCommand: Command {
    private enum Action: String, CaseIterable {
        case list, end
    }

    /// Which sessions a list has.
    private struct Filter {
        /// Only sessions that this provider created.
        let provider: String?
        let limit: Int?
        /// The session behind which the list starts.
        let start: String?

        init(_ options: Options) throws(Options.UsageError) {
            provider = options["provider"]
            start = options["after"]
            limit = options["limit"].map { Int($0) ?? 0 }
            guard limit.map({ $0 > 0 }) ?? true else {
                throw Options.UsageError(message: "--limit requires a number of sessions")
            }
        }
    }

    /// The reason of events.
    private static let reason = "admin"

    private let action: Action
    private let subject: String
    private let id: String?
    private let filter: Filter
    private let asJSON: Bool
    private let command: ConfiguredCommand

    /// - Throws: `UsageError` for an empty subject, and a limit that is no number.
    init(_ options: Options, _ program: Program) throws(Options.UsageError) {
        guard let subject = options["subject"], !subject.isEmpty else {
            throw Options.UsageError(message: "--subject is required")
        }
        filter = try Filter(options)
        action = options.words.first.flatMap(Action.init) ?? .list
        self.subject = subject
        id = options["id"]
        asJSON = options.has("json")
        command = ConfiguredCommand(options, program.registry)
    }

    func run() async -> ExitCode {
        await command.run("session \(action)") { blueprint, services throws(StartError) in
            guard let store = try await CommandStores.shared(blueprint, services) else {
                throw StartError(
                    code: "session.not_shared",
                    message: "with the store memory: sessions are in the memory of the running gateway",
                    exit: .configuration)
            }
            defer { store.shutdown() }
            try await perform(in: store, blueprint, services)
            return .ok
        }
    }

    /// Without the account store the sessions end all the same: that matters more than that it is reported.
    private func perform(
        in store: SharedStore, _ blueprint: Blueprint, _ services: Services
    ) async throws(StartError) {
        let silent = SessionEnding(in: store, nil, blueprint, services)
        guard action == .end, blueprint.configuration.accounts != nil,
            !blueprint.subscriptions.hooks(for: .sessionRevoked).isEmpty
        else { return try await perform(silent) }
        var isOpen = false
        let missing = StartError(code: .sessionStoreUnavailable, message: "", exit: .internalFault)
        do throws(StartError) {
            try await CommandStores.withAccounts(blueprint, services, access: .full, missing: missing) {
                accounts async throws(StartError) in
                isOpen = true
                try await perform(SessionEnding(in: store, accounts, blueprint, services))
            }
        } catch {
            guard !isOpen else { throw error }
            Output.error("warning: the account store is unavailable: the end is not reported to webhooks\n")
            try await perform(silent)
        }
    }

    private func perform(_ ending: SessionEnding) async throws(StartError) {
        do throws(SessionError) {
            switch action {
            case .list: try await list(ending.sessions.store)
            case .end: try await end(ending)
            }
        } catch {
            let exit: ExitCode = error.kind == .invalid ? .usage : .unavailable
            let message = error.kind == .invalid ? "the subject has no such session" : "the store is unavailable"
            throw StartError(code: error.code, message: message, exit: exit)
        }
    }

    private func end(_ ending: SessionEnding) async throws(SessionError) {
        let (sessions, life, logger) = (ending.sessions, ending.life, ending.logger)
        guard let id else {
            try await sessions.end(SessionsEnd(Self.reason), of: subject, reportedBy: life, logger)
            return report("all sessions of \(TerminalText.escaped(subject)) ended")
        }
        let operators = OperatorSessions(sessions, life: life, accounts: nil, logger: logger)
        guard try await operators.end(id, of: subject) else { throw SessionError("session.unknown", .invalid) }
        report("session \(TerminalText.escaped(id)) ended")
    }

    /// Prints what has ended.
    private func report(_ line: String) {
        guard asJSON else { return Output.line(line) }
        let ended: JSONObject = ["subject": .string(subject), "ended": .string(id ?? "all")]
        Output.line(String(decoding: JSON.write(ended), as: UTF8.self))
    }

    private func list(_ sessions: any SessionStoring) async throws(SessionError) {
        var array = JSONArrayPrinter()
        var table = TablePrinter("ID", "PROVIDER", "CREATED", "LAST SEEN", "UNTIL", "CLIENT")
        var (isBehind, count) = (filter.start == nil, 0)
        try await sessions.forEachSession(of: subject) { session in
            guard isBehind else {
                isBehind = filter.start.map { session.id.hasSameBytes(as: $0) } ?? true
                return true
            }
            guard filter.provider.map({ session.provider.hasSameBytes(as: $0) }) ?? true else { return true }
            if asJSON { array.print(session.entry) } else { table.add(SessionCommand.line(session)) }
            count += 1
            return filter.limit.map { count < $0 } ?? true
        }
        guard isBehind else { throw SessionError("session.unknown", .invalid) }
        if asJSON { array.finish() } else { table.finish() }
    }

    private static func line(_ session: SessionSummary) -> String {
        let times = [session.createdAt, session.lastSeenAt, session.expiresAt].map {
            InternetTime.text(milliseconds: $0.milliseconds)
        }
        let client = session.client.deviceName ?? session.client.userAgent ?? ""
        let columns = [
            session.id, session.provider, "created \(times[0])", "seen \(times[1])", "until \(times[2])", client,
        ]
        return columns.map(TerminalText.escaped).joined(separator: "\t")
    }
}

extension SessionCommand {
    static let grammar = CommandGrammar("session", "Show or end the sessions of a subject") { grammar in
        grammar.details = """
            Shows the sessions of a subject, or ends one of them or all. Needs a store that instances share: with memory: the
            sessions are in the memory of the running gateway.
            """
        let subject = CommandOption.value("subject", "SUBJECT", .text, "the subject, as upstreams see it").required
        grammar.subcommands = [
            CommandGrammar("list", "List the sessions of a subject, the newest first") { list in
                list.options = [
                    subject,
                    .value("provider", "NAME", .text, "list only sessions that this provider created"),
                    .value("limit", "N", .number, "list at most N sessions"),
                    .value("after", "ID", .text, "start the list behind this session"),
                    .flag("json", "print a JSON array"), .config,
                ]
            },
            CommandGrammar("end", "End one session, or all of a subject") { end in
                end.options = [
                    subject, .value("id", "ID", .text, "end only this session, as list shows it"),
                    .flag("json", "print a JSON object"), .config,
                ]
            },
        ]
        grammar.example("martlet session list --subject usr_01J8Z4T9Q3V6W2X5Y7A0B1C2D3", "where a user is signed in")
        grammar.example("martlet session end --subject apple:001234.abc", "signs a user out everywhere")
        grammar.exits = [
            .ok: "done", .usage: "no such session, or usage", .unavailable: "the store is unavailable",
            .configuration: "the configuration has errors or the store is not shared",
        ]
    }
}
