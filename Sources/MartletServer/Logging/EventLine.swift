internal import MartletConfig
internal import MartletCore
internal import MartletDecisions

/// How the lines of events have the time.
enum EventTime: Int, Sendable {
    case seconds, milliseconds, timestamp

    /// As access lines with these fields have it.
    init(_ fields: [AccessField]) {
        let first = fields.first { [.time, .timeMilliseconds, .timestamp].contains($0) }
        switch first {
        case .timeMilliseconds: self = .milliseconds
        case .timestamp: self = .timestamp
        default: self = .seconds
        }
    }

    fileprivate func member(_ milliseconds: Int64) -> String {
        switch self {
        case .seconds: "\"time\":\(milliseconds / 1000)"
        case .milliseconds: "\"time_ms\":\(milliseconds)"
        case .timestamp: "\"timestamp\":\"\(InternetTime.text(milliseconds: milliseconds))\""
        }
    }

    fileprivate func text(_ milliseconds: Int64) -> String {
        switch self {
        case .seconds: String(milliseconds / 1000)
        case .milliseconds: String(milliseconds)
        case .timestamp: InternetTime.text(milliseconds: milliseconds)
        }
    }
}

enum EventLine {
    /// Fields whose values are numbers; they are written as such wherever they are decimal digits.
    private static let numbers: Set<String> = [
        "addresses", "attempt", "changed", "connections", "count", "ejected_seconds", "ends", "epoch", "errcode",
        "failures", "healthy_seconds", "idle_in_transaction_session_timeout", "keys", "limit", "limit_bytes", "lines",
        "lock_timeout", "pid", "resident_bytes", "routes", "seconds", "signal", "statement_timeout", "status",
        "unhealthy_seconds", "unlogged", "used", "users", "writes",
    ]

    static func make(
        _ level: LogLevel, _ event: String, _ fields: [(String, String)], format: AccessFormat, instanceID: String,
        at milliseconds: Int64, as time: EventTime
    ) -> ByteBuffer {
        var line = ByteBuffer(capacity: 256)
        switch format {
        case .json:
            line.append(
                text: "{\(time.member(milliseconds)),\"level\":\"\(level.name)\",\"event\":\"\(escape(event))\"")
            if !instanceID.isEmpty { line.append(text: ",\"instance_id\":\"\(instanceID)\"") }
            for (name, value) in fields {
                line.append(text: ",\"\(name)\":")
                line.append(text: isNumber(value, of: name) ? value : "\"\(escape(value))\"")
            }
            line.append(text: "}\n")
        case .text:
            line.append(text: "\(time.text(milliseconds)) \(level.name) \(event)")
            for (name, value) in fields { line.append(text: " \(name)=\(escape(value))") }
            if !instanceID.isEmpty { line.append(text: " instance_id=\(instanceID)") }
            line.append(text: "\n")
        }
        return line
    }

    private static func isNumber(_ value: String, of name: String) -> Bool {
        guard numbers.contains(name), let number = Int64(value) else { return false }
        // Neither a plus sign nor leading zeros, and exact as a floating-point number.
        return number.magnitude <= 1 << 53 && String(number) == value
    }

    /// Escapes a text for a JSON string and for one line.
    private static func escape(_ text: String) -> String {
        guard text.utf8.contains(where: { $0 == 0x22 || $0 == 0x5C || $0 < 0x20 }) else { return text }
        var escaped = ""
        for scalar in text.unicodeScalars {
            switch scalar {
            case "\"", "\\": escaped += "\\\(scalar)"
            case _ where scalar.value < 0x20:
                let digits = String(scalar.value, radix: 16)
                escaped += "\\u" + String(repeating: "0", count: 4 - digits.count) + digits
            default: escaped.unicodeScalars.append(scalar)
            }
        }
        return escaped
    }
}
