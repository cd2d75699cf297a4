internal import MartletCore
internal import MartletJSON
internal import MartletServer

/// `martlet provider list|refresh`: the state of the running gateway's providers, and fetching an issuer's keys now.
struct ProviderCommand: Command {
    private let name: String?
    private let admin: AdminAddress

    init(_ options: Options, _ program: Program) {
        name = options.words.first == "refresh" ? options.words[1] : nil
        admin = AdminAddress(options, program.registry)
    }

    func run() throws(StartError) -> ExitCode {
        let unknown = StartError(
            code: "provider.unknown", message: "no such provider, or it uses no keys of an issuer", exit: .rejected)
        let gateway = try admin.requests(unknown: unknown)
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
        return .ok
    }

    static let grammar = CommandGrammar("provider", "Show the running gateway's providers; fetch an issuer's keys now")
    {
        grammar in
        grammar.details = """
            Shows the state of the running gateway's providers, or fetches the keys of a provider's issuer now, whatever their
            age, through its admin listener.
            """
        let json = CommandOption.flag("json", "print the response of the gateway, as JSON")
        grammar.subcommands = [
            CommandGrammar("list", "Show every provider"),
            CommandGrammar("refresh", "Fetch the keys of a provider's issuer now") { refresh in
                refresh.arguments = [.one("NAME", .text, "the provider, as in the configuration")]
                refresh.example(
                    "martlet provider refresh apple", "after an outage, or when the issuer has changed its keys")
            },
        ]
        for index in grammar.subcommands.indices {
            grammar.subcommands[index].options = [json]
            grammar.subcommands[index].addAdminOptions()
        }
        grammar.example("martlet provider list", "the providers with their state")
        grammar.exits = [
            .ok: "done", .rejected: "no such provider, or it uses no keys of an issuer",
            .unavailable: "the issuer's keys could not be fetched, or no gateway is running",
            .configuration: AdminAddress.configurationExit,
        ]
    }
}
