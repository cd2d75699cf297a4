/// The commands with what can follow them, for completion scripts.
struct CompletionTree {
    /// A command, or the program itself.
    struct Node {
        /// The names below the program: `user add`; empty for the program.
        let path: String
        let subcommands: [(name: String, summary: String)]
        let options: [CommandOption]
        let arguments: [CommandArgument]

        /// What completes an argument by its position; a position of `nil` is every one.
        var argumentKinds: [(position: Int?, kind: ValueKind)] {
            arguments.enumerated().map { ($0.element.maximumCount > 1 ? nil : $0.offset, $0.element.kind) }
                .filter { $0.kind != .text }
        }
    }

    /// The program first, then each command before its subcommands.
    let nodes: [Node]
    static let help = CommandOption.flag("help", "print help")

    init(_ commands: [CommandGrammar]) {
        let listed = commands.filter { !$0.isHidden }
        let root = Node(
            path: "", subcommands: listed.map { ($0.name, $0.summary) }, options: [Self.help], arguments: [])
        nodes = [root] + listed.flatMap { Self.nodes($0, "", [], naming: listed) }
    }

    private static func nodes(
        _ grammar: CommandGrammar, _ parent: String, _ inherited: [CommandOption], naming all: [CommandGrammar]
    ) -> [Node] {
        // The words of a command that takes the names of others are completed like those.
        guard !grammar.arguments.contains(where: { $0.kind == .command }) else {
            return topics(grammar.name, all, options: grammar.options + [help])
        }
        let path = parent.isEmpty ? grammar.name : "\(parent) \(grammar.name)"
        let node = Node(
            path: path, subcommands: grammar.listedSubcommands.map { ($0.name, $0.summary) },
            options: inherited + grammar.allOptions + (inherited.contains { $0.name == "help" } ? [] : [help]),
            arguments: grammar.arguments)
        let shared = inherited + grammar.options
        return [node] + grammar.listedSubcommands.flatMap { nodes($0, path, shared, naming: all) }
    }

    /// A node below which the names of commands stand, with their own commands below.
    private static func topics(_ path: String, _ commands: [CommandGrammar], options: [CommandOption]) -> [Node] {
        let listed = commands.filter { !$0.isHidden }
        let node = Node(
            path: path, subcommands: listed.map { ($0.name, $0.summary) }, options: options, arguments: [])
        return [node] + listed.flatMap { topics("\(path) \($0.name)", $0.subcommands, options: options) }
    }

    var paths: [String] { nodes.dropFirst().map(\.path) }

    /// Every option with a value: its path and name.
    var valuedOptions: [(path: String, option: CommandOption)] {
        nodes.flatMap { node in node.options.filter { $0.placeholder != nil }.map { (node.path, $0) } }
    }
}

extension ValueKind {
    /// The words that a value is completed with; `nil` for other kinds.
    var choices: [String]? {
        switch self {
        case .choice(let choices), .words(let choices): choices
        default: nil
        }
    }
}
