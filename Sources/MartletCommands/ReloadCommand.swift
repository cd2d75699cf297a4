internal import MartletCore
internal import MartletJSON
internal import MartletProvider
internal import MartletServer

/// `martlet reload`: has the running gateway reload its configuration, and waits for the result.
struct ReloadCommand: Command {
    private static let timeout = Duration.seconds(15)

    private let admin: AdminAddress

    init(_ options: Options, _ program: Program) {
        admin = AdminAddress(options, program.registry)
    }

    func run() -> ExitCode {
        do throws(StartError) {
            let client = AdminClient(try admin.target(), timeout: ReloadCommand.timeout)
            let response = try client.request("/reload", method: "POST")
            return ReloadCommand.report(response)
        } catch {
            Output.error("martlet reload: \(error)\n")
            return error.exit
        }
    }

    private static func report(_ response: AdminClient.Response) -> ExitCode {
        let limits = JSONLimits(maximumDepth: 4, maximumBytes: response.body.count)
        let document = (try? JSON.parse(response.body, limits: limits))?.object
        for diagnostic in document?["diagnostics"]?.array ?? [] {
            if let text = diagnostic.string { Output.error("\(text)\n") }
        }
        switch (response.status, document?["status"]?.string, document?["code"]?.string) {
        case (200, "reloaded", _):
            Output.line("reloaded")
            return .ok
        case (422, _, "configuration_refused"):
            Output.error("martlet reload: configuration not reloaded; the running configuration stays in effect\n")
            return .configuration
        case (_, _, let code):
            Output.error(
                "martlet reload: not reloaded: status \(response.status), \(code ?? "not a response of a gateway")\n")
            return .unavailable
        }
    }
}

extension ReloadCommand {
    static let grammar = CommandGrammar("reload", "Have the running gateway reload its configuration") { grammar in
        grammar.details = """
            Has the running gateway reload its configuration, through its admin listener, and waits for the result.
            """
        grammar.options = AdminAddress.options
        grammar.alternatives = AdminAddress.alternatives
        grammar.example("martlet reload", "ends with 78 if the new configuration has errors")
        grammar.exits = [
            .ok: "reloaded", .unavailable: "no gateway is running",
            .configuration:
                "the new configuration has errors, which are printed, and the old one stays in effect",
        ]
    }
}
