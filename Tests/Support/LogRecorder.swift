package import MartletCore

/// Keeps log lines, for a test to look at.
package final class LogRecorder: LogWriting {
    /// One line.
    package struct Line: Sendable, CustomStringConvertible {
        package let level: LogLevel
        package let event: String
        package let fields: [(String, String)]

        /// The value of a field.
        package subscript(name: String) -> String? { fields.last { $0.0 == name }?.1 }

        /// Such as `warning something failed code=io.a reason=x`.
        package var description: String {
            ([level.name, event] + fields.map { "\($0.0)=\($0.1)" }).joined(separator: " ")
        }
    }

    private let recorded = Box<[Line]>([])

    package init() {}

    package var lines: [Line] { recorded.value }
    package var texts: [String] { lines.map(\.description) }
    /// All lines in one string.
    package var text: String { texts.joined(separator: "\n") }

    package func write(_ level: LogLevel, _ event: String, _ fields: [(String, String)]) {
        recorded.withLock { $0.append(Line(level: level, event: event, fields: fields)) }
    }
}
