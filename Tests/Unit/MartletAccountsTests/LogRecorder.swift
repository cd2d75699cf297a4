import MartletCore
import MartletTesting

// Part of two targets, like AccountRuleTests.

/// Records log lines for tests.
final class LogRecorder: LogWriting {
    private let recorded = Box<[String]>([])

    var lines: [String] { recorded.value }

    func write(_ level: LogLevel, _ event: String, _ fields: [(String, String)]) {
        let text = "\(level.name) \(event) " + fields.map { "\($0.0)=\($0.1)" }.joined(separator: " ")
        recorded.withLock { $0.append(text) }
    }
}
