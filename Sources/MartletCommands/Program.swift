internal import MartletConfig
internal import MartletPlugins
package import MartletProvider
package import MartletServer

/// The `martlet` program: parses the command and runs it.
package struct Program: Sendable {
    let registry: ProviderRegistry
    let inherited: InheritedSockets

    /// - Parameters:
    ///   - registry: the provider kinds that are compiled in.
    ///   - inherited: the sockets that the process was started with.
    package init(_ registry: ProviderRegistry, _ inherited: InheritedSockets = InheritedSockets()) {
        var registry = registry
        let libraries = PluginLibraries()
        registry.loadLibraries = { libraries.load($0, into: &$1, &$2) }
        self.registry = registry
        self.inherited = inherited
    }

    /// Every command, in the order of lists.
    static let commands: [any Command.Type] = [
        InitCommand.self, RunCommand.self, CheckCommand.self, ExplainCommand.self, ConfigCommand.self,
        DemoCommand.self, SimulateCommand.self, UserCommand.self, AccountCommand.self, AccountsCommand.self,
        KeyCommand.self, SessionCommand.self, EventsCommand.self, MigrateCommand.self, AuditCommand.self,
        KeygenCommand.self,
        PluginCommand.self, SchemaCommand.self, StatusCommand.self, TailCommand.self, LogLevelCommand.self,
        ReloadCommand.self, UpstreamCommand.self, ProviderCommand.self, HealthCommand.self,
        CompletionCommand.self, ManCommand.self, VersionCommand.self, HelpCommand.self,
    ]

    private static let aliases = ["--version": "version", "-V": "version", "--help": "help", "-h": "help"]

    /// The command of a name or of an option that stands for one.
    static func command(_ name: String?) -> (any Command.Type)? {
        guard let name else { return nil }
        return commands.first { $0.grammar.name == aliases[name] ?? name }
    }

    /// Whether the command runs until a signal ends it.
    package static func serves(_ arguments: [String]) -> Bool { command(arguments.first)?.servesUntilSignal ?? false }

    /// Whether the command uses sockets that the process was started with.
    package static func inherits(_ arguments: [String]) -> Bool { command(arguments.first)?.inheritsSockets ?? false }

    /// Runs the command of the arguments, which do not include the program's name.
    package func run(_ arguments: [String]) async -> ExitCode {
        guard let name = arguments.first else {
            Output.error(HelpCommand.overview)
            return .usage
        }
        let former = FormerSpelling(arguments)
        if let former { Output.error("martlet: \(former.note)\n") }
        guard let command = Program.command(former?.arguments.first ?? name) else { return Program.unknown(name) }
        let code = await run(command, Array((former?.arguments ?? arguments).dropFirst()), unknown: former?.unknown)
        if let reason = Output.writeError {
            Output.error("martlet: cannot write to standard output: \(reason)\n")
            return .internalFault
        }
        return code
    }

    /// - Parameter unknown: the exit code for what does not exist, instead of 64.
    private func run(_ command: any Command.Type, _ rest: [String], unknown: ExitCode?) async -> ExitCode {
        let grammar = command.grammar
        do throws(Options.UsageError) {
            let code = await Self.run(try command.init(Options(rest, grammar), self))
            return code == .usage ? unknown ?? code : code
        } catch {
            if let topic = error.helpTopic {
                Output.line(HelpPage(grammar).page(for: topic).text)
                return .ok
            }
            Output.error(
                "martlet \(grammar.name): \(error.message)\nRun 'martlet \(grammar.name) --help' for usage.\n")
            return .usage
        }
    }

    private static func run(_ command: any Command) async -> ExitCode {
        do throws(StartError) {
            return try await command.run()
        } catch {
            Output.error("martlet \(command.title): \(error)\n")
            return error.exit
        }
    }

    static func unknown(_ command: String) -> ExitCode {
        let name = TerminalText.name(command).map { " '\($0)'" } ?? ""
        let hint = Suggestion.phrase(for: command, among: commands.map { $0.grammar.name })
        Output.error("martlet: unknown command\(name)\(hint)\nRun 'martlet help' for the commands.\n")
        return .usage
    }
}
