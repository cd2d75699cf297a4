package import MartletCore
package import MartletJSON

/// A whole `config.yaml`, decoded and cross-checked: plain values with all defaults filled in.
// lint:large-type one property for each block of the file
@frozen package struct GatewayConfiguration: Sendable {
    /// The name of the process; `nil` for one that it gives itself.
    package var instanceID: String?
    package var server: ServerConfiguration
    package var admin: AdminConfiguration?
    package var log = LogConfiguration()
    /// `nil`: no traces are sent, and trace contexts pass untouched.
    package var tracing: TracingConfiguration?
    /// `nil`: there is no audit log.
    package var audit: AuditConfiguration?
    package var store: StoreConfiguration
    package var jwks = JWKSConfiguration()
    package var outbound = OutboundConfiguration()
    /// `nil`: the subject is `<provider>:<provider subject>`.
    package var accounts: AccountsConfiguration?
    package var webhooks: [WebhookConfiguration] = []
    package var outbox = OutboxConfiguration()
    /// `nil`: mails are sent by a webhook's receiver, or not at all.
    package var mail: MailConfiguration?
    package var sessions = SessionsConfiguration()
    /// Whether there is a `sessions:` block.
    package var hasSessionsBlock = false
    /// `nil`: browsers have neither pages nor cookies.
    package var browser: BrowserConfiguration?
    package var assertion: AssertionConfiguration?
    package var wellKnown = WellKnownConfiguration()
    /// Shared libraries that bring further kinds of providers.
    package var plugins: [PluginConfiguration] = []
    package var providers: [ProviderConfiguration] = []
    package var upstreams: [UpstreamConfiguration] = []
    package var routes: [RouteConfiguration] = []
    /// The text and the files it was read from.
    package var source = ConfigurationSource()
}

/// The text of a configuration, and the files that it names.
@frozen package struct ConfigurationSource: Sendable {
    package var text: [UInt8] = []
    /// The path of the configuration file, shown in positions; relative paths are resolved against it.
    package var file = ""
    /// Certificates, keys, authorities and secrets: the value of every key that ends in `_file`.
    package var files: [FilePath] = []

    package init() {}
}

/// `server:` — listeners, event loops, limits and timeouts of the client side.
@frozen package struct ServerConfiguration: Sendable {
    package var listeners: [ListenerConfiguration]
    /// Number of event loops; `nil` is one per core.
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
}

/// `server.overload`.
@frozen package struct OverloadConfiguration: Sendable, Equatable {
    package var loopDelay = Duration.milliseconds(100)
    package var memoryPercent = 90

    package init() {}
}

/// `health:` of the server or of a listener.
@frozen package struct HealthPath: Sendable, Equatable {
    /// Compared byte by byte with the path of a request.
    package var path: String

    package init(path: String) { self.path = path }
}

/// `server.limits`.
@frozen package struct Limits: Sendable, Equatable {
    package var headerBytes = 16 * 1024
    package var tokenBytes = 16 * 1024
    package var headerFields = 100
    /// `nil` is unlimited.
    package var bodyBytes: Int? = 10 * 1024 * 1024
    /// Bytes per second, averaged over 30 s; 0 disables it.
    package var bodyMinimumRate = 256
    package var connections = 10_000
    package var connectionsPerAddress = 0
    package var rateEntries = SharedBound.limitEntries.total

    package init() {}
}

/// `server.paths`.
@frozen package struct PathOptions: Sendable, Equatable {
    package var keepsEncodedSlash = false
    package var keepsEncodedPercent = false
    package var mergesSlashes = false

    package init() {}
}

/// `server.timeouts`.
@frozen package struct ServerTimeouts: Sendable, Equatable {
    package var requestHead = Duration.seconds(10)
    package var tlsHandshake = Duration.seconds(10)
    package var idle = Duration.seconds(75)
    package var bodyIdle = Duration.seconds(30)
    package var drain = Duration.seconds(30)
    package var shutdownDelay = Duration.zero

    package init() {}
}

/// `admin:`.
@frozen package struct AdminConfiguration: Sendable {
    /// Who may read `/metrics` from another machine.
    @frozen package enum Metrics: String, ConfigurationChoice { case token, open }

    package var address: Located<SocketAddress>
    /// A Unix socket that only its owner and group may open, over which changes need no credential; `nil` is none.
    package var socket: Located<SocketAddress>?
    /// Accepted names in `Host`, lower case, besides those of loopback and the listener's own address.
    package var hosts: [String] = []
    package var token: Located<Secret>?
    package var metrics = Metrics.token
    package var tls: ListenerTLS?
    /// Whether it is the default because there is no `admin:` block.
    package var isImplied = false

    /// The permission bits of its Unix sockets: what only their owner and group may open.
    private static let socketMode: UInt16 = 0o660

    /// The listener of its address, without HTTP/2: its clients are commands, probes and one page.
    package var listener: ListenerConfiguration {
        var listener = AdminConfiguration.listener(address)
        listener.tls = tls
        return listener
    }

    /// All of its listeners, that of its address first.
    package var listeners: [ListenerConfiguration] {
        [listener] + (socket.map { [AdminConfiguration.listener($0)] } ?? [])
    }

    private static func listener(_ address: Located<SocketAddress>) -> ListenerConfiguration {
        var listener = ListenerConfiguration(address: address, reusePort: false)
        listener.offersHTTP2 = false
        if case .unix = address.value {
            var file = SocketFilePermissions()
            file.mode = socketMode
            listener.socketFile = file
        }
        return listener
    }
}

/// `log:`.
@frozen package struct LogConfiguration: Sendable, Equatable {
    /// The format of log lines.
    @frozen package enum Format: String, ConfigurationChoice { case auto, text, json }

    /// How the access log names callers.
    @frozen package enum SubjectForm: String, ConfigurationChoice { case full, hash, off }

    package var level = LogLevel.info
    package var format = Format.auto
    package var subject = SubjectForm.full
    /// The key of the hashes; always present for ``SubjectForm/hash``.
    package var subjectKey: Secret?
    package var access = AccessLogConfiguration()

    package init() {}

    package static func == (left: LogConfiguration, right: LogConfiguration) -> Bool {
        left.level == right.level && left.format == right.format && left.subject == right.subject
            && left.access == right.access
    }
}

/// `store:`.
@frozen package struct StoreConfiguration: Sendable {
    /// The behavior while the store is unavailable.
    @frozen package enum OnError: String, ConfigurationChoice { case cached, deny }

    /// What may be read from replicas.
    @frozen package enum Replicas: String, ConfigurationChoice { case never, keys }

    /// `store.sentinel:` — the credentials of the sentinels.
    @frozen package struct Sentinel: Sendable {
        package var username: String?
        package var password: Located<Secret>?
        package var passwordFile: FilePath?

        package init() {}
    }

    /// `memory:`, `redis://…`, `rediss+cluster://…` and the like, as text; MartletRedis parses it.
    package var url: Located<String>
    /// Instead of the credentials of the URL.
    package var username: Located<String>?
    package var password: Located<Secret>?
    /// The file of the password, which is read again before each connection attempt.
    package var passwordFile: FilePath?
    package var sentinel = Sentinel()
    package var tls: Located<StoreTLS>?
    /// Connections to each node.
    package var pool = 4
    package var timeouts = StoreTimeouts()
    /// `nil` if what is stored is not authenticated.
    package var seal: StoreSealConfiguration?
    /// How many replicas a rotation or a revocation waits for.
    package var waitReplicas = 1
    /// What may be read from replicas.
    package var replicas = Replicas.never
    package var keyPrefix = "martlet:"
    package var onError = OnError.cached
}

/// `store.tls:`.
@frozen package struct StoreTLS: Sendable {
    package var authorityFile: Located<String>?
    package var certificate: CertificateFiles?
    package var serverName: String?

    package init() {}
}

/// `store.seal:` — how what is believed of the store is authenticated.
@frozen package struct StoreSealConfiguration: Sendable {
    /// What happens to values that do not verify.
    @frozen package enum Mode: String, ConfigurationChoice { case enforce, observe }

    /// 32 bytes each; the first seals, all verify.
    package var keys: [Secret]
    package var mode = Mode.enforce
    package var acceptsUnsealedUntil: UnixTime?
}

/// `store.timeouts:`.
@frozen package struct StoreTimeouts: Sendable {
    package var connect = Duration.seconds(1)
    package var command = Duration.milliseconds(500)
    package var sharedLimit = Duration.milliseconds(75)

    package init() {}
}

/// `jwks:` — how issuers' keys are fetched and cached.
@frozen package struct JWKSConfiguration: Sendable, Equatable {
    package var ttl = Duration.seconds(3600)
    package var maximumStale = Duration.seconds(24 * 3600)
    package var unknownKeyCooldown = Duration.seconds(60)
    package var negativeTTL = Duration.seconds(60)
    package var fetchTimeout = Duration.seconds(3)

    package init() {}
}

/// One entry of `providers:`: its name, its kind, and the rest of the block for the plugin to decode.
@frozen package struct ProviderConfiguration: Sendable {
    package var name: Located<String>
    package var kind: Located<String>
    /// How many calls run and wait at a time; `nil` without `bulkhead`.
    package var bulkhead: BulkheadConfiguration?
    /// What pages call it; `nil` for its name.
    package var label: String?
    /// What pages show on its button.
    package var icon: Located<FilePath>?
    /// How it reaches its issuer, where that differs from `outbound:`.
    package var outbound = OutboundConfiguration()
    /// The block with positions, with the keys of `outbound:`.
    package var whole: ConfigurationNode

    /// The block with positions, without the keys that every provider has and its kind has not.
    /// - Parameter grammar: of its kind, which may mean another thing by a name.
    package func block(_ grammar: ConfigurationGrammar?) -> ConfigurationNode {
        let others = Set(OutboundConfiguration.table.keyNames).subtracting(grammar?.keyNames ?? [])
        let entries = (whole.entries ?? []).filter { !others.contains($0.key.value) }
        return ConfigurationNode(.mapping(entries), at: whole.location)
    }
}

/// `providers.X.bulkhead:`.
package struct BulkheadConfiguration: Sendable, Equatable {
    package var concurrency = 64
    package var queue = 256

    package init() {}
}

/// One entry of `upstreams:`.
@frozen package struct UpstreamConfiguration: Sendable {
    /// The load-balancing policy.
    @frozen package enum Balance: Sendable, Equatable {
        case leastRequests
        case roundRobin
        /// By a hash of this request header (lower case).
        case hash(header: String)
        /// By a hash of the caller's subject.
        case hashSubject
        /// By a hash of the client's address.
        case hashAddress
    }

    /// The `Host` sent to the upstream.
    @frozen package enum HostPolicy: Sendable, Equatable {
        case keep
        case endpoint
        case fixed(String)
    }

    package var name: Located<String>
    /// In file order; at least one.
    package var members: [EndpointConfiguration]
    package var timeouts = UpstreamTimeouts()
    package var host = HostPolicy.keep
    package var balance = Balance.leastRequests
    package var transport = UpstreamTransport()
    package var policies = UpstreamPolicies()

    /// The addresses of its endpoints.
    package var endpoints: [Located<EndpointAddress>] { members.map(\.address) }
}

/// The address of one endpoint of an upstream.
@frozen package enum EndpointAddress: Sendable, Hashable {
    /// `http://host:port`; the host may be a name or an address literal without brackets.
    case http(host: String, port: UInt16)
    /// `https://host:port`: the same with TLS.
    case https(host: String, port: UInt16)
    /// `h2c://host:port`: HTTP/2 in clear text with prior knowledge (RFC 9113 §3.3).
    case h2c(host: String, port: UInt16)
    /// `unix:/path`.
    case unix(path: String)
    /// `builtin:echo`: echoes the request as JSON.
    case echo

    /// The host to resolve, and the port; `nil` if there is no host.
    package var hostAndPort: (host: String, port: UInt16)? {
        switch self {
        case .http(let host, let port), .https(let host, let port), .h2c(let host, let port): (host, port)
        case .unix, .echo: nil
        }
    }
}

/// `upstreams.*.timeouts`.
@frozen package struct UpstreamTimeouts: Sendable, Equatable {
    package var connect = Duration.seconds(2)
    package var responseHead = Duration.seconds(30)
    package var idle = Duration.seconds(60)

    package init() {}
}

/// One entry of `routes:`.
// lint:large-type one property for each key of a route
@frozen package struct RouteConfiguration: Sendable {
    /// How callers are authenticated.
    @frozen package enum Authentication: Sendable {
        case none
        case required(providers: [String])
        case optional(providers: [String])
    }

    /// Which paths match.
    @frozen package enum PathPattern: Sendable {
        /// Any path.
        case any
        case glob(Located<String>)
        case regex(Located<String>)
    }

    /// `limits.body_bytes` of a route.
    @frozen package enum BodyLimit: Sendable, Equatable {
        case inherited
        case unlimited
        case bytes(Int)
    }

    package var name: Located<String>
    /// Lower case, where `*.example.com` is one or more labels; empty is any host.
    package var hosts: [Located<String>] = []
    package var path = PathPattern.any
    /// Empty is any method.
    package var methods: [String] = []
    /// Without names, every configured provider is accepted.
    package var authentication = Authentication.required(providers: [])
    /// The accepted kinds of credentials.
    package var credentials: CredentialKinds = [.session, .direct]
    /// Whether the file has `credentials`, rather than relying on its default.
    package var statesCredentials = false
    /// Whether a browser without a session is sent to the sign-in page; `auth.browser: never` turns it off.
    package var signsInBrowsers = true
    package var authorize: [ConditionConfiguration] = []
    /// The index of each condition in the file's list, which may also contain `max_age` and `acr`; from 0.
    package var authorizeIndices: [Int] = []
    /// The conditions of `authorize` on the authentication.
    package var authenticationRequirement = AuthenticationRequirement()
    /// `max_age` of `auth`: the maximum age of the credential; `nil` is unlimited.
    package var maximumAge: Duration?
    /// `nil`: the default identity headers.
    package var setHeaders: [HeaderConfiguration]?
    /// Lower-case names.
    package var removeHeaders: [String] = []
    package var stripPrefix: Located<String>?
    package var bodyLimit = BodyLimit.inherited
    package var limits = RouteLimitsConfiguration()
    package var forwardsCredentials = false
    package var upgrade = UpgradeConfiguration()
    /// `match.headers` and `match.query`; all must hold.
    package var conditions: [RequestConditionConfiguration] = []
    package var rewrite = RewriteConfiguration()
    package var responseHeaders = ResponseHeaderConfiguration()
    /// Which pages of other origins may use it; `nil` leaves that to the upstream.
    package var crossOrigin: CrossOriginConfiguration?
    /// How long a request may take until the response's head; `nil` is unlimited.
    package var timeout: Duration?
    /// `nil` if the gateway responds itself, the route serves checks alone, or several upstreams share the requests.
    package var upstream: Located<String>?
    /// The upstreams that share the requests, instead of one.
    package var split: [SplitShare] = []
    /// Which upstream gets copies of requests, too.
    package var mirror: MirrorConfiguration?
    /// What it responds then.
    package var response: RouteResponseConfiguration?
}

/// `auth.credentials`: sessions, credentials of the providers themselves, or both.
@frozen package struct CredentialKinds: OptionSet, Sendable, Hashable {
    package let rawValue: UInt8

    package init(rawValue: UInt8) { self.rawValue = rawValue }

    package static let session = CredentialKinds(rawValue: 1)
    package static let direct = CredentialKinds(rawValue: 2)
}

/// One condition of `authorize:`.
@frozen package indirect enum ConditionConfiguration: Sendable {
    /// The test of a claim.
    @frozen package enum Test: Sendable {
        case equals(ClaimLiteral)
        case isIn([ClaimLiteral])
        case contains(ClaimLiteral)
        case matches(Located<String>)
        case exists(Bool)
        case greaterThan(Double)
        case lessThan(Double)
    }

    /// `orAbsent`: the condition holds where there is no such claim.
    case claim(name: ClaimPath, test: Test, inverted: Bool, orAbsent: Bool = false)
    case any([ConditionConfiguration])
}

/// A literal that a claim is compared with.
@frozen package enum ClaimLiteral: Sendable, Equatable {
    case bool(Bool)
    case number(Double)
    case text(String)
}

/// One entry of `headers.set`.
@frozen package struct HeaderConfiguration: Sendable {
    /// Where a header's value comes from.
    @frozen package enum Value: Sendable {
        case attribute(PrincipalAttribute)
        case claim(ClaimPath)
        /// The same for every request; it says nothing about the caller.
        case constant(String)
    }

    /// How a value is encoded for a header.
    @frozen package enum Encoding: String, ConfigurationChoice { case percent, base64url, rfc8187, ascii, json }

    /// As written in the file.
    package var name: Located<String>
    package var value: Value
    package var encoding: Encoding
    package var join: String?
    package var fallback: String?
}

/// The values of `attribute:`.
@frozen package enum PrincipalAttribute: String, ConfigurationChoice {
    case subject, provider, issuer, route
    case providerSubject = "provider_subject"
    case sessionID = "session_id"
    case authTime = "auth_time"
    case expiresAt = "expires_at"
    /// The address that is proved to be the caller's.
    case email
}
