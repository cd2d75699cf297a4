public import MartletCore

/// One thing that is wrong, or doubtful, at one place of the configuration.
public struct Diagnostic: Sendable, CustomStringConvertible {
    /// An error keeps the configuration from being used; a warning does not.
    public enum Severity: String, Sendable { case error, warning }

    public let severity: Severity
    public let location: SourceLocation
    /// The stable reason, such as `config.unknown_key`.
    public let code: ErrorCode
    /// For the operator, in one line; never holds a secret.
    public let text: String

    public init(_ severity: Severity, _ code: ErrorCode, at location: SourceLocation, _ text: String) {
        self.severity = severity
        self.location = location
        self.code = code
        self.text = text
    }

    /// The line that is printed: `file:line:column: error: text [code]`.
    public var description: String { "\(location): \(severity.rawValue): \(text) [\(code)]" }
}

/// What was found while a configuration was read: all of it, so that one run of `martlet check` shows every mistake.
public struct Diagnostics: Sendable, CustomStringConvertible {
    /// In the order in which they were found.
    public private(set) var all: [Diagnostic] = []

    public init() {}

    init(_ all: [Diagnostic]) { self.all = all }

    public var isEmpty: Bool { all.isEmpty }
    /// Whether the configuration must be refused.
    public var hasErrors: Bool { all.contains { $0.severity == .error } }
    /// The errors, by position.
    public var errors: [Diagnostic] { sorted.filter { $0.severity == .error } }
    /// The warnings, by position.
    public var warnings: [Diagnostic] { sorted.filter { $0.severity == .warning } }

    /// Everything by position; what was found first at one position stays first.
    public var sorted: [Diagnostic] {
        all.enumerated()
            .sorted { left, right in
                let (a, b) = (left.element.location, right.element.location)
                if a.file != b.file { return a.file < b.file }
                return (a.line, a.column, left.offset) < (b.line, b.column, right.offset)
            }
            .map(\.element)
    }

    /// Records something that keeps the configuration from being used.
    public mutating func error(_ code: ErrorCode, at location: SourceLocation, _ text: String) {
        all.append(Diagnostic(.error, code, at: location, text))
    }

    /// Records something that is allowed but probably not meant.
    public mutating func warning(_ code: ErrorCode, at location: SourceLocation, _ text: String) {
        all.append(Diagnostic(.warning, code, at: location, text))
    }

    /// Records everything that an error stands for.
    public mutating func add(_ error: ConfigurationError) { all += error.diagnostics }

    /// Records everything that was found elsewhere.
    public mutating func add(_ other: Diagnostics) { all += other.all }

    /// One line for each, by position.
    public var description: String { sorted.map(\.description).joined(separator: "\n") }
}
