internal import MartletCore
internal import MartletJSON
internal import MartletServer

/// `martlet provider list|refresh`: the state of the running gateway's providers, and fetching an issuer's keys now.
struct ProviderCommand: Command {
    private let name: String?
    private let printsJSON: Bool
    private let admin: AdminAddress

    init(_ options: Options, _ program: Program) {
        name = options.words.first == "refresh" ? options.words[1] : nil
        printsJSON = options.has("json")
        admin = AdminAddress(options, program.registry)
    }

    func run() -> ExitCode {
        let unknown = StartError(
            code: "provider.unknown", message: "no such provider, or it uses no keys of an issuer", exit: .rejected)
        return admin.run("provider", unknown: unknown, printsJSON: printsJSON) { gateway throws(StartError) in
            if let name {
                let path = "/providers/\(AdminRequests.escaped(name))/refresh"
                if try gateway.shown(path, with: "provider", method: "POST") != nil { Output.line("refreshed") }
            } else if let document = try gateway.shown("/providers", with: "providers") {
                var table = TablePrinter("PROVIDER", "KIND", "STATE", "DETAIL")
                for provider in document["providers"]?.array ?? [] {
                    let columns = ["name", "kind", "state", "detail"].map { provider.object?[$0]?.string ?? "" }
                    table.add(columns.map(TerminalText.escaped).joined(separator: "\t"))
                }
                table.finish()
            }
        }
    }

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
