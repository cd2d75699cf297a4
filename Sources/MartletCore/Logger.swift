private import Synchronization

/// How much a log line matters.
public enum LogLevel: Int, Sendable, Comparable, CaseIterable {
    case debug, info, warning, error

    public static func < (left: LogLevel, right: LogLevel) -> Bool { left.rawValue < right.rawValue }

    /// The name as configuration and log lines spell it.
    public var name: String {
        switch self {
        case .debug: "debug"
        case .info: "info"
        case .warning: "warning"
        case .error: "error"
        }
    }
}

/// Where log lines go.
///
/// One call is one line; implementations never block the caller.
public protocol LogWriting: Sendable {
    /// - Parameters:
    ///   - level: how much it matters.
    ///   - event: what happened, in a few fixed words.
    ///   - fields: names and values, in order; never a token, a secret or a query string.
    func write(_ level: LogLevel, _ event: String, _ fields: [(String, String)])
}

/// The level from which on lines are written, which may change while loggers use it.
package final class LogThreshold: Sendable {
    private let number: Atomic<Int>

    package init(_ level: LogLevel) { number = Atomic(level.rawValue) }

    /// The lowest level that is written.
    package var level: LogLevel {
        get { LogLevel(rawValue: number.load(ordering: .relaxed)) ?? .info }
        set { number.store(newValue.rawValue, ordering: .relaxed) }
    }
}

/// A writer with fields that every line of a room or a provider carries.
public struct Logger: Sendable {
    private let writer: any LogWriting
    private let threshold: LogThreshold
    private let fields: [(String, String)]

    public init(_ writer: any LogWriting, minimum: LogLevel, fields: [(String, String)] = []) {
        self.init(writer, threshold: LogThreshold(minimum), fields: fields)
    }

    /// A logger whose level follows a threshold that others change.
    package init(_ writer: any LogWriting, threshold: LogThreshold, fields: [(String, String)] = []) {
        self.writer = writer
        self.threshold = threshold
        self.fields = fields
    }

    /// Whether lines of that level are written; asked where making a line costs something.
    public func writes(_ level: LogLevel) -> Bool { level >= threshold.level }

    /// The same logger with more fields on every line.
    public func with(_ more: (String, String)...) -> Logger {
        Logger(writer, threshold: threshold, fields: fields + more)
    }

    /// Writes a line of the level `debug`.
    public func debug(_ event: String, _ fields: (String, String)...) { log(.debug, event, fields) }
    /// Writes a line of the level `debug` whose fields were put together before.
    package func debug(_ event: String, _ fields: [(String, String)]) { log(.debug, event, fields) }
    /// Writes a line of the level `info`.
    public func info(_ event: String, _ fields: (String, String)...) { log(.info, event, fields) }
    /// Writes a line of the level `warning`.
    public func warning(_ event: String, _ fields: (String, String)...) { log(.warning, event, fields) }
    /// Writes a line of the level `error`.
    public func error(_ event: String, _ fields: (String, String)...) { log(.error, event, fields) }

    private func log(_ level: LogLevel, _ event: String, _ more: [(String, String)]) {
        guard writes(level) else { return }
        writer.write(level, event, fields + more)
    }

    /// A logger that says nothing; for tests.
    public static let silent = Logger(NoLog(), minimum: .error)
}

private struct NoLog: LogWriting {
    func write(_ level: LogLevel, _ event: String, _ fields: [(String, String)]) {}
}
