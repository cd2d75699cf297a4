/// What the gateway sends itself for the requests of a route, instead of forwarding them.
@frozen package enum RouteResponseConfiguration: Sendable {
    case redirect(RedirectConfiguration)
    case fixed(FixedResponseConfiguration)
}

extension RouteResponseConfiguration {
    /// The keys of a route of which it has at most one.
    static let keys = ["upstream", "split", "redirect", "respond"]
    /// Keys of a route that only concern an upstream.
    private static let upstreamKeys = ["rewrite", "timeout", "upgrade", "forward_credentials", "mirror"]

    /// Records an error for each key of a route beside one that it excludes.
    static func check(_ reader: inout ConfigurationReader) {
        let given = keys.filter { reader.has($0) }
        if let second = given.dropFirst().first { reader.reject(second, beside: given[0]) }
        guard let key = given.first, key != "upstream", key != "split" else { return }
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
    }
}

/// `redirect:` of a route.
@frozen package struct RedirectConfiguration: KeyedBlock {
    /// The statuses of redirects that a client follows by itself.
    package static let statuses = [301, 302, 303, 307, 308]

    package var target: Located<String>
    package var status = 307

    package init(target: Located<String>) { self.target = target }

    init() { self.init(target: .unread) }

    static let keys: [ConfigurationKey<Self>] = [
        .required(
            "to", \.target, endsBlock: true,
            "The target: a URL, or a path on the same host; `$path`, `$query` and `$host` are those of the request."),
        .key(
            "status", \.status, as: Status.self,
            "`301`, `302`, `303`, `307` or `308`; browsers keep `301` and `308` for long."),
    ]

    private struct Status: Spelling {
        static let shape = ConfigurationGrammar.Shape.integer(301...308)
        static func text(of status: Int) -> String? { "\(status)" }
        let content: Int

        init(decoding node: ConfigurationNode) throws(ConfigurationError) {
            content = try Int(decoding: node)
            guard RedirectConfiguration.statuses.contains(content) else {
                throw node.error(.configBadValue, "must be 301, 302, 303, 307 or 308, not \(content)")
            }
        }
    }
}

/// `respond:` of a route.
@frozen package struct FixedResponseConfiguration: KeyedBlock {
    package var status = 200
    package var body: [UInt8] = []
    /// `nil` without a body.
    package var contentType: String?

    package init() {}

    private static let maximumBodyBytes = 1024 * 1024
    private static let defaultContentType = "text/plain; charset=utf-8"

    static let keys: [ConfigurationKey<Self>] = [
        .key("status", \.status, as: Status.self, "200 to 599, other than redirects."),
        .row(.optional("body", .text, "The body; none if absent.")),
        .row(
            .optional(
                "body_file", .path,
                "Instead: a file with the body, of at most 1 MiB, which is read with the configuration.")),
        .key(
            "content_type", \.contentType, where: .mediaType, default: .text(defaultContentType),
            "The media type of the body."),
        .check { response, reader in
            if response.readBody(&reader) {
                response.contentType = response.contentType ?? defaultContentType
            } else if reader.given("content_type") != nil {
                reader.reject("content_type", .configConflictingKeys, "there is no body that it could describe")
            }
        },
    ]

    package static var grammar: ConfigurationGrammar? { table.withAtMostOne(of: ["body", "body_file"]) }

    private struct Status: Spelling {
        private static let statuses = 200...599
        static let shape = ConfigurationGrammar.Shape.integer(statuses)
        static func text(of status: Int) -> String? { "\(status)" }
        let content: Int

        init(decoding node: ConfigurationNode) throws(ConfigurationError) {
            content = try Int(decoding: node)
            guard Self.statuses.contains(content), !(300...399).contains(content) else {
                throw node.error(.configBadValue, "must be 200 to 599 and no redirect, not \(content)")
            }
        }
    }

    /// Reads `body` or `body_file`.
    /// - Returns: whether one is given.
    private mutating func readBody(_ reader: inout ConfigurationReader) -> Bool {
        let text = reader.optional("body", as: BodyText.self)
        let file = reader.file("body_file", maximumBytes: Self.maximumBodyBytes)
        guard let node = reader.node("body") ?? reader.node("body_file") else { return false }
        reader.reject("body_file", beside: "body")
        if status == 204 || status == 205 {
            reader.error(.configBadValue, at: node.location, "a response with status \(status) has no body")
        }
        body = text?.bytes ?? file?.value ?? []
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

extension TextRule {
    /// The value of a `Content-Type` field.
    fileprivate static let mediaType = TextRule(
        .configBadValue,
        { text in
            text.utf8.allSatisfy { (0x20...0x7E).contains($0) } && text.contains("/") && text.first != " "
                && text.last != " "
        }, { "\(quoted($0)) is not a media type such as text/html" })
}
