internal import MartletConfig

/// The parsed arguments of a command: `--name value`, `--flag` and words.
///
/// Error messages do not repeat arguments, because one of them may be a password.
struct Options: Sendable {
    private var values: [String: [String]] = [:]
    private var flags: Set<String> = []
    /// The arguments that are not options, in order.
    private(set) var words: [String] = []

    /// Invalid arguments, or a request for help.
    struct UsageError: Error {
        let message: String
        var wantsHelp = false
    }

    /// The arguments that a command accepts.
    private struct Grammar {
        let names: Set<String>
        let flags: Set<String>
        let repeatable: Set<String>
        let wordLimit: Int
        let isSilent: Bool
    }

    /// - Parameters:
    ///   - allowing: names that take a value.
    ///   - flags: names that take none.
    ///   - repeatable: names that take a value and may be given several times.
    ///   - limit: how many words are allowed between the options and after `--`.
    ///   - isSilent: whether error messages omit the names of unknown options, too.
    init(
        _ arguments: [String], allowing names: Set<String>, flags known: Set<String> = [],
        repeatable: Set<String> = [], words limit: Int = 0, isSilent: Bool = false
    ) throws(UsageError) {
        let grammar = Grammar(
            names: names.union(repeatable), flags: known, repeatable: repeatable, wordLimit: limit, isSilent: isSilent)
        var index = 0
        var areWords = false
        while index < arguments.count {
            let argument = arguments[index]
            if !areWords, argument == "--help" || argument == "-h" { throw UsageError(message: "", wantsHelp: true) }
            if !areWords, argument == "--", limit > 0 {
                areWords = true
            } else if argument.hasPrefix("--"), !areWords {
                index += try parseOption(argument, next: arguments.dropFirst(index + 1).first, at: index, grammar)
            } else {
                guard words.count < limit else { throw Options.unexpected(argument, at: index) }
                words.append(argument)
            }
            index += 1
        }
    }

    /// - Returns: how many following arguments it consumes.
    private mutating func parseOption(
        _ argument: String, next: String?, at index: Int, _ grammar: Grammar
    ) throws(UsageError) -> Int {
        let parts = argument.dropFirst(2).split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
        let name = String(parts[0])
        if grammar.flags.contains(name) {
            guard parts.count == 1 else { throw UsageError(message: "--\(name) takes no value") }
            flags.insert(name)
            return 0
        }
        guard grammar.names.contains(name) else {
            let hint = Suggestion.phrase(
                for: name, among: (grammar.names.union(grammar.flags)).sorted().map { "--\($0)" })
            let shown = grammar.isSilent ? nil : TerminalText.name(name).map { "'--\($0)'" }
            throw UsageError(message: "unknown option \(shown ?? "(argument \(index + 1))")\(hint)")
        }
        guard values[name] == nil || grammar.repeatable.contains(name) else {
            throw UsageError(message: "--\(name) is given more than once")
        }
        if parts.count == 2 {
            values[name, default: []].append(String(parts[1]))
            return 0
        }
        guard let next else { throw UsageError(message: "--\(name) requires a value") }
        values[name, default: []].append(next)
        return 1
    }

    private static func unexpected(_ argument: String, at index: Int) -> UsageError {
        let hint = argument.hasPrefix("-") && argument != "-" ? "; options begin with two hyphens" : ""
        return UsageError(message: "unexpected argument (number \(index + 1))\(hint)")
    }

    subscript(name: String) -> String? { values[name]?.last }
    func has(_ flag: String) -> Bool { flags.contains(flag) }
    /// Every value of a repeatable option, in order.
    func all(_ name: String) -> [String] { values[name] ?? [] }
}
