extension SessionsConfiguration: ConfigurationDecodable {
    /// The shortest lifetime: tokens express their expiry in whole seconds.
    private static let shortest = Duration.seconds(1)
    private static let longestGrace = Duration.seconds(3600)
    private static let longestCacheTTL = Duration.seconds(3600)

    package static var grammar: ConfigurationGrammar? {
        .init([
            .optional("access_ttl", .duration, default: "15m", "The lifetime of an access token, at least 1s."),
            .optional("refresh_ttl", .duration, default: "60d", "The lifetime of a session, from the login."),
            .optional(
                "idle_timeout", .duration, default: "30d",
                "Ends a session this long after the last use of either of its tokens."),
            .optional(
                "refresh_reuse_grace", .duration, default: "30s",
                "How long a used refresh token still gets the same new pair; later reuse ends the session."),
            .optional(
                "max_per_subject", .integer(1...10_000), default: "10",
                "Sessions of one subject; a further one ends the oldest."),
            .optional(
                "cache_ttl", .duration, default: "5s",
                "How long a worker may cache a session; `0s` queries the store each time."),
            .optional(
                "dpop", .choice(SessionBinding.allCases.map(\.rawValue)), default: SessionBinding.off.rawValue,
                "Whether the sessions of apps may be, or have to be, bound to a key of the client (RFC 9449)."),
            .optional("path", .pattern("^/"), default: "/auth", "The path prefix of the sign-in endpoints."),
            .optional(
                "hosts", .list(.text, nonEmpty: false), default: "[]",
                "Hosts of the sign-in endpoints, as in a route's `match`; any host if empty."),
            .optional("cors", .block(of: CrossOriginRules.self), "Other origins whose web pages may sign in."),
            .optional("limits", .block(of: SignInLimits.self), "How often clients may try to sign in."),
        ])
    }

    package init(from reader: inout ConfigurationReader) throws(ConfigurationError) {
        self.init()
        let lifetimes = Self.shortest...Duration.longestConfigured
        refreshTTL = reader.optional("refresh_ttl", default: refreshTTL, in: lifetimes)
        // The default is bounded by `refresh_ttl`, so that a short session needs only one key.
        accessTTL = reader.optional("access_ttl", default: min(accessTTL, refreshTTL), in: lifetimes)
        idleTimeout = reader.optional("idle_timeout", default: idleTimeout, in: lifetimes)
        refreshReuseGrace = reader.optional(
            "refresh_reuse_grace", default: refreshReuseGrace, in: .zero...Self.longestGrace)
        maximumPerSubject = reader.optional("max_per_subject", default: maximumPerSubject, in: 1...10_000)
        cacheTTL = reader.optional("cache_ttl", default: cacheTTL, in: .zero...Self.longestCacheTTL)
        dpop = reader.optional("dpop", default: dpop)
        path = reader.optional("path", as: SignInPath.self)?.text ?? path
        hosts = reader.optional("hosts", as: [HostPattern].self)?.map(\.text) ?? hosts
        corsOrigins = reader.block("cors", as: CrossOriginRules.self)?.origins ?? corsOrigins
        loginLimits = reader.block("limits", as: SignInLimits.self)?.login ?? loginLimits
        check(&reader)
    }

    /// Checks across keys.
    private func check(_ reader: inout ConfigurationReader) {
        if let node = reader.node("access_ttl"), accessTTL > refreshTTL {
            reader.error(
                .configBadDuration, at: node.location,
                "access_ttl: \(accessTTL.configurationText) is longer than refresh_ttl, \(refreshTTL.configurationText): "
                    + "no access token may outlive its session")
        }
        if let node = reader.node("refresh_reuse_grace"), refreshReuseGrace >= accessTTL {
            reader.diagnostics.warning(
                .configInsecure, at: node.location,
                "refresh_reuse_grace: a stolen refresh token stays usable for \(refreshReuseGrace.configurationText), "
                    + "at least as long as an access token")
        }
        if let node = reader.node("cache_ttl"), cacheTTL > .seconds(60) {
            reader.diagnostics.warning(
                .configInsecure, at: node.location,
                "cache_ttl: an ended session stays usable for \(cacheTTL.configurationText) where invalidation messages are lost"
            )
        }
    }
}

/// `cors:` of `sessions`.
struct CrossOriginRules: ConfigurationDecodable {
    let origins: [String]

    static var grammar: ConfigurationGrammar? {
        .init([
            .optional(
                "origins", .list(.pattern("^[a-z][a-z0-9+.-]*://"), nonEmpty: false), default: "[]",
                "Exact origins, such as `https://app.example.com` or `capacitor://localhost`; there is no wildcard.")
        ])
    }

    init(from reader: inout ConfigurationReader) throws(ConfigurationError) {
        let listed = reader.optional("origins", as: [Located<PageOrigin>].self) ?? []
        origins = listed.map(\.value.text)
        for origin in listed where !origin.value.isTrustworthy {
            reader.diagnostics.warning(
                .configInsecure, at: origin.location,
                "origins: a page loaded in clear text can be forged and could sign in")
        }
    }
}

/// `limits:` of `sessions`.
struct SignInLimits: ConfigurationDecodable {
    let login: [Located<String>]

    static var grammar: ConfigurationGrammar? {
        .init([
            .optional(
                "login", .list(.text, nonEmpty: true),
                "The rate limits of requests with the credential of a login: at most 8 names in `rate_limits`, none of which counts by `subject` or `provider`."
            )
        ])
    }

    init(from reader: inout ConfigurationReader) throws(ConfigurationError) {
        login = reader.optional("login", as: NonEmpty<Located<String>>.self)?.elements ?? []
        if login.count > RouteLimitsConfiguration.maximumRates,
            let first = login.dropFirst(RouteLimitsConfiguration.maximumRates).first
        {
            reader.error(
                .configTooLarge, at: first.location,
                "login: at most \(RouteLimitsConfiguration.maximumRates) rate limits")
        }
    }
}

/// `sessions.path`: plain segments that need no normalization.
private struct SignInPath: ConfigurationValue {
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
