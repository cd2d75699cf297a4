/// `sessions:` — session lifetimes, and the location of the sign-in endpoints.
@frozen package struct SessionsConfiguration: KeyedBlock, Equatable {
    package var accessTTL = Duration.seconds(15 * 60)
    package var refreshTTL = Duration.seconds(60 * 86_400)
    package var idleTimeout = Duration.seconds(30 * 86_400)
    package var refreshReuseGrace = Duration.seconds(30)
    package var maximumPerSubject = 10
    package var cacheTTL = Duration.seconds(5)
    package var dpop = SessionBinding.off
    /// Normalized, without a final slash.
    package var path = "/auth"
    /// Lower case, as a route's; empty is any host.
    package var hosts: [String] = []
    /// Origins of web pages that may call the endpoints; if empty, preflights are not handled.
    package var corsOrigins: [String] = []
    package var loginLimits: [Located<String>] = []

    package init() {}

    /// Tokens express their expiry in whole seconds.
    private static let lifetimes = Duration.seconds(1)...Duration.longestConfigured

    static let keys: [ConfigurationKey<Self>] = [
        .key("access_ttl", \.accessTTL, in: lifetimes, "The lifetime of an access token, at least 1s."),
        .key("refresh_ttl", \.refreshTTL, in: lifetimes, "The lifetime of a session, from the login."),
        .key(
            "idle_timeout", \.idleTimeout, in: lifetimes,
            "Ends a session this long after the last use of either of its tokens."),
        .key(
            "refresh_reuse_grace", \.refreshReuseGrace, in: .zero ... .seconds(3600),
            "How long a used refresh token still gets the same new pair; later reuse ends the session."),
        .key(
            "max_per_subject", \.maximumPerSubject, in: 1...10_000,
            "Sessions of one subject; a further one ends the oldest."),
        .key(
            "cache_ttl", \.cacheTTL, in: .zero ... .seconds(3600),
            "How long a worker may cache a session; `0s` queries the store each time."),
        .key(
            "dpop", \.dpop,
            "Whether the sessions of apps may be, or have to be, bound to a key of the client (RFC 9449)."),
        .key("path", \.path, as: SignInPath.self, "The path prefix of the sign-in endpoints."),
        .key(
            "hosts", \.hosts, as: [HostPattern].self,
            "Hosts of the sign-in endpoints, as in a route's `match`; any host if empty."),
        .block("cors", "Other origins whose web pages may sign in.", crossOrigin),
        .block("limits", "How often clients may try to sign in.", limits),
        .check { $0.check(&$1) },
    ]

    private static let crossOrigin: [ConfigurationKey<Self>] = [
        .key(
            "origins", \.corsOrigins, as: [PageOrigin].self,
            shape: .list(.pattern("^[a-z][a-z0-9+.-]*://"), nonEmpty: false),
            "Exact origins, such as `https://app.example.com` or `capacitor://localhost`; there is no wildcard."),
        .check { _, reader in
            for node in reader.given("origins")?.elements ?? [] {
                guard let origin = try? PageOrigin(decoding: node), !origin.isTrustworthy else { continue }
                reader.diagnostics.warning(
                    .configInsecure, at: node.location,
                    "origins: a page loaded in clear text can be forged and could sign in")
            }
        },
    ]

    private static let limits: [ConfigurationKey<Self>] = [
        .key(
            "login", \.loginLimits, as: NonEmpty<Located<String>>.self,
            "The rate limits of requests with the credential of a login: at most 8 names in `rate_limits`, none of which counts by `subject` or `provider`."
        ),
        .check { sessions, reader in
            guard let first = sessions.loginLimits.dropFirst(RouteLimitsConfiguration.maximumRates).first else {
                return
            }
            reader.error(
                .configTooLarge, at: first.location,
                "login: at most \(RouteLimitsConfiguration.maximumRates) rate limits")
        },
    ]

    private mutating func check(_ reader: inout ConfigurationReader) {
        // The default is bounded by `refresh_ttl`, so that a short session needs only one key.
        if reader.given("access_ttl") == nil { accessTTL = min(accessTTL, refreshTTL) }
        if accessTTL > refreshTTL {
            reader.reject(
                "access_ttl", .configBadDuration,
                "\(accessTTL.configurationText) is longer than refresh_ttl, \(refreshTTL.configurationText): "
                    + "no access token may outlive its session")
        }
        if refreshReuseGrace >= accessTTL {
            reader.warn(
                "refresh_reuse_grace", .configInsecure,
                "a stolen refresh token stays usable for \(refreshReuseGrace.configurationText), "
                    + "at least as long as an access token")
        }
        if cacheTTL > .seconds(60) {
            reader.warn(
                "cache_ttl", .configInsecure,
                "an ended session stays usable for \(cacheTTL.configurationText) where invalidation messages are lost")
        }
    }
}

/// `sessions.path`: plain segments that need no normalization.
private struct SignInPath: TextSpelling {
    static let shape = ConfigurationGrammar.Shape.pattern("^/")
    let text: String

    init(decoding node: ConfigurationNode) throws(ConfigurationError) {
        text = try PathPrefix(decoding: node).text
        // RFC 3986 §3.3 `pchar` without escapes, which could be written in two ways, and without `;`, which servers
        // read in two ways.
        let isPlain = text.utf8.allSatisfy {
            HostAndPort.isLetterOrDigit($0) || (0x41...0x5A).contains($0) || "/-._~!$&'()+,=:@".utf8.contains($0)
        }
        guard text.utf8.count <= 256, isPlain else {
            throw node.error(
                .configBadPattern, "\(quoted(text)) must be plain segments such as /auth, without escapes, '*' or ';'")
        }
    }
}

/// `sessions.dpop:` — whether sessions are bound to a key of the client (RFC 9449).
@frozen package enum SessionBinding: String, ConfigurationChoice {
    /// No new session is bound; one that is stays so.
    case off
    /// A session is bound if its client proves a key.
    case optional
    /// A session without a key is not created, and ends with its access token; those of browsers have none.
    case required
}
