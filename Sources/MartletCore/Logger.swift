private import Synchronization

/// The severity of a log line.
@frozen public enum LogLevel: Int, Sendable, Comparable, CaseIterable {
    case debug, info, warning, error

    public static func < (left: LogLevel, right: LogLevel) -> Bool { left.rawValue < right.rawValue }

    /// The name as in configuration and log lines.
    public var name: String {
        switch self {
        case .debug: "debug"
        case .info: "info"
        case .warning: "warning"
        case .error: "error"
        }
    }
}

/// A destination of log lines.
///
/// Each call writes one line; implementations never block the caller.
public protocol LogWriting: Sendable {
    /// - Parameters:
    ///   - level: the severity.
    ///   - event: what happened, in a few constant words.
    ///   - fields: names and values, in order; never a token, a secret or a query string.
    func write(_ level: LogLevel, _ event: String, _ fields: [(String, String)])
}

/// The minimum level of the lines that are written; it may change while loggers use it.
@usableFromInline package final class LogThreshold: Sendable {
    private let number: Atomic<Int>

    package init(_ level: LogLevel) { number = Atomic(level.rawValue) }

    /// The minimum level.
    package var level: LogLevel {
        get { LogLevel(rawValue: number.load(ordering: .relaxed)) ?? .info }
        set { number.store(newValue.rawValue, ordering: .relaxed) }
    }
}

/// Writes log lines that carry common fields, such as the module's or the provider's name.
@frozen public struct Logger: Sendable {
    private let writer: any LogWriting
    private let threshold: LogThreshold
    private let fields: [(String, String)]

    public init(_ writer: any LogWriting, minimum: LogLevel, fields: [(String, String)] = []) {
        self.init(writer, threshold: LogThreshold(minimum), fields: fields)
    }

    /// A logger whose minimum level is a shared threshold.
    package init(_ writer: any LogWriting, threshold: LogThreshold, fields: [(String, String)] = []) {
        self.writer = writer
        self.threshold = threshold
        self.fields = fields
    }

    /// Whether lines of this level are written; check it before building an expensive line.
    public func writes(_ level: LogLevel) -> Bool { level >= threshold.level }

    /// A copy of the logger with more fields on every line.
    public func with(_ more: (String, String)...) -> Logger {
        Logger(writer, threshold: threshold, fields: fields + more)
    }

    /// Writes a line of the level `debug`.
    public func debug(_ event: String, _ fields: (String, String)...) { log(.debug, event, fields) }
    /// Writes a line of the level `debug` with an array of fields.
    package func debug(_ event: String, _ fields: [(String, String)]) { log(.debug, event, fields) }
    /// Writes a line of the level `info`.
    public func info(_ event: String, _ fields: (String, String)...) { log(.info, event, fields) }
    /// Writes a line of the level `info` with an array of fields.
    package func info(_ event: String, _ fields: [(String, String)]) { log(.info, event, fields) }
    /// Writes a line of the level `warning`.
    public func warning(_ event: String, _ fields: (String, String)...) { log(.warning, event, fields) }
    /// Writes a line of the level `warning` with an array of fields.
    package func warning(_ event: String, _ fields: [(String, String)]) { log(.warning, event, fields) }
    /// Writes a line of the level `error`.
    public func error(_ event: String, _ fields: (String, String)...) { log(.error, event, fields) }

    private func log(_ level: LogLevel, _ event: String, _ more: [(String, String)]) {
        guard writes(level) else { return }
        LockOrder.requireNone(for: "writes a log line")
        writer.write(level, event, fields + more)
    }

    /// A logger that discards every line; for tests.
    public static let silent = Logger(NoLog(), minimum: .error)
}

private struct NoLog: LogWriting {
    func write(_ level: LogLevel, _ event: String, _ fields: [(String, String)]) {}
}
