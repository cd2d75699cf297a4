private import MartletCore

/// `server:` — listeners, event loops, limits and timeouts of the client side.
@frozen package struct ServerConfiguration: KeyedBlock {
    package var listeners: [ListenerConfiguration]
    package var workers: Int?
    package var trustedProxies: [AddressRange] = []
    package var strippedHeaders = ServerConfiguration.defaultStrippedHeaders
    package var limits = Limits()
    /// `rate_limits:`, which stands beside `server:` in the file.
    package var rateLimits: [RateLimitConfiguration] = []
    package var paths = PathOptions()
    package var timeouts = ServerTimeouts()
    package var http2 = HTTP2Configuration()
    package var overload: OverloadConfiguration?
    package var health: HealthPath?
    package var watch = true
    package var watchdog = Duration.seconds(10)
    /// `forward_auth:` of the file.
    package var forwardAuth = ForwardAuthConfiguration()

    /// Headers that upstreams may trust as set by a proxy: the original target, method or client.
    ///
    /// The last three, which override the method, are removed from a request only if a route for its host and path
    /// restricts methods.
    package static let defaultStrippedHeaders = [
        "X-Original-URL", "X-Original-URI", "X-Rewrite-URL", "X-Original-Method", "X-Forwarded-Uri",
        "X-Forwarded-Method", "X-Real-IP", "True-Client-IP", "Client-Cert", "Remote-User",
        "X-HTTP-Method-Override", "X-HTTP-Method", "X-Method-Override",
    ]

    static let keys: [ConfigurationKey<Self>] = [
        .blocks("listen", \.listeners, nonEmpty: true, default: "[{ address: 127.0.0.1:8080 }]", "The listeners."),
        .key("workers", \.workers, as: WorkerCount.self, "Number of event loops; `auto` is one per core."),
        .key("trusted_proxies", \.trustedProxies, "Address blocks whose `X-Forwarded-*` and `Forwarded` are trusted."),
        .key(
            "strip_headers", \.strippedHeaders, as: [HeaderName].self, default: .none,
            "Headers that only peers in `trusted_proxies` may send; replaces the default list."),
        .block("limits", \.limits, "Limits on client connections and requests."),
        .block("paths", \.paths, "Handling of ambiguous paths."),
        .block("timeouts", \.timeouts, "Timeouts of the client side."),
        .block("overload", \.overload, "When requests are rejected because there is too much to do; never if absent."),
        .block("http2", \.http2, "Limits of HTTP/2 connections."),
        .block("health", \.health, "The readiness endpoint of every listener, for load balancers on other hosts."),
        .key(
            "watch", \.watch, "Whether certificates, keys, authorities and secret files are reloaded when they change."),
        .key(
            "watchdog", \.watchdog, in: .seconds(1) ... .seconds(600),
            "How long an event loop may stand still until `/livez` fails."),
        .check { server, reader in
            for index in server.listeners.indices where server.listeners[index].health == nil {
                server.listeners[index].health = server.health
            }
            server.checkNames(&reader)
        },
    ]

    private func checkNames(_ reader: inout ConfigurationReader) {
        let ranges = reader.given("trusted_proxies")?.elements ?? []
        for (range, node) in zip(trustedProxies, ranges) where range.isEverything {
            reader.diagnostics.warning(
                .configInsecure, at: node.location, "every client is a trusted proxy: anyone can claim any address")
        }
        for node in reader.given("strip_headers")?.elements ?? [] {
            guard let name = try? HeaderName(decoding: node), name.letters == "authorization" else { continue }
            reader.error(
                .configBadHeader, at: node.location,
                "\(quoted(name.text)) is a credential: routes decide whether it is forwarded (forward_credentials)")
        }
    }
}

extension ServerConfiguration {
    init() { self.init(at: .none) }

    init(at location: SourceLocation) { self.init(listeners: [ListenerConfiguration(at: location)]) }

    /// Whether any peer is trusted to describe the request of a client.
    package var trustsProxies: Bool { !trustedProxies.isEmpty || listeners.contains(where: \.isTrusted) }
}

/// `auto` or a number of event loops.
private struct WorkerCount: Spelling {
    private static let numbers = 1...1024
    static let shape = ConfigurationGrammar.Shape.either([.choice(["auto"]), .integer(numbers)])
    static func text(of number: Int?) -> String? { number.map { "\($0)" } ?? "auto" }
    var content: Int?

    init(decoding node: ConfigurationNode) throws(ConfigurationError) {
        if case .scalar(let scalar) = node.content, scalar.text == "auto" { return }
        content = try Int(decoding: node, in: Self.numbers)
    }
}

/// `server.limits`.
@frozen package struct Limits: KeyedBlock, Equatable {
    package var headerBytes = 16 * 1024
    package var tokenBytes = 16 * 1024
    package var headerFields = 100
    /// `nil` is unlimited.
    package var bodyBytes: Int? = 10 * 1024 * 1024
    package var bodyMinimumRate = 256
    package var connections = 10_000
    package var connectionsPerAddress = 0
    package var rateEntries = SharedBound.limitEntries.total

    package init() {}

    static let keys: [ConfigurationKey<Self>] = [
        .key(
            "header_bytes", \.headerBytes, as: ByteSize.self, in: ByteSize(bytes: 256) ... .mebibytes(1),
            "Request line and header fields together, 256B to 1MiB."),
        .key("header_fields", \.headerFields, in: 1...10_000, "Number of header fields."),
        .key(
            "token_bytes", \.tokenBytes, as: ByteSize.self, in: .kibibytes(1) ... .kibibytes(64),
            "A token, or another bearer credential, 1KiB to 64KiB; it is part of a head, see `header_bytes`."),
        .key("body_bytes", \.bodyBytes, as: SizeLimit.self, "Request body; a route may override it."),
        .key(
            "body_min_rate", \.bodyMinimumRate, as: ByteSize.self,
            "Minimum rate of a request body in bytes per second, averaged over 30 s; `0B` disables it."),
        .key("connections", \.connections, in: 1...1_000_000, "Concurrent connections."),
        .key(
            "connections_per_address", \.connectionsPerAddress, in: 0...1_000_000,
            "Concurrent connections of one client address; 0 is unlimited."),
        .key(
            "rate_entries", \.rateEntries, in: 16...10_000_000,
            "How many keys, such as addresses, each rate limit counts at a time; 16 bytes each."),
        .check { limits, reader in
            guard limits.tokenBytes > limits.headerBytes else { return }
            reader.warn(
                "token_bytes", .configUnused,
                "no token has more than header_bytes, which is \(limits.headerBytes) bytes")
        },
    ]
}

/// A size or `unlimited`.
struct SizeLimit: Spelling {
    static let shape = ConfigurationGrammar.Shape.either([.size, .choice(["unlimited"])])
    static func text(of bytes: Int?) -> String? { bytes.map { ByteSize(bytes: $0).configurationText } ?? "unlimited" }
    /// `nil` is unlimited.
    var content: Int?

    init(decoding node: ConfigurationNode) throws(ConfigurationError) {
        if case .scalar(let scalar) = node.content, scalar.text == "unlimited" { return }
        content = try ByteSize(decoding: node).bytes
    }
}

/// `server.paths`.
@frozen package struct PathOptions: KeyedBlock, Equatable {
    package var keepsEncodedSlash = false
    package var keepsEncodedPercent = false
    package var mergesSlashes = false

    package init() {}

    private enum Keeping: String, ConfigurationChoice {
        case reject, keep
        static func text(of keeps: Bool) -> String? { (keeps ? Self.keep : reject).rawValue }
        var content: Bool { self == .keep }
    }

    private enum Merging: String, ConfigurationChoice {
        case reject, merge
        static func text(of merges: Bool) -> String? { (merges ? Self.merge : reject).rawValue }
        var content: Bool { self == .merge }
    }

    static let keys: [ConfigurationKey<Self>] = [
        .key("encoded_slash", \.keepsEncodedSlash, as: Keeping.self, "`%2F` in a path: 400, or kept encoded."),
        .key("encoded_percent", \.keepsEncodedPercent, as: Keeping.self, "`%25` in a path: 400, or kept encoded."),
        .key(
            "repeated_slash", \.mergesSlashes, as: Merging.self,
            "`//` in a path: 400, or merged into one slash before matching."),
    ]
}

/// `server.timeouts`.
@frozen package struct ServerTimeouts: KeyedBlock, Equatable {
    package var requestHead = Duration.seconds(10)
    package var tlsHandshake = Duration.seconds(10)
    package var idle = Duration.seconds(75)
    package var bodyIdle = Duration.seconds(30)
    package var drain = Duration.seconds(30)
    package var shutdownDelay = Duration.zero

    package init() {}

    static let keys: [ConfigurationKey<Self>] = [
        .key("request_head", \.requestHead, in: Duration.positive, "For receiving a whole request head."),
        .key("tls_handshake", \.tlsHandshake, in: Duration.positive, "For a TLS handshake."),
        .key("idle", \.idle, in: Duration.positive, "How long an idle connection stays open."),
        .key("body_idle", \.bodyIdle, in: Duration.positive, "The longest pause in a request body."),
        .key("drain", \.drain, "How long requests may continue after SIGTERM; `0s` ends them immediately."),
        .key(
            "shutdown_delay", \.shutdownDelay,
            "How long the gateway still accepts after SIGTERM, with `/readyz` at 503, before it drains."),
    ]
}

/// `health:` of the server or of a listener.
@frozen package struct HealthPath: KeyedBlock, Equatable {
    /// Compared byte by byte with the path of a request.
    package var path = "/healthz"

    static let keys: [ConfigurationKey<Self>] = [
        .key(
            "path", \.path, shape: .pattern("^/[!-~]{0,255}$"), where: rule,
            "The path; it is matched before every route.")
    ]

    private static let rule = TextRule(
        .configBadPattern,
        { text in
            text.hasPrefix("/") && text.utf8.count <= 256
                && text.utf8.allSatisfy { (0x21...0x7E).contains($0) && $0 != 0x3F && $0 != 0x23 }
        }, { _ in "must begin with / and be printable ASCII without ? and #, at most 256 bytes" })
}

/// `server.http2`.
@frozen package struct HTTP2Configuration: KeyedBlock, Equatable {
    package var maximumConcurrentStreams = SharedBound.streams.total
    package var maximumResets = 200
    /// Flow-control window in bytes: how much of a request body may arrive before any of it is forwarded.
    package var initialWindow = 64 * 1024

    static let keys: [ConfigurationKey<Self>] = [
        .key(
            "max_concurrent_streams", \.maximumConcurrentStreams, in: 1...10_000,
            "Concurrent requests on one connection."),
        .key(
            "max_resets_per_10s", \.maximumResets, in: 1...1_000_000,
            "Streams that a client may reset within 10 s; more end the connection."),
        .key(
            "initial_window", \.initialWindow, as: ByteSize.self, in: .kibibytes(1) ... .mebibytes(16),
            "The flow-control window of a request body, in bytes, 1KiB to 16MiB."),
    ]
}

/// `server.overload`.
@frozen package struct OverloadConfiguration: KeyedBlock, Equatable {
    package var loopDelay = Duration.milliseconds(100)
    package var memoryPercent = 90

    package init() {}

    static let keys: [ConfigurationKey<Self>] = [
        .key(
            "loop_delay", \.loopDelay, in: .milliseconds(1) ... .seconds(60),
            "How long events may wait for an event loop, 1ms to 60s; longer twice in a row is an overload."),
        .key(
            "memory", \.memoryPercent, as: Share.self,
            "The largest share of the memory that the process may use: of its cgroup's limit, or of the machine's memory."
        ),
    ]

    /// A share such as `90%`.
    private struct Share: Spelling {
        static let shape = Percentage.shape
        static func text(of percent: Int) -> String? { "\(percent)%" }
        let content: Int

        init(decoding node: ConfigurationNode) throws(ConfigurationError) {
            let text = try node.text()
            guard text.hasSuffix("%"), let percent = Int(text.dropLast()), text.utf8.first != 0x2B,
                (1...100).contains(percent)
            else {
                throw node.error(.configBadValue, "must be a share from 1% to 100%, not \(quoted(text))")
            }
            content = percent
        }
    }
}
