import Foundation

/// A small OTLP/HTTP collector: it takes JSON documents at `/v1/traces`, and checks their form.
package final class TraceCollector: Sendable {
    /// A span as it was received.
    package struct Span: Sendable {
        package let name: String
        package let trace: String
        package let id: String
        package let parent: String
        package let state: String
        package let kind: Int
        package let start: Int
        package let end: Int
        /// Values as text.
        package let attributes: [String: String]
        package let hasFailed: Bool

        package subscript(name: String) -> String? { attributes[name] }
    }

    private let server: ScriptedUpstream
    private let content = Box<Content>(Content())

    private struct Content: Sendable {
        var spans: [Span] = []
        var resources: [[String: String]] = []
        var problems: [String] = []
    }

    package init() throws {
        let content = content
        server = try ScriptedUpstream { exchange in
            let request = exchange.request
            guard request.method == "POST", request.target == "/v1/traces",
                request["Content-Type"] == "application/json",
                let document = request.object["resourceSpans"] as? [[String: Any]]
            else {
                content.withLock { $0.problems.append("\(request)") }
                return try exchange.respond(400)
            }
            do {
                for part in document { try Self.read(part, content) }
                try exchange.respond(200, [("Content-Type", "application/json")], body: "{\"partialSuccess\":{}}")
            } catch {
                content.withLock { $0.problems.append("\(error): \(request.text)") }
                try exchange.respond(400)
            }
        }
    }

    /// As `tracing.otlp` is written.
    package var url: String { server.url }
    package var spans: [Span] { content.value.spans }
    /// The attributes of those that have sent documents.
    package var resources: [[String: String]] { content.value.resources }
    /// What was not as it should be.
    package var problems: [String] { content.value.problems }

    package func stop() { server.stop() }

    /// The spans of one trace, once that of its request is there.
    package func trace(_ id: String) throws -> [Span] {
        try waitUntil("trace \(id) is there") { spans.contains { $0.trace == id && $0.kind == 2 } }
        return spans.filter { $0.trace == id }
    }

    private static func read(_ part: [String: Any], _ content: Box<Content>) throws {
        let resource = try attributes((part["resource"] as? [String: Any])?["attributes"])
        var spans: [Span] = []
        for scope in part["scopeSpans"] as? [[String: Any]] ?? [] {
            guard (scope["scope"] as? [String: Any])?["name"] as? String == "martlet" else {
                throw TestFailure("no scope")
            }
            for span in scope["spans"] as? [[String: Any]] ?? [] { spans.append(try Self.span(span)) }
        }
        content.withLock { content in
            content.resources.append(resource)
            content.spans += spans
        }
    }

    private static func span(_ object: [String: Any]) throws -> Span {
        func digits(_ name: String, _ count: Int) -> String? {
            let text = object[name] as? String ?? ""
            return text.count == count && text.allSatisfy { "0123456789abcdef".contains($0) } ? text : nil
        }
        guard let trace = digits("traceId", 32), let id = digits("spanId", 16), let kind = object["kind"] as? Int,
            let name = object["name"] as? String,
            let start = (object["startTimeUnixNano"] as? String).flatMap({ Int($0) }),
            let end = (object["endTimeUnixNano"] as? String).flatMap({ Int($0) }), start <= end,
            object["parentSpanId"] == nil || digits("parentSpanId", 16) != nil
        else { throw TestFailure("no span: \(object)") }
        let status = (object["status"] as? [String: Any])?["code"] as? Int ?? 0
        return Span(
            name: name, trace: trace, id: id, parent: digits("parentSpanId", 16) ?? "",
            state: object["traceState"] as? String ?? "", kind: kind, start: start, end: end,
            attributes: try attributes(object["attributes"]), hasFailed: status == 2)
    }

    private static func attributes(_ list: Any?) throws -> [String: String] {
        var values: [String: String] = [:]
        for attribute in list as? [[String: Any]] ?? [] {
            guard let key = attribute["key"] as? String, let value = attribute["value"] as? [String: Any],
                value.count == 1, values[key] == nil
            else { throw TestFailure("attribute: \(attribute)") }
            if let text = value["stringValue"] as? String {
                values[key] = text
            } else if let number = value["intValue"] as? String {
                values[key] = number
            } else if let flag = value["boolValue"] as? Bool {
                values[key] = "\(flag)"
            } else {
                throw TestFailure("attribute: \(attribute)")
            }
        }
        return values
    }
}
