public import MartletCore

/// An error or a warning at one position of the configuration.
public struct Diagnostic: Sendable, CustomStringConvertible {
    /// An error prevents the configuration from being used; a warning does not.
    public enum Severity: String, Sendable { case error, warning }

    public let severity: Severity
    public let location: SourceLocation
    /// The stable code, such as `config.unknown_key`.
    public let code: ErrorCode
    /// The message for operators, in one line; never contains a secret.
    public let text: String

    public init(_ severity: Severity, _ code: ErrorCode, at location: SourceLocation, _ text: String) {
        self.severity = severity
        self.location = location
        self.code = code
        self.text = text
    }

    /// The printed line: `file:line:column: error: text [code]`.
    public var description: String { "\(location): \(severity.rawValue): \(text) [\(code)]" }
}

/// All errors and warnings of a configuration, so that one run of `martlet check` shows every one of them.
public struct Diagnostics: Sendable, CustomStringConvertible {
    /// In the order in which they were found.
    public private(set) var all: [Diagnostic] = []

    public init() {}

    init(_ all: [Diagnostic]) { self.all = all }

    public var isEmpty: Bool { all.isEmpty }
    /// Whether the configuration must be rejected.
    public var hasErrors: Bool { all.contains { $0.severity == .error } }
    /// The errors, by position.
    public var errors: [Diagnostic] { sorted.filter { $0.severity == .error } }
    /// The warnings, by position.
    public var warnings: [Diagnostic] { sorted.filter { $0.severity == .warning } }

    /// All diagnostics by position; at one position in the order in which they were found. What an anchor brings to
    /// several places is there once.
    public var sorted: [Diagnostic] {
        var seen = Set<String>()
        return all.enumerated()
            .sorted { left, right in
                let (a, b) = (left.element.location, right.element.location)
                if a.file != b.file { return a.file < b.file }
                return (a.line, a.column, left.offset) < (b.line, b.column, right.offset)
            }
            .map(\.element)
            .filter { seen.insert($0.description).inserted }
    }

    /// Records an error, which prevents the configuration from being used.
    public mutating func error(_ code: ErrorCode, at location: SourceLocation, _ text: String) {
        all.append(Diagnostic(.error, code, at: location, text))
    }

    /// Records a warning about something that is allowed but probably not intended.
    public mutating func warning(_ code: ErrorCode, at location: SourceLocation, _ text: String) {
        all.append(Diagnostic(.warning, code, at: location, text))
    }

    /// Records all diagnostics of an error.
    public mutating func add(_ error: ConfigurationError) { all += error.diagnostics }

    /// Records all diagnostics of another collection.
    public mutating func add(_ other: Diagnostics) { all += other.all }

    /// One line for each diagnostic, by position.
    public var description: String { sorted.map(\.description).joined(separator: "\n") }
}
