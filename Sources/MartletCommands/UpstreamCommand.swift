internal import MartletConfig
internal import MartletCore
internal import MartletDecisions
internal import MartletJSON
internal import MartletProvider
internal import MartletServer

/// `martlet upstream list|drain|restore`: the state of the running gateway's endpoints, and taking one out of use and
/// back.
struct UpstreamCommand: Command {
    private enum Action: String, CaseIterable { case list, drain, restore }

    private let action: Action
    private let upstream: String
    private let endpoint: String
    private let admin: AdminAddress

    init(_ options: Options, _ program: Program) {
        action = options.words.first.flatMap(Action.init) ?? .list
        (upstream, endpoint) = action == .list ? ("", "") : (options.words[1], options.words[2])
        admin = AdminAddress(options, program.registry)
    }

    func run() throws(StartError) -> ExitCode {
        let gateway = try admin.requests()
        if action != .list {
            try change(gateway)
        } else if let document = try gateway.shown("/upstreams", with: "upstreams") {
            list(document["upstreams"]?.array ?? [])
        }
        return .ok
    }

    private func change(_ gateway: AdminRequests) throws(StartError) {
        // No other name is configured, and none may change the target of the request.
        guard EntityName.validationError(in: upstream) == nil else {
            throw StartError(
                code: "upstream.bad_name", message: "'\(upstream)' is not the name of an upstream", exit: .usage)
        }
        let done = try gateway.shown(
            "/upstreams/\(upstream)/\(action.rawValue)", with: "endpoint", method: "POST",
            json: ["endpoint": .string(endpoint)])
        if done != nil { Output.line(action == .drain ? "drained" : "restored") }
    }

    private func list(_ upstreams: [JSONValue]) {
        var table = TablePrinter("UPSTREAM", "ENDPOINT", "STATE", "REASON")
        for upstream in upstreams {
            let name = upstream.object?["name"]?.string ?? ""
            for endpoint in upstream.object?["endpoints"]?.array ?? [] {
                guard let endpoint = endpoint.object else { continue }
                let address = endpoint["address"]?.string.map { " (\($0))" } ?? ""
                let columns = [
                    name, "\(endpoint["endpoint"]?.string ?? "")\(address)", endpoint["state"]?.string ?? "",
                    endpoint["reason"]?.string ?? "",
                ]
                table.add(columns.map(TerminalText.escaped).joined(separator: "\t"))
            }
        }
        table.finish()
    }

    static let grammar = CommandGrammar("upstream", "Show the running gateway's endpoints; take one out of use") {
        grammar in
        grammar.details = """
            Shows the state of the running gateway's endpoints, or takes one out of use and back, through its admin listener.
            Requests that an endpoint has are finished; it gets no others until it is restored or the gateway ends.
            """
        let json = CommandOption.flag("json", "print the response of the gateway, as JSON")
        let named: [CommandArgument] = [
            .one("NAME", .text, "the upstream, as in the configuration"),
            .one("URL", .url, "the endpoint, as in the configuration"),
        ]
        grammar.subcommands = [
            CommandGrammar("list", "Show every endpoint"),
            CommandGrammar("drain", "Take an endpoint out of use") { $0.arguments = named },
            CommandGrammar("restore", "Use an endpoint again") { restore in
                restore.arguments = named
                restore.example("martlet upstream restore api http://127.0.0.1:9000", "after the update")
            },
        ]
        for index in grammar.subcommands.indices {
            grammar.subcommands[index].options = [json]
            grammar.subcommands[index].addAdminOptions()
        }
        grammar.example("martlet upstream list", "the endpoints with their state")
        grammar.example("martlet upstream drain api http://127.0.0.1:9000", "before a machine is updated")
        grammar.exits = [
            .ok: "done", .unavailable: "no such upstream or endpoint, or no gateway is running",
            .configuration: AdminAddress.configurationExit,
        ]
    }
}
