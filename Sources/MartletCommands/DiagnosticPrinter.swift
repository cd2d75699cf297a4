internal import MartletConfig

/// Diagnostics as lines; on a terminal with colors, and with the line of the file that they are about.
struct DiagnosticPrinter {
    private static let excerptWidth = 100

    let terminal: Terminal
    private let lines: [Substring]
    private let file: String

    /// - Parameter text: the configuration's; empty if it is not known.
    init(_ terminal: Terminal, file: String, text: String) {
        self.terminal = terminal
        self.file = file
        lines = terminal.isTerminal ? text.split(omittingEmptySubsequences: false) { $0.isNewline } : []
    }

    /// One line, and on a terminal the excerpt with a mark below the position.
    func text(_ diagnostic: Diagnostic) -> String {
        guard terminal.isTerminal else { return TerminalText.escaped(diagnostic.description) }
        let location = TerminalText.escaped("\(diagnostic.location):")
        let severity = terminal.styled(
            "\(diagnostic.severity.rawValue):", .bold, diagnostic.severity == .error ? .red : .yellow)
        let code = terminal.styled("[\(diagnostic.code)]", .dim)
        let line = "\(terminal.styled(location, .bold)) \(severity) \(TerminalText.escaped(diagnostic.text)) \(code)"
        return line + (excerpt(diagnostic.location) ?? "")
    }

    private func excerpt(_ location: SourceLocation) -> String? {
        guard location.file == file, lines.indices.contains(location.line - 1) else { return nil }
        let line = lines[location.line - 1]
        let isComplete = line.unicodeScalars.count <= Self.excerptWidth
        let column = location.column - 1
        // A secret may stand in the line; the message never has one, so only keys and structure are shown.
        guard isComplete, column <= line.unicodeScalars.count else { return nil }
        let before = String(String.UnicodeScalarView(line.unicodeScalars.prefix(column)))
        guard let shown = Self.masked(String(line)) else { return nil }
        let indent = String(repeating: " ", count: Terminal.width(before))
        return "\n  \(TerminalText.escaped(shown))\n  \(indent)\(terminal.styled("^", .bold, .green))"
    }

    /// The line; `nil` if a key in it names a secret.
    private static func masked(_ line: String) -> String? {
        let lower = line.lowercased()
        let words = ["secret", "password", "token", "key:", "passphrase", "://", "@"]
        return words.contains(where: lower.contains) ? nil : line
    }
}
