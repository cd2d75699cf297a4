import MartletCore
import MartletTesting

// A member of two targets, as AccountRuleTests.

/// Keeps log lines for a test to look at.
final class LogRecorder: LogWriting {
    private let kept = Box<[String]>([])

    var lines: [String] { kept.value }

    func write(_ level: LogLevel, _ event: String, _ fields: [(String, String)]) {
        let text = "\(level.name) \(event) " + fields.map { "\($0.0)=\($0.1)" }.joined(separator: " ")
        kept.withLock { $0.append(text) }
    }
}
