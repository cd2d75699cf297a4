private import CLinux
internal import MartletServer

/// How output is presented on standard output or error: with colors and aligned columns only on a terminal.
struct Terminal: Equatable {
    enum Style: String {
        case bold = "1"
        case dim = "2"
        case red = "31"
        case green = "32"
        case yellow = "33"
    }

    let isTerminal: Bool
    let hasColor: Bool

    /// Standard output.
    static let output = Terminal(descriptor: 1)
    /// Standard error.
    static let error = Terminal(descriptor: 2)

    private init(descriptor: Int32) {
        self.init(isTerminal: isatty(descriptor) == 1, environment: SystemInformation.environment)
    }

    /// Colors need a terminal that has them, and no `NO_COLOR`.
    init(isTerminal: Bool, environment: (String) -> String?) {
        self.isTerminal = isTerminal
        let isUnwanted = environment("NO_COLOR").map { !$0.isEmpty } ?? false
        hasColor = isTerminal && !isUnwanted && environment("TERM") != "dumb"
    }

    /// The text in a style, which ends behind it.
    func styled(_ text: String, _ styles: Style...) -> String {
        guard hasColor, !text.isEmpty else { return text }
        return "\u{1B}[\(styles.map(\.rawValue).joined(separator: ";"))m\(text)\u{1B}[0m"
    }

    /// How many columns a text takes: those of East Asian scripts take two.
    static func width(_ text: String) -> Int {
        text.unicodeScalars.reduce(0) { sum, scalar in
            switch scalar.properties.generalCategory {
            case .nonspacingMark, .enclosingMark, .format, .control: sum
            default: sum + (isWide(scalar.value) ? 2 : 1)
            }
        }
    }

    private static func isWide(_ value: UInt32) -> Bool {
        switch value {
        case 0x1100...0x115F, 0x2E80...0x303E, 0x3041...0xA4CF, 0xAC00...0xD7A3, 0xF900...0xFAFF, 0xFE30...0xFE6F,
            0xFF00...0xFF60, 0xFFE0...0xFFE6, 0x1F300...0x1F64F, 0x1F900...0x1F9FF, 0x20000...0x3FFFD:
            true
        default: false
        }
    }
}

/// Prints rows of columns: aligned and with a head on a terminal, otherwise with tabs in between, for other programs.
struct TablePrinter {
    /// Rows whose widths are known before they are printed; longer lists are printed in parts.
    private static let chunk = 500

    private let head: [String]
    private let terminal: Terminal
    private let print: (String) -> Void
    private var rows: [[String]] = []
    private var widths: [Int] = []
    private var hasHead = false

    /// - Parameter head: the names of the columns.
    init(_ head: String..., terminal: Terminal = .output, print: @escaping (String) -> Void = Output.line) {
        self.init(head, terminal: terminal, print: print)
    }

    /// A table whose columns depend on what it shows.
    init(_ head: [String], terminal: Terminal = .output, print: @escaping (String) -> Void = Output.line) {
        self.head = head
        self.terminal = terminal
        self.print = print
    }

    /// Prints a row, now or later.
    /// - Parameter line: its columns, with tabs in between.
    mutating func add(_ line: String) {
        guard terminal.isTerminal else { return print(line) }
        rows.append(line.split(separator: "\t", omittingEmptySubsequences: false).map(String.init))
        if rows.count >= Self.chunk { flush() }
    }

    mutating func finish() { flush() }

    private mutating func flush() {
        guard !rows.isEmpty else { return }
        for row in hasHead ? rows : [head] + rows {
            for (index, text) in row.enumerated() {
                if index == widths.count { widths.append(0) }
                widths[index] = max(widths[index], Terminal.width(text))
            }
        }
        if !hasHead { print(aligned(head) { terminal.styled($0, .bold) }) }
        hasHead = true
        for row in rows { print(aligned(row, colored)) }
        rows = []
    }

    private func aligned(_ row: [String], _ style: (String) -> String) -> String {
        var line = ""
        for (index, text) in row.enumerated() {
            line += style(text)
            guard index + 1 < row.count else { break }
            line += String(repeating: " ", count: widths[index] + 2 - Terminal.width(text))
        }
        return line
    }

    /// States in the color of how well they are.
    private func colored(_ text: String) -> String {
        switch text {
        case "active", "enabled", "healthy", "ready", "up": terminal.styled(text, .green)
        case "disabled", "revoked", "expired", "dead", "unhealthy", "down": terminal.styled(text, .red)
        case "open", "ejected", "drained", "draining", "unknown", "locked", "being_deleted":
            terminal.styled(text, .yellow)
        default: text
        }
    }
}
