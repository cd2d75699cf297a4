internal import MartletConfig

/// The parsed arguments of a command: `--name value`, `--flag` and words, as its grammar describes them.
///
/// Error messages do not repeat arguments, because one of them may be a password.
struct Options: Sendable {
    private var values: [String: [String]] = [:]
    private var flags: Set<String> = []
    private(set) var words: [String] = []

    /// Invalid arguments, or a request for help.
    struct UsageError: Error {
        let message: String
        /// The words before `--help`; `nil` if help was not requested.
        var helpTopic: [String]?
    }

    /// - Throws: `UsageError` unless the grammar accepts the arguments.
    init(_ arguments: [String], _ grammar: CommandGrammar) throws(UsageError) {
        let known = grammar.scannedOptions
        let limit = grammar.maximumWords
        var index = 0
        var areWords = false
        while index < arguments.count {
            let argument = arguments[index]
            if !areWords, argument == "--help" || argument == "-h" {
                throw UsageError(message: "", helpTopic: words)
            }
            if !areWords, argument == "--", limit > 0 {
                areWords = true
            } else if let option = known.first(where: { $0.names.first == argument }), !areWords {
                index += try parseOption(
                    "--\(option.name)", next: arguments.dropFirst(index + 1).first, at: index, known,
                    isSilent: grammar.isSilent)
            } else if argument.hasPrefix("--"), !areWords {
                index += try parseOption(
                    argument, next: arguments.dropFirst(index + 1).first, at: index, known, isSilent: grammar.isSilent)
            } else {
                // `-config`: a path that begins like this can be written `./-config`.
                if !areWords, argument.count > 2, argument.hasPrefix("-"),
                    let option = known.first(where: { argument.dropFirst() == $0.name })
                {
                    throw UsageError(message: "unknown option '-\(option.name)'; did you mean '--\(option.name)'?")
                }
                guard words.count < limit else { throw Options.unexpected(argument, at: index) }
                words.append(argument)
            }
            index += 1
        }
        try check(grammar)
    }

    /// - Returns: how many following arguments it consumes.
    private mutating func parseOption(
        _ argument: String, next: String?, at index: Int, _ known: [CommandOption], isSilent: Bool
    ) throws(UsageError) -> Int {
        let parts = argument.dropFirst(2).split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
        let name = String(parts[0])
        guard let option = known.first(where: { $0.name == name }) else {
            let hint = Suggestion.phrase(for: name, among: known.map { "--\($0.name)" })
            let shown = isSilent ? nil : TerminalText.name(name).map { "'--\($0)'" }
            throw UsageError(message: "unknown option \(shown ?? "(argument \(index + 1))")\(hint)")
        }
        guard option.placeholder != nil else {
            guard parts.count == 1 else { throw UsageError(message: "--\(name) takes no value") }
            flags.insert(name)
            return 0
        }
        guard values[name] == nil || option.isRepeatable else {
            throw UsageError(message: "--\(name) is given more than once")
        }
        guard let value = parts.count == 2 ? String(parts[1]) : next else {
            throw UsageError(message: "--\(name) requires a value")
        }
        if case .choice(let choices) = option.kind, !choices.contains(value) {
            throw UsageError(message: "--\(name) must be \(Options.alternatives(choices))")
        }
        values[name, default: []].append(value)
        return parts.count == 2 ? 0 : 1
    }

    private static func unexpected(_ argument: String, at index: Int) -> UsageError {
        let hint = argument.hasPrefix("-") && argument != "-" ? "; options begin with two hyphens" : ""
        return UsageError(message: "unexpected argument (number \(index + 1))\(hint)")
    }

    subscript(name: String) -> String? { values[name]?.last }
    func has(_ flag: String) -> Bool { flags.contains(flag) }
    func all(_ name: String) -> [String] { values[name] ?? [] }

    /// The value of `--limit`.
    /// - Parameter what: what there are at most as many of, for the error.
    func limit(of what: String) throws(UsageError) -> Int? {
        guard let text = self["limit"] else { return nil }
        guard let number = Int(text), number > 0 else {
            throw UsageError(message: "--limit requires a number of \(what)")
        }
        return number
    }

    private func isGiven(_ name: String) -> Bool { values[name] != nil || flags.contains(name) }

    /// `a`, `a or b`, `one of a, b, c`.
    static func alternatives(_ names: [String]) -> String {
        names.count > 2 ? "one of \(names.joined(separator: ", "))" : names.joined(separator: " or ")
    }
}

// MARK: Subcommands

extension Options {
    /// Checks that the words are those of a subcommand, with its own options alone.
    private func check(_ grammar: CommandGrammar) throws(UsageError) {
        var (leaf, rest) = (grammar, words[...])
        while !leaf.subcommands.isEmpty {
            guard let next = rest.first.flatMap({ leaf[$0] }) else {
                let names = leaf.listedSubcommands.map(\.name)
                let hint = Suggestion.phrase(for: rest.first ?? "", among: names)
                throw UsageError(message: "expected \(Options.alternatives(names))\(hint)")
            }
            for option in leaf.scannedOptions where isGiven(option.name) && !next.accepts(option.name, within: leaf) {
                throw UsageError(message: "--\(option.name) is for \(leaf.owners(of: option.name)) alone")
            }
            leaf = next
            rest = rest.dropFirst()
        }
        try checkCount(rest.count, leaf)
        for option in grammar.scannedOptions where leaf.requires(option.name) && !isGiven(option.name) {
            throw UsageError(message: "--\(option.name) is required")
        }
        for group in leaf.alternatives {
            let given = group.names.filter(isGiven)
            if given.count > 1 { throw UsageError(message: "--\(given[1]) cannot be combined with --\(given[0])") }
            if given.isEmpty, group.isRequired {
                throw UsageError(message: "\(Options.alternatives(group.names.map { "--\($0)" })) is required")
            }
        }
    }

    private func checkCount(_ count: Int, _ leaf: CommandGrammar) throws(UsageError) {
        var minimum = 0
        for argument in leaf.arguments {
            minimum += argument.minimumCount
            if count < minimum {
                throw UsageError(message: "\(leaf.name) requires \(argument.placeholder): \(argument.summary)")
            }
        }
        guard count <= leaf.maximumWords else {
            throw UsageError(
                message: leaf.arguments.isEmpty
                    ? "\(leaf.name) takes no arguments" : "\(leaf.name) takes \(leaf.argumentUsage)")
        }
    }
}

extension CommandGrammar {
    /// All options that may be given, those of hidden subcommands included.
    fileprivate var scannedOptions: [CommandOption] {
        var known: Set<String> = []
        return (options + subcommands.flatMap(\.scannedOptions)).filter { known.insert($0.name).inserted }
    }

    fileprivate func accepts(_ option: String, within parent: CommandGrammar) -> Bool {
        (parent.options + scannedOptions).contains { $0.name == option }
    }

    fileprivate func requires(_ option: String) -> Bool { options.contains { $0.name == option && $0.isRequired } }

    /// The subcommands with an option: `list`, `revoke and rotate`.
    fileprivate func owners(of option: String) -> String {
        subcommands.filter { $0.accepts(option, within: self) }.map(\.name).joined(separator: " and ")
    }

    /// `NAME CLAIM...`.
    fileprivate var argumentUsage: String { arguments.map(\.usage).joined(separator: " ") }
}
