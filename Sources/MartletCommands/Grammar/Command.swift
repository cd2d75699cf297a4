internal import MartletServer

/// A command of the program.
///
/// To add one, write a type with a grammar, and name it in ``Program/commands``.
protocol Command: Sendable {
    /// Its arguments, help and examples.
    static var grammar: CommandGrammar { get }
    static var servesUntilSignal: Bool { get }
    /// Whether it uses sockets that the process was started with.
    static var inheritsSockets: Bool { get }

    /// - Parameter options: arguments that its grammar accepts.
    /// - Throws: `UsageError` for what the grammar cannot express.
    init(_ options: Options, _ program: Program) throws(Options.UsageError)

    /// The name in front of its errors.
    var title: String { get }

    /// Runs the command.
    /// - Throws: what ends it, which the program prints.
    func run() async throws(StartError) -> ExitCode
}

extension Command {
    static var servesUntilSignal: Bool { false }
    static var inheritsSockets: Bool { false }
    var title: String { Self.grammar.name }
}
