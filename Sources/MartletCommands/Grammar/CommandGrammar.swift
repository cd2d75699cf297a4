internal import MartletServer

/// A command or subcommand as data: the only description from which arguments are parsed, and help, suggestions,
/// completion scripts and the manual page are made.
struct CommandGrammar: Sendable {
    struct Example: Sendable {
        let line: String
        let purpose: String
    }

    /// Options of which at most one may be given, or exactly one.
    struct Alternatives: Sendable {
        let names: [String]
        let isRequired: Bool

        static func atMostOne(_ names: String...) -> Self { Self(names: names, isRequired: false) }
        static func exactlyOne(_ names: String...) -> Self { Self(names: names, isRequired: true) }
    }

    let name: String
    let summary: String
    var details = ""
    var arguments: [CommandArgument] = []
    var options: [CommandOption] = []
    var alternatives: [Alternatives] = []
    /// A command with subcommands has no arguments of its own; its options are those of all of them.
    var subcommands: [CommandGrammar] = []
    var examples: [Example] = []
    /// What exit codes mean, besides 64 for usage; a subcommand without any has those of its command.
    var exits: KeyValuePairs<ExitCode, String> = [:]
    /// Whether an argument may be a secret, which error messages must not repeat.
    var isSilent = false
    var isHidden = false

    init(_ name: String, _ summary: String) {
        self.name = name
        self.summary = summary
    }

    init(_ name: String, _ summary: String, _ change: (inout CommandGrammar) -> Void) {
        self.init(name, summary)
        change(&self)
    }

    /// The subcommands that lists have.
    var listedSubcommands: [CommandGrammar] { subcommands.filter { !$0.isHidden } }

    /// The options of the command and of all its subcommands, each name once.
    var allOptions: [CommandOption] {
        var known: Set<String> = []
        return (options + listedSubcommands.flatMap(\.allOptions)).filter { known.insert($0.name).inserted }
    }

    /// The names of subcommands and positions that arguments may have, at most.
    var maximumWords: Int {
        guard subcommands.isEmpty else { return 1 + (subcommands.map(\.maximumWords).max() ?? 0) }
        return arguments.reduce(0) { $0 + $1.maximumCount }
    }

    subscript(name: String) -> CommandGrammar? { subcommands.first { $0.name == name } }

    mutating func example(_ line: String, _ purpose: String) {
        examples.append(Example(line: line, purpose: purpose))
    }
}

/// What the value of an option or an argument is, for completion.
enum ValueKind: Sendable, Equatable {
    case file, folder, url, address, number, duration
    case choice([String])
    case command
    /// Any text, though these words have a meaning.
    case words([String])
    /// Any other text.
    case text
}

/// An option of a command: `--name`, or `--name VALUE`.
struct CommandOption: Sendable {
    let name: String
    /// The name of its value in help: `FILE`; `nil` for a flag.
    let placeholder: String?
    let kind: ValueKind
    /// What it does, without a period.
    let summary: String
    var isRepeatable = false
    var isRequired = false
    /// The letter of its short form: `c` of `-c`.
    var letter: String?

    static func flag(_ name: String, _ summary: String) -> Self {
        Self(name: name, placeholder: nil, kind: .text, summary: summary)
    }

    static func value(_ name: String, _ placeholder: String, _ kind: ValueKind, _ summary: String) -> Self {
        Self(name: name, placeholder: placeholder, kind: kind, summary: summary)
    }

    static func choice(_ name: String, _ choices: [String], _ summary: String) -> Self {
        Self(name: name, placeholder: choices.joined(separator: "|"), kind: .choice(choices), summary: summary)
    }

    var required: Self { with(\.isRequired) }
    var repeatable: Self { with(\.isRepeatable) }

    private func with(_ property: WritableKeyPath<Self, Bool>) -> Self {
        var option = self
        option[keyPath: property] = true
        return option
    }

    func short(_ letter: String) -> Self {
        var option = self
        option.letter = letter
        return option
    }

    /// Its names as they are typed, the short one first: `-c`, `--config`.
    var names: [String] { (letter.map { ["-\($0)"] } ?? []) + ["--\(name)"] }

    /// `-c, --config FILE`, for lists.
    var term: String { (letter.map { "-\($0), " } ?? "") + usage }

    /// `--config FILE`.
    var usage: String { placeholder.map { "--\(name) \($0)" } ?? "--\(name)" }
}

extension CommandOption {
    /// `--config FILE` of every command that reads the configuration.
    static let config = value(
        "config", "FILE", .file,
        "the configuration, - for standard input; default: $\(ConfigurationPath.variable), else config.yaml, else "
            + ConfigurationPath.system
    ).short("c")
    /// `--json` of commands with a document as output.
    static let json = flag("json", "print JSON")
}

/// A positional argument of a command.
struct CommandArgument: Sendable {
    /// Its name in help: `NAME`.
    let placeholder: String
    let kind: ValueKind
    /// What it is, without a period.
    let summary: String
    var minimumCount = 1
    var maximumCount = 1

    static func one(_ placeholder: String, _ kind: ValueKind, _ summary: String) -> Self {
        Self(placeholder: placeholder, kind: kind, summary: summary)
    }

    static func optional(_ placeholder: String, _ kind: ValueKind, _ summary: String) -> Self {
        Self(placeholder: placeholder, kind: kind, summary: summary, minimumCount: 0)
    }

    static func several(_ placeholder: String, _ kind: ValueKind, upTo limit: Int, _ summary: String) -> Self {
        Self(placeholder: placeholder, kind: kind, summary: summary, maximumCount: limit)
    }

    /// `NAME`, `[FILE]` or `NAME...`.
    var usage: String {
        let name = maximumCount > 1 ? "\(placeholder)..." : placeholder
        return minimumCount == 0 ? "[\(name)]" : name
    }
}
