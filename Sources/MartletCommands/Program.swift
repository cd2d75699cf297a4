internal import MartletConfig
internal import MartletPlugins
package import MartletProvider
package import MartletServer

/// The `martlet` program: parses the command and runs it.
package struct Program: Sendable {
    let registry: ProviderRegistry
    private let inherited: InheritedSockets

    /// - Parameters:
    ///   - registry: the provider kinds that are compiled in.
    ///   - inherited: the sockets that the process was started with.
    package init(_ registry: ProviderRegistry, _ inherited: InheritedSockets = InheritedSockets()) {
        var registry = registry
        registry.libraries = PluginLibraries()
        self.registry = registry
        self.inherited = inherited
    }

    private static let help = """
        usage: martlet <command> [options]

          init     [--config FILE]                      write a starter configuration
          run      [--config FILE] [--listen ADDRESS]   serve until SIGTERM; SIGHUP reloads, SIGUSR2 upgrades
          check    [--config FILE] [--online] [--strict] [--format json]
                                                        report all errors and warnings of a configuration
          explain  --path PATH | --url URL [--method M] [--host H] [--header LINE]... [--token FILE | --as FILE]
                   [--json] [--config FILE]             explain how a request would be handled
          demo     [--listen ADDRESS] [--tls] [--plugin FILE]...
                                                        a gateway to try, with simulated issuers and an upstream
          simulate apple [--listen ADDRESS] [--team TEAMID --key KEYID=FILE...] [--refresh-limit N]
                   | wechat [--listen ADDRESS] [--app ID:SECRET:VARIANT]...
                                                        a local Apple or WeChat, to test a configuration against
          user     add|passwd|disable|enable|delete|show|unlock NAME | list [--disabled] [--limit N] [--after NAME]
                   [--json] [--config FILE] [--provider NAME]
                                                        manage password users; reads the password from a prompt or stdin
          account  list [--disabled] [--claim NAME=VALUE] [--limit N] [--after SUBJECT] | show|disable|enable|delete SUBJECT
                   | set SUBJECT NAME=VALUE... | unset SUBJECT NAME... [--json] [--config FILE]
                                                        manage accounts and their claims
          accounts copy --from sqlite:PATH --to postgresql://... [--final] | migrate [--check] [--json] [--config FILE]
                                                        copy all accounts from SQLite to PostgreSQL; upgrade the schema
          key      create --subject S [--account] [--claims NAME=VALUE]... [--scope A,B] [--expires 90d] | list [--limit N]
                   [--after ID] | revoke ID | rotate ID [--grace 1h] [--json] [--config FILE] [--provider NAME]
                                                        manage API keys; create and rotate print the key, once
          session  list|end --subject SUBJECT [--id ID] [--provider NAME] [--limit N] [--after ID] [--json] [--config FILE]
                                                        show or end the sessions of a subject
          events   list [--hook NAME] [--state open|dead] [--json] | resend ID [--config FILE]
                                                        what webhooks have not received yet; send an event again
          apple    migrate export --to TEAMID [--output FILE] | import [FILE] [--dry-run] [--json] [--config FILE]
                                                        move the users of Sign in with Apple to another team
          keygen   accounts|store [--out FILE]          a new key for accounts.key_file or store.seal.key_file
          plugin   new NAME [--api FOLDER]              write the package of a provider in a shared library
          schema   [--plugin FILE]...                   the JSON Schema of the configuration
          reload   [--config FILE] [--admin URL]        have the running gateway reload its configuration
          upstream list | drain NAME URL | restore NAME URL [--json] [--config FILE] [--admin URL]
                                                        show the endpoints of the running gateway; take one out of use
          health   [--config FILE] [--admin URL]        check whether the running gateway is ready
          version                                       print the version
          help     [COMMAND]                            this text, or the help of a command, as COMMAND --help

        """

    /// Every command, for suggestions.
    static let commands = [
        "init", "run", "check", "explain", "demo", "simulate", "user", "account", "accounts", "key", "session",
        "events", "apple", "keygen", "plugin", "schema", "reload", "upstream", "health", "version", "help",
    ]

    /// Whether the command runs until a signal ends it.
    package static func serves(_ arguments: [String]) -> Bool { ["run", "demo", "simulate"].contains(arguments.first) }

    /// Whether the command uses sockets that the process was started with.
    package static func inherits(_ arguments: [String]) -> Bool { arguments.first == "run" }

    /// Runs the command of the arguments, which do not include the program's name.
    package func run(_ arguments: [String]) async -> ExitCode {
        guard let command = arguments.first else {
            Output.error(Program.help)
            return .usage
        }
        let code = await run(command, Array(arguments.dropFirst()))
        if let reason = Output.writeError {
            Output.error("martlet: cannot write to standard output: \(reason)\n")
            return .internalFault
        }
        return code
    }

    private func run(_ command: String, _ rest: [String]) async -> ExitCode {
        do throws(Options.UsageError) {
            return try await perform(command, rest)
        } catch {
            if error.wantsHelp {
                Output.line(CommandHelp.text(of: command) ?? Program.help)
                return .ok
            }
            let hint = CommandHelp.text(of: command) == nil ? "" : "\nRun 'martlet \(command) --help' for usage."
            Output.error("martlet \(command): \(error.message)\(hint)\n")
            return .usage
        }
    }

    private func perform(_ command: String, _ rest: [String]) async throws(Options.UsageError) -> ExitCode {
        switch command {
        case "init": return try InitCommand(Options(rest, allowing: ["config"])).run()
        case "run":
            return await RunCommand(try Options(rest, allowing: ["config", "listen"]), registry, inherited).run()
        case "check":
            let options = try Options(rest, allowing: ["config", "format"], flags: ["online", "strict"])
            return try await CheckCommand(options, registry).run()
        case "schema": return SchemaCommand(try SchemaCommand.options(rest), registry).run()
        case "reload": return ReloadCommand(try Options(rest, allowing: AdminAddress.options), registry).run()
        case "upstream": return try UpstreamCommand(UpstreamCommand.options(rest), registry).run()
        case "health": return HealthCommand(try Options(rest, allowing: AdminAddress.options), registry).run()
        case "explain": return try await ExplainCommand(ExplainCommand.options(rest), registry).run()
        case "demo":
            return try await DemoCommand(DemoCommand.options(rest), registry).run()
        case "simulate":
            return try await SimulateCommand(
                Options(
                    rest, allowing: ["listen", "team", "refresh-limit"], repeatable: ["app", "key"], words: 1,
                    isSilent: true)
            ).run()
        case "user":
            let options = try Options(
                rest, allowing: ["config", "provider", "limit", "after"], flags: ["json", "disabled"], words: 2,
                isSilent: true)
            return try await UserCommand(options, registry).run()
        case "account":
            let options = try Options(
                rest, allowing: ["config", "claim", "limit", "after"], flags: ["json", "disabled"],
                words: AccountCommand.maximumWords)
            return try await AccountCommand(options, registry).run()
        case "key": return try await KeyCommand(rest, registry).run()
        case "session":
            let options = try Options(
                rest, allowing: ["config", "subject", "id", "provider", "limit", "after"], flags: ["json"], words: 1)
            return try await SessionCommand(options, registry).run()
        case "events":
            let options = try Options(rest, allowing: ["config", "hook", "state"], flags: ["json"], words: 2)
            return try await EventsCommand(options, registry).run()
        case "apple":
            let options = try Options(
                rest, allowing: ["config", "provider", "to", "output"], flags: ["dry-run", "json"], words: 3)
            return try await MigrateCommand(options, registry).run()
        case "accounts":
            let options = try Options(
                rest, allowing: ["from", "to", "config"], flags: ["final", "check", "json"], words: 1)
            return try await AccountsCommand(options, registry).run()
        case "plugin":
            return try PluginCommand(Options(rest, allowing: ["api", "report"], words: 2)).run()
        case "keygen": return try KeygenCommand(Options(rest, allowing: ["out"], words: 1)).run()
        case "version", "--version", "-V":
            _ = try Options(rest, allowing: [])
            Output.line("martlet \(Gateway.version)")
            return .ok
        case "help", "--help", "-h": return try help(rest)
        default: return unknown(command)
        }
    }

    private func help(_ rest: [String]) throws(Options.UsageError) -> ExitCode {
        guard let command = try Options(rest, allowing: [], words: 1).words.first else {
            Output.line(Program.help)
            return .ok
        }
        guard Program.commands.contains(command) else { return unknown(command) }
        Output.line(CommandHelp.text(of: command) ?? Program.help)
        return .ok
    }

    private func unknown(_ command: String) -> ExitCode {
        let name = TerminalText.name(command).map { " '\($0)'" } ?? ""
        let hint = Suggestion.phrase(for: command, among: Program.commands)
        Output.error("martlet: unknown command\(name)\(hint)\n\n\(Program.help)")
        return .usage
    }
}
