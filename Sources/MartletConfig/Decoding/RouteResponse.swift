/// `redirect:` of a route.
struct RouteRedirect: ConfigurationDecodable {
    let value: RedirectConfiguration

    static var grammar: ConfigurationGrammar? {
        .init([
            .required(
                "to", .text,
                "The target: a URL, or a path on the same host; `$path`, `$query` and `$host` are those of the request."
            ),
            .optional(
                "status", .integer(301...308), default: "307",
                "`301`, `302`, `303`, `307` or `308`; browsers keep `301` and `308` for long."),
        ])
    }

    init(from reader: inout ConfigurationReader) throws(ConfigurationError) {
        let status = reader.optional("status", as: Located<Int>.self)
        if let status, !RedirectConfiguration.statuses.contains(status.value) {
            reader.error(
                .configBadValue, at: status.location, "status: must be 301, 302, 303, 307 or 308, not \(status.value)")
        }
        var value = RedirectConfiguration(target: try reader.required("to"))
        if let status { value.status = status.value }
        self.value = value
    }
}

/// `respond:` of a route.
struct RouteRespond: ConfigurationDecodable {
    private static let maximumBodyBytes = 1024 * 1024
    private static let statuses = 200...599
    private static let defaultContentType = "text/plain; charset=utf-8"

    private(set) var value = FixedResponseConfiguration()

    static var grammar: ConfigurationGrammar? {
        ConfigurationGrammar([
            .optional("status", .integer(statuses), default: "200", "200 to 599, other than redirects."),
            .optional("body", .text, "The body; none if absent."),
            .optional(
                "body_file", .path,
                "Instead: a file with the body, of at most 1 MiB, which is read with the configuration."),
            .optional("content_type", .text, default: defaultContentType, "The media type of the body."),
        ])
        .withAtMostOne(of: ["body", "body_file"])
    }

    init(from reader: inout ConfigurationReader) throws(ConfigurationError) {
        if let status = reader.optional("status", as: Located<Int>.self) {
            if !Self.statuses.contains(status.value) || (300...399).contains(status.value) {
                reader.error(
                    .configBadValue, at: status.location,
                    "status: must be 200 to 599 and no redirect, not \(status.value)")
            }
            value.status = status.value
        }
        let type = reader.optional("content_type", as: Located<MediaTypeText>.self)
        let hasBody = try readBody(&reader)
        if let type, !hasBody {
            reader.error(
                .configConflictingKeys, at: type.location, "content_type: there is no body that it could describe")
        }
        if hasBody { value.contentType = type?.value.text ?? Self.defaultContentType }
    }

    /// Reads `body` or `body_file`.
    /// - Returns: whether one is given.
    private mutating func readBody(_ reader: inout ConfigurationReader) throws(ConfigurationError) -> Bool {
        let text = reader.optional("body", as: BodyText.self)
        let file = reader.file("body_file", maximumBytes: Self.maximumBodyBytes)
        guard let node = reader.node("body") ?? reader.node("body_file") else { return false }
        if reader.has("body"), let other = reader.node("body_file") {
            reader.error(
                .configConflictingKeys, at: other.location,
                "'body' and 'body_file' are both given in \(reader.title)")
        }
        if value.status == 204 || value.status == 205 {
            reader.error(.configBadValue, at: node.location, "a response with status \(value.status) has no body")
        }
        value.body = text?.bytes ?? file?.value ?? []
        return true
    }
}

/// A body in the configuration itself, which may have several lines.
private struct BodyText: ConfigurationValue {
    let bytes: [UInt8]

    init(decoding node: ConfigurationNode) throws(ConfigurationError) {
        bytes = Array(try node.scalar(expecting: "a string").text.utf8)
    }
}

/// The value of a `Content-Type` field.
private struct MediaTypeText: ConfigurationValue {
    let text: String

    init(decoding node: ConfigurationNode) throws(ConfigurationError) {
        text = try node.text()
        let isPrintable = text.utf8.allSatisfy { (0x20...0x7E).contains($0) }
        guard isPrintable, text.contains("/"), text.first != " ", text.last != " " else {
            throw node.error(.configBadValue, "\(quoted(text)) is not a media type such as text/html")
        }
    }
}

extension RouteResponseConfiguration {
    /// The keys of a route of which it has at most one.
    static let keys = ["upstream", "split", "redirect", "respond"]
    /// Keys of a route that only concern an upstream.
    private static let upstreamKeys = ["rewrite", "timeout", "upgrade", "forward_credentials", "mirror"]

    /// Reads `redirect:` or `respond:`; errors are recorded.
    static func read(_ reader: inout ConfigurationReader) -> RouteResponseConfiguration? {
        let given = keys.filter { reader.has($0) }
        if let second = given.dropFirst().first, let node = reader.node(second) {
            reader.error(
                .configConflictingKeys, at: node.location,
                "'\(given[0])' and '\(second)' are both given in \(reader.title)")
        }
        let redirect = reader.block("redirect", as: RouteRedirect.self)
        let respond = reader.block("respond", as: RouteRespond.self)
        guard let key = given.first, key != "upstream", key != "split" else { return nil }
        for other in upstreamKeys {
            guard let node = reader.node(other) else { continue }
            reader.error(
                .configConflictingKeys, at: node.location,
                "'\(other)' concerns an upstream, which a route with '\(key)' does not have")
        }
        for other in ["set", "remove"] {
            guard let node = reader.node("headers")?[other] else { continue }
            reader.error(
                .configConflictingKeys, at: node.location,
                "headers.\(other) concerns an upstream, which a route with '\(key)' does not have: for the response"
                    + " there is headers.response")
        }
        return redirect.map { .redirect($0.value) } ?? respond.map { .fixed($0.value) }
    }
}
