extension RouteConfiguration: ConfigurationDecodable {
    package static var grammar: ConfigurationGrammar? {
        .init([
            .required("name", .text, "The name of the route in logs and metrics."),
            .optional(
                "match", .block(of: RouteMatch.self), "The requests that the route matches; all of them if absent."),
            .optional(
                "auth", .either([.choice(["none"]), .block(of: RouteAuthentication.self)]),
                "`none`, or the accepted providers; any configured provider if absent."),
            .optional(
                "authorize", .list(.authorize, nonEmpty: false), default: "[]",
                "Conditions on the caller's claims; all must hold."),
            .optional("headers", .block(of: RouteHeaders.self), "Headers that are set or removed."),
            .optional("rewrite", .block(of: RouteRewrite.self), "Changes to the path and the host."),
            .optional(
                "cors", .block(of: CrossOriginConfiguration.self),
                "Which pages of other origins may use the route; left to the upstream if absent."),
            .optional(
                "timeout", .duration, "How long a request may take until the response's head; unlimited if absent."),
            .optional("limits", .block(of: RouteLimits.self), "Limits that override `server.limits`."),
            .optional(
                "upgrade", .either([.list(.text, nonEmpty: false), .block(of: UpgradeConfiguration.self)]),
                "Allowed upgrades and the limits of tunnels; a list is `protocols` alone."),
            .optional(
                "forward_credentials", .boolean, default: "false",
                "Whether the credential that Martlet verified is forwarded to the upstream."),
            .optional(
                "upstream", .text,
                "The upstream of the requests: a name in `upstreams`; a route without one serves checks alone."),
            .optional(
                "split", .list(.block(of: SplitShare.self), nonEmpty: true),
                "Instead of `upstream`: upstreams that share the requests."),
            .optional(
                "mirror", .block(of: MirrorConfiguration.self),
                "Beside `upstream` or `split`: an upstream that gets copies of requests."),
            .optional(
                "redirect", .block(of: RedirectConfiguration.self), "Instead of `upstream`: where clients are sent."),
            .optional(
                "respond", .block(of: FixedResponseConfiguration.self),
                "Instead of `upstream`: a response of the gateway itself."),
        ])
        .withAtMostOne(of: ["upstream", "redirect"]).withAtMostOne(of: ["upstream", "respond"])
        .withAtMostOne(of: ["redirect", "respond"])
    }

    package init(from reader: inout ConfigurationReader) throws(ConfigurationError) {
        let match = reader.block("match") ?? RouteMatch()
        (hosts, path, methods) = (match.hosts, match.path, match.methods)
        conditions = match.conditions
        let authentication = RouteAuthentication.read(&reader)
        self.authentication = authentication?.value ?? .none
        credentials = authentication?.credentials ?? [.session, .direct]
        statesCredentials = authentication?.statesCredentials ?? false
        signsInBrowsers = authentication?.signsInBrowsers ?? true
        let rules = AuthorizeRules.read(&reader)
        (authorize, authorizeIndices) = (rules.conditions, rules.indices)
        authenticationRequirement = rules.authentication
        maximumAge = authentication?.maximumAge
        let headers = reader.block("headers") ?? RouteHeaders()
        (setHeaders, removeHeaders, responseHeaders) = (headers.set, headers.remove, headers.response)
        HeaderConfiguration.warnAboutAddresses(in: headers.set ?? [], where: rules.conditions, &reader.diagnostics)
        let rewrite = reader.block("rewrite") ?? RouteRewrite()
        (stripPrefix, self.rewrite) = (rewrite.stripPrefix, rewrite.value)
        crossOrigin = reader.block("cors")
        if reader.has("cors") { CrossOriginConfiguration.check(reader.node("headers"), &reader) }
        timeout = reader.optional("timeout", in: Duration.positive)
        let limits = reader.block("limits") ?? RouteLimits()
        (bodyLimit, self.limits) = (limits.body, limits.others)
        upgrade = UpgradeConfiguration.read(&reader)
        forwardsCredentials = reader.optional("forward_credentials", default: false)
        if let node = reader.node("authorize"), case .none = self.authentication, !rules.isEmpty, authentication != nil
        {
            reader.error(
                .configBadValue, at: node.location,
                "authorize: cannot be used with 'auth: none', which authenticates no caller")
        }
        response = RouteResponseConfiguration.read(&reader)
        let name = reader.expectedName("name")
        split = SplitShare.read(&reader)
        upstream = reader.optional("upstream")
        let upstreams = (upstream.map { [$0] } ?? []) + split.map(\.upstream)
        mirror = MirrorConfiguration.read(
            &reader, beside: upstreams, hasResponse: reader.has("redirect") || reader.has("respond"))
        if upstreams.isEmpty { upgrade = .none }
        guard let name else { throw .alreadyReported }
        self.name = name
    }
}

/// `match:` of a route.
struct RouteMatch: KeyedBlock {
    var hosts: [Located<String>] = []
    var path = RouteConfiguration.PathPattern.any
    var methods: [String] = []
    var conditions: [RequestConditionConfiguration] = []

    init() {}

    static let keys: [ConfigurationKey<Self>] = [
        .key(
            "hosts", \.hosts, as: NonEmpty<Located<HostPattern>>.self,
            "`api.example.com`, or `*.example.com` for its subdomains; any host if absent."),
        .key(
            "path", \.glob, as: Located<PathGlob>?.self, shape: .pattern("^/"),
            "`*` is one segment or a part of one, `**` any number of segments; any path if absent."),
        .key("path_regex", \.regex, "Instead of `path`: a regular expression that matches the whole path."),
        .key("methods", \.methods, as: NonEmpty<MethodName>.self, "Any method if absent; `GET` is for `HEAD`, too."),
        .row(
            .optional("headers", conditionList, default: "[]", "Conditions on the request's headers; all must hold.")),
        .row(
            .optional(
                "query", conditionList, default: "[]", "Conditions on the parameters of the query; all must hold.")),
        .check { match, reader in
            match.conditions = RequestConditionBlock.read(.header, "headers", &reader)
            match.conditions += RequestConditionBlock.read(.query, "query", &reader)
            guard let regex = match.regex else { return }
            if reader.given("path") != nil {
                reader.error(
                    .configConflictingKeys, at: regex.location,
                    "'path' and 'path_regex' are both given in \(reader.title)")
            } else if regex.value.isEmpty {
                reader.error(.configBadPattern, at: regex.location, "path_regex: must not be empty")
            }
        },
    ]

    private static let conditionList = ConfigurationGrammar.Shape.list(
        .block(of: RequestConditionBlock.self), nonEmpty: false)

    private var glob: Located<String>? {
        get { nil }
        set { if let newValue { path = .glob(newValue) } }
    }

    private var regex: Located<String>? {
        get { if case .regex(let regex) = path { regex } else { nil } }
        set { if let newValue { path = .regex(newValue) } }
    }
}

/// `limits:` of a route.
struct RouteLimits: KeyedBlock {
    var body = RouteConfiguration.BodyLimit.inherited
    var others = RouteLimitsConfiguration()

    init() {}

    static let keys: [ConfigurationKey<Self>] =
        [.key("body_bytes", \.body, "Overrides `server.limits.body_bytes`; `unlimited` for streams.")]
        + RouteLimitsConfiguration.keys
}

extension RouteConfiguration.BodyLimit: Spelling {
    static let shape = SizeLimit.shape

    init(decoding node: ConfigurationNode) throws(ConfigurationError) {
        self = try SizeLimit(decoding: node).content.map { .bytes($0) } ?? .unlimited
    }
}
