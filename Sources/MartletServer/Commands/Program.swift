private import CLinux
package import MartletProvider

/// The `martlet` command: one type per word of its help.
package struct Program: Sendable {
    /// The version that `martlet version` prints.
    package static let version = "0.1.0"

    let registry: ProviderRegistry
    private let inheritance: Inheritance

    /// - Parameters:
    ///   - registry: the provider plugins that are compiled in.
    ///   - inheritance: what the process was started with.
    package init(_ registry: ProviderRegistry, _ inheritance: Inheritance = Inheritance()) {
        self.registry = registry
        self.inheritance = inheritance
    }

    private static let help = """
        usage: martlet <command> [options]

          run      [--config FILE] [--listen ADDRESS]   serve until SIGTERM; SIGHUP reloads, SIGUSR2 upgrades
          check    [--config FILE] [--online]           say everything that is wrong with a configuration
          explain  --path PATH [--method M] [--host H] [--token FILE] [--config FILE]
                                                        say what would happen to a request
          demo     [--listen ADDRESS] [--tls]           a gateway to try, with an issuer and an upstream of its own
          user     add|passwd|disable|enable NAME | list [--config FILE] [--provider NAME]
                                                        password users; a password is asked for, or read from stdin
          schema                                        the JSON Schema of the configuration
          health   [--config FILE] [--address ADDRESS]  ask the running gateway whether it is ready
          version                                       print the version

        """

    /// Whether the command goes on until a signal ends it.
    package static func serves(_ arguments: [String]) -> Bool { ["run", "demo"].contains(arguments.first) }

    /// Whether the command takes over sockets that the process was started with.
    package static func inherits(_ arguments: [String]) -> Bool { arguments.first == "run" }

    /// Runs the command that the arguments (without the program's name) ask for.
    package func run(_ arguments: [String]) async -> ExitCode {
        guard let command = arguments.first else {
            Output.error(Program.help)
            return .usage
        }
        do {
            let rest = Array(arguments.dropFirst())
            switch command {
            case "run":
                return await RunCommand(try Options(rest, allowing: ["config", "listen"]), registry, inheritance).run()
            case "check":
                return await CheckCommand(try Options(rest, allowing: ["config"], flags: ["online"]), registry).run()
            case "schema": return SchemaCommand(try Options(rest, allowing: []), registry).run()
            case "health": return HealthCommand(try Options(rest, allowing: ["config", "address"]), registry).run()
            case "explain":
                let names: Set = ["path", "method", "host", "token", "config"]
                return try await ExplainCommand(Options(rest, allowing: names), registry).run()
            case "demo":
                return try await DemoCommand(
                    Options(rest, allowing: ["listen"], flags: ["tls"]), registry
                ).run()
            case "user":
                return try await UserCommand(Options(rest, allowing: ["config", "provider"], words: 2), registry).run()
            case "version", "--version":
                Output.line("martlet \(Program.version)")
                return .ok
            case "help", "--help", "-h":
                Output.line(Program.help)
                return .ok
            default:
                Output.error("martlet: there is no command '\(command)'\n\n\(Program.help)")
                return .usage
            }
        } catch {
            Output.error("martlet \(command): \(error.message)\n")
            return .usage
        }
    }
}

/// `--name value` and `--flag` arguments of a command.
package struct Options: Sendable {
    private var values: [String: String] = [:]
    private var flags: Set<String> = []
    /// What is no option, in order.
    private(set) var words: [String] = []

    /// Arguments that a command does not know.
    struct UsageError: Error {
        let message: String
    }

    /// - Parameters:
    ///   - allowing: names that take a value.
    ///   - flags: names that take none.
    ///   - limit: how many words may stand between the options, and behind `--`.
    init(
        _ arguments: [String], allowing names: Set<String>, flags known: Set<String> = [], words limit: Int = 0
    ) throws(UsageError) {
        var index = 0
        var areWords = false
        while index < arguments.count {
            let argument = arguments[index]
            guard argument.hasPrefix("--"), !areWords else {
                guard words.count < limit else { throw UsageError(message: "unexpected argument '\(argument)'") }
                words.append(argument)
                index += 1
                continue
            }
            if argument == "--", limit > 0 {
                areWords = true
                index += 1
                continue
            }
            let parts = argument.dropFirst(2).split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
            let name = String(parts[0])
            if known.contains(name), parts.count == 1 {
                flags.insert(name)
            } else if names.contains(name) {
                guard values[name] == nil else { throw UsageError(message: "--\(name) is given twice") }
                if parts.count == 2 {
                    values[name] = String(parts[1])
                } else {
                    index += 1
                    guard index < arguments.count else { throw UsageError(message: "--\(name) needs a value") }
                    values[name] = arguments[index]
                }
            } else {
                throw UsageError(message: "unknown option '\(argument)'")
            }
            index += 1
        }
    }

    subscript(name: String) -> String? { values[name] }
    func has(_ flag: String) -> Bool { flags.contains(flag) }
}

/// Standard output and error, unbuffered.
enum Output {
    static func line(_ text: String) { put(text.hasSuffix("\n") ? text : text + "\n", to: 1) }
    static func error(_ text: String) { put(text, to: 2) }

    private static func put(_ text: String, to descriptor: Int32) {
        var bytes = ArraySlice(text.utf8)
        while !bytes.isEmpty {
            let written = unsafe bytes.withUnsafeBytes { unsafe write(descriptor, $0.baseAddress, $0.count) }
            guard written > 0 else { return }
            bytes = bytes.dropFirst(written)
        }
    }
}
