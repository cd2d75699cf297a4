internal import MartletJSON
internal import MartletServer

/// `martlet provider list|refresh`: the state of the running gateway's providers, and fetching an issuer's keys now.
struct ProviderCommand: Command {
    private let name: String?
    private let printsJSON: Bool
    private let requests: AdminRequests

    init(_ options: Options, _ program: Program) {
        name = options.words.first == "refresh" ? options.words[1] : nil
        printsJSON = options.has("json")
        requests = AdminRequests("provider", options, program)
    }

    func run() -> ExitCode {
        requests.run { () throws(StartError) in
            guard let name else { return list(try requests.send("/providers")) }
            let response = try requests.send("/providers/\(AdminQuery.escaped(name))/refresh", method: "POST")
            guard response.status == 200, response.document?.object?["provider"] != nil else {
                return requests.fail(response, unknown: "no such provider, or it uses no keys of an issuer")
            }
            printsJSON ? Output.line(response.text) : Output.line("refreshed")
            return .ok
        }
    }

    private func list(_ response: AdminClient.Response) -> ExitCode {
        guard response.status == 200, let providers = response.document?.object?["providers"]?.array else {
            return requests.fail(response, unknown: "not a response of a gateway")
        }
        if printsJSON {
            Output.line(response.text)
            return .ok
        }
        var table = TablePrinter("PROVIDER", "KIND", "STATE", "DETAIL")
        for provider in providers {
            let columns = ["name", "kind", "state", "detail"].map { provider.object?[$0]?.string ?? "" }
            table.add(columns.map(TerminalText.escaped).joined(separator: "\t"))
        }
        table.finish()
        return .ok
    }
}

extension ProviderCommand {
    static let grammar = CommandGrammar("provider", "Show the running gateway's providers; fetch an issuer's keys now")
    {
        grammar in
        grammar.details = """
            Shows the state of the running gateway's providers, or fetches the keys of a provider's issuer now, whatever their
            age, through its admin listener.
            """
        let shared: [CommandOption] =
            [.flag("json", "print the response of the gateway, as JSON")] + AdminAddress.options
        grammar.subcommands = [
            CommandGrammar("list", "Show every provider") { $0.options = shared },
            CommandGrammar("refresh", "Fetch the keys of a provider's issuer now") { refresh in
                refresh.arguments = [.one("NAME", .text, "the provider, as in the configuration")]
                refresh.options = shared
                refresh.example(
                    "martlet provider refresh apple", "after an outage, or when the issuer has changed its keys")
            },
        ]
        for index in grammar.subcommands.indices {
            grammar.subcommands[index].alternatives = AdminAddress.alternatives
        }
        grammar.example("martlet provider list", "the providers with their state")
        grammar.exits = [
            .ok: "done", .rejected: "no such provider, or it uses no keys of an issuer",
            .unavailable: "the issuer's keys could not be fetched, or no gateway is running",
            .configuration: AdminAddress.configurationExit,
        ]
    }
}
