/// Plain text for a terminal of 80 columns.
enum TextLayout {
    static let width = 80

    /// The words of a text in lines of at most some columns; a longer word has a line of its own.
    static func wrap(_ text: String, width: Int = TextLayout.width) -> [String] {
        var lines: [String] = []
        var line = ""
        for word in text.split(whereSeparator: \.isWhitespace) {
            if !line.isEmpty, line.count + 1 + word.count > width {
                lines.append(line)
                line = ""
            }
            line += line.isEmpty ? String(word) : " \(word)"
        }
        return line.isEmpty ? lines : lines + [line]
    }

    /// Wrapped paragraphs; an empty line separates them.
    static func paragraphs(_ text: String) -> String {
        text.split(separator: "\n\n").map { wrap(String($0)).joined(separator: "\n") }.joined(separator: "\n\n")
    }

    /// Two columns: terms and what they mean, each meaning wrapped.
    static func terms(_ rows: [(term: String, meaning: String)], maximumColumn: Int = 22) -> String {
        let longest = rows.map(\.term.count).filter { $0 <= maximumColumn }.max() ?? 0
        let column = longest + 4
        let indent = String(repeating: " ", count: column)
        return rows.flatMap { row -> [String] in
            let meaning = wrap(row.meaning, width: width - column)
            let term = "  " + row.term
            guard term.count + 2 <= column, let first = meaning.first else {
                return [term] + meaning.map { indent + $0 }
            }
            let padding = String(repeating: " ", count: column - term.count)
            return [term + padding + first] + meaning.dropFirst().map { indent + $0 }
        }.joined(separator: "\n")
    }

    /// A usage line, continued below its arguments.
    /// - Parameter parts: what must not be broken: `--config FILE`.
    static func usage(_ head: String, _ parts: [String]) -> String {
        let indent = String(repeating: " ", count: min(head.count, 24))
        var lines: [String] = []
        var line = head
        for part in parts {
            if line.count + 1 + part.count > width - "usage: ".count, line != head {
                lines.append(line)
                line = indent
            }
            line += " \(part)"
        }
        return (lines + [line]).joined(separator: "\n")
    }
}
