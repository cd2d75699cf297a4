internal import MartletAdmin
internal import MartletConfig
internal import MartletCore
internal import MartletJSON
internal import MartletServer

/// `martlet log-level`: sets the log level of a running gateway.
struct LogLevelCommand: Command {
    private let admin: AdminAddress
    private let options: Options

    /// - Throws: `UsageError` for a level that does not exist, and a span that is no duration or too long.
    init(_ options: Options, _ program: Program) throws(Options.UsageError) {
        let (levels, word) = (LogLevel.allCases.map(\.name), options.words.first ?? "")
        guard levels.contains(word) else {
            let hint = Suggestion.phrase(for: word, among: levels)
            throw Options.UsageError(message: "expected one of \(levels.joined(separator: ", "))\(hint)")
        }
        if let span = options["for"], AdminLogLevel.span(span) == nil {
            throw Options.UsageError(message: "--for must be \(AdminLogLevel.spans)")
        }
        self.options = options
        admin = AdminAddress(options, program.registry)
    }

    func run() throws(StartError) -> ExitCode {
        var body: JSONObject = ["level": .string(options.words.first ?? "")]
        if let span = options["for"] { body["for"] = .string(span) }
        let shown = try admin.requests().shown("/log/level", with: "level", method: "POST", json: body)
        guard let document = shown else { return .ok }
        let span = document["seconds"]?.int64.map { " for \(StatusCommand.duration($0))" } ?? ""
        Output.line("\(document["level"]?.string ?? "")\(span)")
        return .ok
    }

    static let grammar = CommandGrammar("log-level", "Set the log level of the running gateway") { grammar in
        grammar.details = """
            Sets the log level of the running gateway, through its admin listener: for a while, or until a reload with
            another log.level.
            """
        grammar.arguments = [
            .one("LEVEL", .choice(LogLevel.allCases.map(\.name)), LogLevel.allCases.map(\.name).joined(separator: ", "))
        ]
        grammar.options = [
            .value("for", "DURATION", .duration, "when the configured level returns, such as 10m; default: never"),
            .flag("json", "print the response of the gateway, as JSON"),
        ]
        grammar.addAdminOptions()
        grammar.example("martlet log-level debug --for 10m", "why credentials are rejected")
        grammar.exits = [
            .ok: "set", .unavailable: "no gateway is running, or it rejects the request",
            .configuration: AdminAddress.configurationExit,
        ]
    }
}
