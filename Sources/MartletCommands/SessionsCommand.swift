internal import MartletJSON
internal import MartletServer

/// `martlet sessions SUBJECT` and `martlet sessions end ID`: lists the sessions of a subject at the running gateway, and
/// ends one.
struct SessionsCommand: Command {
    private enum Action {
        case list(String)
        case end(String)
        case endAll(String)
    }

    private let action: Action
    private let subject: String?
    private let printsJSON: Bool
    private let requests: AdminRequests

    /// - Throws: `UsageError` unless there is a subject, or `end` with a session.
    init(_ options: Options, _ program: Program) throws(Options.UsageError) {
        let words = options.words
        let (subject, endsAll) = (options["subject"], options.has("all"))
        switch (words.first, words.count) {
        case ("end", 2) where !endsAll: action = .end(words[1])
        case ("end", 1) where endsAll && subject != nil: action = .endAll(subject ?? "")
        case (let word?, 1) where word != "end" && subject == nil && !endsAll && !word.isEmpty: action = .list(word)
        default: throw Options.UsageError(message: "expected SUBJECT, end ID, or end --all --subject SUBJECT")
        }
        self.subject = subject
        printsJSON = options.has("json")
        requests = AdminRequests("sessions", options, program)
    }

    func run() -> ExitCode {
        requests.run { () throws(StartError) in
            switch action {
            case .list(let subject):
                return list(try requests.send("/sessions?subject=\(AdminQuery.escaped(subject))"))
            case .endAll(let subject):
                let path = "/subjects/\(AdminQuery.escaped(subject))/sessions"
                return ended(try requests.send(path, method: "DELETE"), nil)
            case .end(let id):
                let query = subject.map { "?subject=\(AdminQuery.escaped($0))" } ?? ""
                return ended(try requests.send("/sessions/\(AdminQuery.escaped(id))\(query)", method: "DELETE"), id)
            }
        }
    }

    private func list(_ response: AdminClient.Response) -> ExitCode {
        guard response.status == 200, let sessions = response.document?.array else {
            return requests.fail(response, unknown: "the gateway has no sessions")
        }
        guard !printsJSON else {
            Output.line(response.text)
            return .ok
        }
        var table = TablePrinter("ID", "PROVIDER", "CREATED", "LAST SEEN", "UNTIL", "CLIENT")
        for session in sessions {
            guard let session = session.object else { continue }
            let client = session["device_name"]?.string ?? session["user_agent"]?.string ?? ""
            let columns = [
                session["session_id"]?.string ?? "", session["provider"]?.string ?? "",
                "created \(AdminRequests.time(session["created_at"]))",
                "seen \(AdminRequests.time(session["last_seen_at"]))",
                "until \(AdminRequests.time(session["expires_at"]))", client,
            ]
            table.add(columns.map(TerminalText.escaped).joined(separator: "\t"))
        }
        table.finish()
        return .ok
    }

    /// - Parameter id: the session; `nil` for all of the subject.
    private func ended(_ response: AdminClient.Response, _ id: String?) -> ExitCode {
        guard response.status == 204 else {
            return requests.fail(response, unknown: id == nil ? "no such subject" : "no such session")
        }
        if printsJSON {
            Output.line(String(decoding: JSON.write(["ended": .string(id ?? "all")] as JSONObject), as: UTF8.self))
        } else {
            Output.line(id.map { "session \(TerminalText.escaped($0)) ended" } ?? "all sessions ended")
        }
        return .ok
    }
}

extension SessionsCommand {
    static let grammar = CommandGrammar("sessions", "Show or end sessions at the running gateway") { grammar in
        grammar.details = """
            Shows the sessions of a subject, the newest first, or ends them, through the admin listener of the running
            gateway. What ends is rejected by every instance within a second.
            """
        grammar.arguments = [
            .one("SUBJECT|end", .words(["end"]), "the subject, as upstreams see it; or end"),
            .optional("ID", .text, "the session to end, as the list shows it"),
        ]
        grammar.options =
            [
                .flag("all", "end all sessions of the subject"),
                .value(
                    "subject", "SUBJECT", .text,
                    "whose session ends: without it every session is searched, and no webhook gets its end"),
                .json,
            ] + AdminAddress.options
        grammar.alternatives = AdminAddress.alternatives
        grammar.example("martlet sessions usr_01J8Z4T9Q3V6W2X5Y7A0B1C2D3", "where a user is signed in")
        grammar.example("martlet sessions end ses_0123456789abcdef0123456789abcdef", "signs one device out")
        grammar.example("martlet sessions end --all --subject apple:001234.abc", "signs a user out everywhere")
        grammar.exits = [
            .ok: "done, also without any session", .rejected: "no such session or subject",
            .unavailable: "the store is unavailable, or no gateway is running, or it rejects the request",
            .configuration: AdminAddress.configurationExit,
        ]
    }
}
