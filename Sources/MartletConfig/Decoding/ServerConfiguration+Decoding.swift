extension ServerConfiguration: ConfigurationDecodable {
    package static var grammar: ConfigurationGrammar? {
        .init([
            .optional(
                "listen", .list(.block(of: ListenerConfiguration.self), nonEmpty: true),
                default: "[{ address: 127.0.0.1:8080 }]", "The listeners."),
            .optional(
                "workers", .either([.choice(["auto"]), .integer(1...1024)]), default: "auto",
                "Number of event loops; `auto` is one per core."),
            .optional(
                "trusted_proxies", .list(.text, nonEmpty: false), default: "[]",
                "Address blocks whose `X-Forwarded-*` and `Forwarded` are trusted."),
            .optional(
                "strip_headers", .list(.text, nonEmpty: false),
                "Headers that only peers in `trusted_proxies` may send; replaces the default list."),
            .optional("limits", .block(of: Limits.self), default: "{}", "Limits on client connections and requests."),
            .optional(
                "paths", .block(of: PathOptions.self), default: "{}",
                "Handling of ambiguous paths."),
            .optional("timeouts", .block(of: ServerTimeouts.self), default: "{}", "Timeouts of the client side."),
            .optional(
                "overload", .block(of: OverloadConfiguration.self),
                "When requests are rejected because there is too much to do; never if absent."),
            .optional("http2", .block(of: HTTP2Configuration.self), default: "{}", "Limits of HTTP/2 connections."),
            .optional(
                "health", .block(of: HealthPath.self),
                "The readiness endpoint of every listener, for load balancers on other hosts."),
            .optional(
                "watch", .boolean, default: "true",
                "Whether certificates, keys, authorities and secret files are reloaded when they change."),
            .optional(
                "watchdog", .duration, default: "10s",
                "How long an event loop may stand still until `/livez` fails."),
        ])
    }

    package init(from reader: inout ConfigurationReader) throws(ConfigurationError) {
        listeners = reader.blocks("listen").map(\.value)
        if let node = reader.node("listen"), node.elements?.isEmpty == true {
            reader.error(.configBadValue, at: node.location, "listen: must not be empty")
        }
        if !reader.has("listen") { listeners = [.standard(at: reader.location)] }
        workers = reader.optional("workers", default: WorkerCount(number: nil)).number
        trustedProxies = []
        for range in reader.optional("trusted_proxies", default: [Located<AddressRange>]()) {
            trustedProxies.append(range.value)
            if range.value.isEverything {
                reader.diagnostics.warning(
                    .configInsecure, at: range.location, "every client is a trusted proxy: anyone can claim any address"
                )
            }
        }
        if let names = reader.optional("strip_headers", as: [Located<HeaderName>].self) {
            for name in names where name.value.letters == "authorization" {
                reader.error(
                    .configBadHeader, at: name.location,
                    "\(quoted(name.value.text)) is a credential: routes decide whether it is forwarded (forward_credentials)"
                )
            }
            strippedHeaders = names.map(\.value.text)
        }
        limits = reader.block("limits") ?? Limits()
        paths = reader.block("paths") ?? PathOptions()
        timeouts = reader.block("timeouts") ?? ServerTimeouts()
        overload = reader.block("overload")
        http2 = reader.block("http2") ?? HTTP2Configuration()
        watch = reader.optional("watch", default: watch)
        watchdog = reader.optional("watchdog", default: watchdog, in: Self.watchdogs)
        health = reader.block("health")
        for index in listeners.indices where listeners[index].health == nil { listeners[index].health = health }
    }

    private static var watchdogs: ClosedRange<Duration> { .seconds(1) ... .seconds(600) }

    /// The configuration without a `server:` block.
    static func standard(at location: SourceLocation) -> ServerConfiguration {
        ServerConfiguration(
            listeners: [.standard(at: location)], workers: nil, trustedProxies: [], limits: Limits(),
            paths: PathOptions(),
            timeouts: ServerTimeouts())
    }
}

/// `auto` or a number of event loops.
private struct WorkerCount: ConfigurationValue {
    var number: Int?

    init(number: Int?) { self.number = number }

    init(decoding node: ConfigurationNode) throws(ConfigurationError) {
        if case .scalar(let scalar) = node.content, scalar.text == "auto" { return }
        number = try Int(decoding: node, in: 1...1024)
    }
}

extension Limits: ConfigurationDecodable {
    package static var grammar: ConfigurationGrammar? {
        .init([
            .optional(
                "header_bytes", .size, default: "16KiB", "Request line and header fields together, 256B to 1MiB."),
            .optional("header_fields", .integer(1...10_000), default: "100", "Number of header fields."),
            .optional(
                "token_bytes", .size, default: "16KiB",
                "A token, or another bearer credential, 1KiB to 64KiB; it is part of a head, see `header_bytes`."),
            .optional(
                "body_bytes", .either([.size, .choice(["unlimited"])]), default: "10MiB",
                "Request body; a route may override it."),
            .optional(
                "body_min_rate", .size, default: "256B",
                "Minimum rate of a request body in bytes per second, averaged over 30 s; `0B` disables it."),
            .optional("connections", .integer(1...1_000_000), default: "10000", "Concurrent connections."),
            .optional(
                "connections_per_address", .integer(0...1_000_000), default: "0",
                "Concurrent connections of one client address; 0 is unlimited."),
            .optional(
                "rate_entries", .integer(16...10_000_000), default: "100000",
                "How many keys, such as addresses, each rate limit counts at a time; 16 bytes each."),
        ])
    }

    package init(from reader: inout ConfigurationReader) throws(ConfigurationError) {
        self.init()
        headerBytes =
            reader.optional(
                "header_bytes", default: ByteSize(bytes: headerBytes), in: ByteSize(bytes: 256) ... .mebibytes(1)
            ).bytes
        headerFields = reader.optional("header_fields", default: headerFields, in: 1...10_000)
        tokenBytes =
            reader.optional(
                "token_bytes", default: ByteSize(bytes: tokenBytes), in: .kibibytes(1) ... .kibibytes(64)
            ).bytes
        if let node = reader.node("token_bytes"), tokenBytes > headerBytes {
            reader.diagnostics.warning(
                .configUnused, at: node.location,
                "token_bytes: no token has more than header_bytes, which is \(headerBytes) bytes")
        }
        bodyBytes = reader.optional("body_bytes", default: SizeLimit(bytes: bodyBytes)).bytes
        bodyMinimumRate = reader.optional("body_min_rate", default: ByteSize(bytes: bodyMinimumRate)).bytes
        connections = reader.optional("connections", default: connections, in: 1...1_000_000)
        connectionsPerAddress = reader.optional(
            "connections_per_address", default: connectionsPerAddress, in: 0...1_000_000)
        rateEntries = reader.optional("rate_entries", default: rateEntries, in: 16...10_000_000)
    }
}

/// A size or `unlimited`.
struct SizeLimit: ConfigurationValue {
    /// `nil` is unlimited.
    var bytes: Int?

    init(bytes: Int?) { self.bytes = bytes }

    init(decoding node: ConfigurationNode) throws(ConfigurationError) {
        if case .scalar(let scalar) = node.content, scalar.text == "unlimited" { return }
        bytes = try ByteSize(decoding: node).bytes
    }
}

extension PathOptions: ConfigurationDecodable {
    private enum Choice: String, CaseIterable, ConfigurationValue { case reject, keep }
    private enum Merging: String, CaseIterable, ConfigurationValue { case reject, merge }

    package static var grammar: ConfigurationGrammar? {
        .init([
            .optional(
                "encoded_slash", .choice(["reject", "keep"]), default: "reject",
                "`%2F` in a path: 400, or kept encoded."),
            .optional(
                "encoded_percent", .choice(["reject", "keep"]), default: "reject",
                "`%25` in a path: 400, or kept encoded."),
            .optional(
                "repeated_slash", .choice(["reject", "merge"]), default: "reject",
                "`//` in a path: 400, or merged into one slash before matching."),
        ])
    }

    package init(from reader: inout ConfigurationReader) throws(ConfigurationError) {
        self.init()
        keepsEncodedSlash = reader.optional("encoded_slash", default: Choice.reject) == .keep
        keepsEncodedPercent = reader.optional("encoded_percent", default: Choice.reject) == .keep
        mergesSlashes = reader.optional("repeated_slash", default: Merging.reject) == .merge
    }
}

extension ServerTimeouts: ConfigurationDecodable {
    package static var grammar: ConfigurationGrammar? {
        .init([
            .optional(
                "request_head", .duration, default: "10s", "For receiving a whole request head."
            ),
            .optional("tls_handshake", .duration, default: "10s", "For a TLS handshake."),
            .optional("idle", .duration, default: "75s", "How long an idle connection stays open."),
            .optional("body_idle", .duration, default: "30s", "The longest pause in a request body."),
            .optional(
                "drain", .duration, default: "30s",
                "How long requests may continue after SIGTERM; `0s` ends them immediately."),
            .optional(
                "shutdown_delay", .duration, default: "0s",
                "How long the gateway still accepts after SIGTERM, with `/readyz` at 503, before it drains."
            ),
        ])
    }

    package init(from reader: inout ConfigurationReader) throws(ConfigurationError) {
        self.init()
        requestHead = reader.optional("request_head", default: requestHead, in: Duration.positive)
        tlsHandshake = reader.optional("tls_handshake", default: tlsHandshake, in: Duration.positive)
        idle = reader.optional("idle", default: idle, in: Duration.positive)
        bodyIdle = reader.optional("body_idle", default: bodyIdle, in: Duration.positive)
        drain = reader.optional("drain", default: drain)
        shutdownDelay = reader.optional("shutdown_delay", default: shutdownDelay)
    }
}

extension HealthPath: ConfigurationDecodable {
    package static var grammar: ConfigurationGrammar? {
        .init([
            .optional(
                "path", .pattern("^/[!-~]{0,255}$"), default: "/healthz", "The path; it is matched before every route.")
        ])
    }

    package init(from reader: inout ConfigurationReader) throws(ConfigurationError) {
        let written = reader.optional("path", default: Located("/healthz", at: reader.location))
        let text = written.value
        guard text.hasPrefix("/"), text.utf8.count <= 256,
            text.utf8.allSatisfy({ (0x21...0x7E).contains($0) && $0 != 0x3F && $0 != 0x23 })
        else {
            reader.error(
                .configBadPattern, at: written.location,
                "path: must begin with / and be printable ASCII without ? and #, at most 256 bytes")
            self.init(path: "/")
            return
        }
        self.init(path: text)
    }
}
