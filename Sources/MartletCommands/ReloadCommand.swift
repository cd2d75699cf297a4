internal import MartletCore
internal import MartletJSON
internal import MartletProvider
internal import MartletServer

/// `martlet reload`: has the running gateway reload its configuration, and waits for the result.
struct ReloadCommand: Command {
    private static let timeout = Duration.seconds(15)

    private let admin: AdminAddress

    init(_ options: Options, _ program: Program) { admin = AdminAddress(options, program.registry) }

    func run() throws(StartError) -> ExitCode {
        let client = AdminClient(try admin.target(), timeout: ReloadCommand.timeout)
        let response = try client.request("/reload", method: "POST")
        let document = response.document?.object
        // What is not the response of a gateway is no document to be printed.
        if admin.printsJSON, let document, response.status == 200 || document["code"] != nil {
            Output.line(response.text)
            return Self.exit(response.status, document)
        }
        for diagnostic in document?["diagnostics"]?.array ?? [] {
            if let text = diagnostic.string { Output.error("\(text)\n") }
        }
        let exit = Self.exit(response.status, document)
        switch exit {
        case .ok: Output.line("reloaded")
        case .configuration:
            Output.error("martlet reload: configuration not reloaded; the running configuration stays in effect\n")
        default:
            let code = document?["code"]?.string.map(TerminalText.escaped) ?? "not a response of a gateway"
            Output.error("martlet reload: not reloaded: status \(response.status), \(code)\n")
        }
        return exit
    }

    private static func exit(_ status: Int, _ document: JSONObject?) -> ExitCode {
        switch (status, document?["status"]?.string, document?["code"]?.string) {
        case (200, "reloaded", _): .ok
        case (422, _, "configuration_refused"): .configuration
        default: .unavailable
        }
    }

    static let grammar = CommandGrammar("reload", "Have the running gateway reload its configuration") { grammar in
        grammar.details = """
            Has the running gateway reload its configuration, through its admin listener, and waits for the result.
            """
        grammar.options = [.flag("json", "print the response of the gateway, as JSON, also where it is a rejection")]
        grammar.addAdminOptions()
        grammar.example("martlet reload", "ends with 78 if the new configuration has errors")
        grammar.example("martlet reload --json", "for a pipeline: the response with its diagnostics")
        grammar.exits = [
            .ok: "reloaded", .unavailable: "no gateway is running",
            .configuration:
                "the new configuration has errors, which are printed, and the old one stays in effect; or "
                + AdminAddress.configurationExit,
        ]
    }
}
