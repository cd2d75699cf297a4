import MartletConfig
import MartletCore
import Testing

@testable import MartletCommands

/// Collects printed lines.
private final class Lines {
    var all: [String] = []
}

@Suite struct `Output on a terminal` {
    private static let plain = Terminal(isTerminal: true, environment: { $0 == "NO_COLOR" ? "1" : nil })
    private static let colored = Terminal(isTerminal: true, environment: { _ in nil })
    private static let pipe = Terminal(isTerminal: false, environment: { _ in nil })

    @Test func `has colors unless they are unwanted`() {
        #expect(Self.colored.styled("x", .bold, .red) == "\u{1B}[1;31mx\u{1B}[0m")
        #expect(Self.plain.styled("x", .red) == "x" && Self.pipe.styled("x", .red) == "x")
        #expect(!Terminal(isTerminal: true, environment: { $0 == "TERM" ? "dumb" : nil }).hasColor)
        #expect(Terminal(isTerminal: true, environment: { $0 == "NO_COLOR" ? "" : nil }).hasColor)
    }

    private func printed(_ rows: [String], _ terminal: Terminal) -> [String] {
        let lines = Lines()
        var table = TablePrinter("NAME", "STATE", terminal: terminal) { lines.all.append($0) }
        for row in rows { table.add(row) }
        table.finish()
        return lines.all
    }

    @Test func `aligns columns, also of wide letters, and leaves other output as it is`() {
        let rows = ["李雷\tenabled", "alexander\tdisabled"]
        #expect(printed(rows, Self.pipe) == rows)
        #expect(printed(rows, Self.plain) == ["NAME       STATE", "李雷       enabled", "alexander  disabled"])
        #expect(printed(rows, Self.colored)[2] == "alexander  \u{1B}[31mdisabled\u{1B}[0m")
        #expect(printed([], Self.plain).isEmpty)
        #expect(printed(Array(repeating: "a\tb", count: 1200), Self.plain).count == 1201, "the head stands once")
    }

    @Test func `shows the line of an error with a mark`() {
        let diagnostic = Diagnostic(
            .error, "config.unknown_key", at: SourceLocation(file: "c.yaml", line: 2, column: 3), "unknown key")
        func text(_ second: String, _ terminal: Terminal) -> String {
            DiagnosticPrinter(terminal, file: "c.yaml", text: "a: 1\n\(second)\n").text(diagnostic)
        }
        let line = "c.yaml:2:3: error: unknown key [config.unknown_key]"
        #expect(text("  limmits: {}", Self.plain) == line + "\n    limmits: {}\n    ^")
        #expect(text("  limmits: {}", Self.pipe) == line)
        #expect(text("  client_secret: hunter2", Self.plain) == line, "a secret does not come back")
    }
}
