import MartletConfig

/// An access line, put together in the plainest way: what the lines of the gateway are compared with.
struct PlainAccessLine {
    var milliseconds: Int64 = 1_700_000_000_123
    var instanceID = ""
    var requestID = "0123456789abcdef"
    var client = "192.0.2.1"
    var method = "GET"
    var host = "example.com"
    var path = "/v1/x"
    /// As `CallerNames` has written them.
    var caller: (subject: String, session: String)?
    var trace: String?
    var route = "api"
    var status = 200
    var reason = "ok"
    var member = ""
    var condition = ""
    var provider = "apple"
    var upstream = "http://127.0.0.1:9000"
    var isCheck = false
    var bytesIn = 5
    var bytesOut = 123_456
    var microseconds = 789
    var protocolVersion: StaticString = "HTTP/1.1"
    var listener = "127.0.0.1:8080"
    var tlsVersion = ""
    /// Of the upstream's response; 0 without one.
    var upstreamStatus = 0
    var upstreamMicroseconds = 0
    var retries = 0

    /// The caller's names as they stand in the texts of a request.
    var names: String { caller.map { "\",\"subject\":\"\($0.subject)\",\"session_id\":\"\($0.session)" } ?? "" }

    /// The value of a field, and whether it is a text; `nil` where the line does not have it.
    private func value(_ field: AccessField) -> (text: String, isText: Bool)? {
        func number(_ value: Int) -> (String, Bool)? { ("\(value)", false) }
        func unlessEmpty(_ text: String) -> (String, Bool)? { text.isEmpty ? nil : (text, true) }
        return switch field {
        case .time: number(Int(milliseconds / 1000))
        case .timeMilliseconds: number(Int(milliseconds))
        case .timestamp: ("2023-11-14T22:13:20.123Z", true)
        case .event: ("request", true)
        case .level: ("info", true)
        case .instanceID: unlessEmpty(instanceID)
        case .requestID: (requestID, true)
        case .client: (client, true)
        case .method: (method, true)
        case .host: (host, true)
        case .path: (escapedPath, true)
        case .subject: caller.map { ($0.subject, true) }
        case .sessionID: caller.map { ($0.session, true) }
        case .traceID: trace.map { ($0, true) }
        case .route: (route, true)
        case .status: number(status)
        case .reason: (reason, true)
        case .member: unlessEmpty(member)
        case .condition: unlessEmpty(condition)
        case .provider: (provider, true)
        case .upstream: (upstream, true)
        case .check: isCheck ? ("true", false) : nil
        case .bytesIn: number(bytesIn)
        case .bytesOut: number(bytesOut)
        case .duration: number(microseconds)
        case .protocolVersion: ("\(protocolVersion)", true)
        case .listener: (listener, true)
        case .tlsVersion: unlessEmpty(tlsVersion)
        case .userAgent, .referer: nil
        case .upstreamStatus: upstreamStatus == 0 ? nil : number(upstreamStatus)
        case .upstreamTime: upstreamStatus == 0 ? nil : number(upstreamMicroseconds)
        case .retries: number(retries)
        case .weight: number(1)
        }
    }

    private var escapedPath: String {
        String(
            decoding: path.utf8.flatMap { (byte: UInt8) -> [UInt8] in
                switch byte {
                case 0x22, 0x5C: [0x5C, byte]
                case 0x20...0x7E: [byte]
                default: [0x3F]
                }
            }, as: UTF8.self)
    }

    func json(_ fields: [AccessField]) -> String {
        let members = fields.compactMap { field in
            value(field).map { "\"\(field.rawValue)\":" + ($0.isText ? "\"\($0.text)\"" : $0.text) }
        }
        return "{" + members.joined(separator: ",") + "}\n"
    }

    /// The line as text where `log.access` says something.
    func text(_ fields: [AccessField]) -> String {
        let pairs = fields.compactMap { field in
            value(field).map { "\(field.rawValue)=" + (field == .condition ? "\"\($0.text)\"" : $0.text) }
        }
        return pairs.joined(separator: " ") + "\n"
    }

    /// The line as text where it says nothing.
    var text: String {
        func pair(_ name: String, _ value: String) -> String { value.isEmpty ? "" : " \(name)=\(value)" }
        let session = caller?.session ?? ""
        return "\(milliseconds / 1000) \(client) \(method) \(host)\(escapedPath) \(status) \(reason)"
            + pair("member", member) + pair("condition", condition.isEmpty ? "" : "\"\(condition)\"")
            + " route=\(route) upstream=\(upstream)" + (isCheck ? " check=true" : "") + " \(microseconds)us"
            + " id=\(requestID)" + (caller.map { " subject=\($0.subject)" } ?? "") + pair("session_id", session)
            + pair("trace_id", trace ?? "") + pair("instance_id", instanceID) + "\n"
    }
}
