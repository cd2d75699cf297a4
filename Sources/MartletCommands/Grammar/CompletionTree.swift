/// The commands with what can follow them, for completion scripts.
struct CompletionTree {
    /// A command, or the program itself.
    struct Node {
        /// The names below the program: `user add`; empty for the program.
        let path: String
        let subcommands: [(name: String, summary: String)]
        let options: [CommandOption]
        let arguments: [CommandArgument]

        /// What completes an argument that is no subcommand.
        var argumentKinds: [ValueKind] { arguments.map(\.kind).filter { $0 != .text } }
    }

    /// The program first, then each command before its subcommands.
    let nodes: [Node]
    /// `--help` of every command.
    static let help = CommandOption.flag("help", "print help")

    init(_ commands: [CommandGrammar]) {
        let listed = commands.filter { !$0.isHidden }
        let root = Node(
            path: "", subcommands: listed.map { ($0.name, $0.summary) }, options: [Self.help], arguments: [])
        nodes = [root] + listed.flatMap { Self.nodes($0, "", []) }
    }

    private static func nodes(
        _ grammar: CommandGrammar, _ parent: String, _ inherited: [CommandOption]
    ) -> [Node] {
        let path = parent.isEmpty ? grammar.name : "\(parent) \(grammar.name)"
        let node = Node(
            path: path, subcommands: grammar.listedSubcommands.map { ($0.name, $0.summary) },
            options: inherited + grammar.allOptions + (inherited.contains { $0.name == "help" } ? [] : [help]),
            arguments: grammar.arguments)
        let shared = inherited + grammar.options
        return [node] + grammar.listedSubcommands.flatMap { nodes($0, path, shared) }
    }

    /// The names of the commands.
    var commandNames: [String] { nodes.first?.subcommands.map(\.name) ?? [] }

    /// The paths of all commands.
    var paths: [String] { nodes.dropFirst().map(\.path) }

    /// Every option with a value: its path and name.
    var valuedOptions: [(path: String, option: CommandOption)] {
        nodes.flatMap { node in node.options.filter { $0.placeholder != nil }.map { (node.path, $0) } }
    }
}

extension ValueKind {
    /// The words that a value may be; `nil` for other kinds.
    func choices(_ tree: CompletionTree) -> [String]? {
        switch self {
        case .choice(let choices): choices
        case .command: tree.commandNames
        default: nil
        }
    }
}
