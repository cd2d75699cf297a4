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
                "cors", .block(of: RouteCrossOrigin.self),
                "Which pages of other origins may use the route; left to the upstream if absent."),
            .optional(
                "timeout", .duration,
                "How long a request may take until the response's head; unlimited if absent."),
            .optional("limits", .block(of: RouteLimits.self), "Limits that override `server.limits`."),
            .optional(
                "upgrade", .either([.list(.text, nonEmpty: false), .block(of: RouteUpgrade.self)]),
                "Allowed upgrades and the limits of tunnels; a list is `protocols` alone."),
            .optional(
                "forward_credentials", .boolean, default: "false",
                "Whether the credential that Martlet verified is forwarded to the upstream."),
            .optional(
                "upstream", .text,
                "The upstream of the requests: a name in `upstreams`; a route without one serves checks alone."),
            .optional(
                "split", .list(.block(of: RouteSplitShare.self), nonEmpty: true),
                "Instead of `upstream`: upstreams that share the requests."),
            .optional(
                "mirror", .block(of: RouteMirror.self),
                "Beside `upstream` or `split`: an upstream that gets copies of requests."),
            .optional("redirect", .block(of: RouteRedirect.self), "Instead of `upstream`: where clients are sent."),
            .optional(
                "respond", .block(of: RouteRespond.self), "Instead of `upstream`: a response of the gateway itself."),
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
        crossOrigin = reader.block("cors", as: RouteCrossOrigin.self)?.value
        if reader.has("cors") { RouteCrossOrigin.check(reader.node("headers"), &reader) }
        timeout = reader.optional("timeout", in: Duration.positive)
        let limits = reader.block("limits") ?? RouteLimits()
        (bodyLimit, self.limits) = (limits.body, limits.others)
        upgrade = RouteUpgrade.read(&reader)
        forwardsCredentials = reader.optional("forward_credentials", default: false)
        if let node = reader.node("authorize"), case .none = self.authentication, !rules.isEmpty, authentication != nil
        {
            reader.error(
                .configBadValue, at: node.location,
                "authorize: cannot be used with 'auth: none', which authenticates no caller")
        }
        response = RouteResponseConfiguration.read(&reader)
        let name = reader.expectedName("name")
        split = RouteSplitShare.read(&reader)
        upstream = reader.optional("upstream")
        let upstreams = (upstream.map { [$0] } ?? []) + split.map(\.upstream)
        mirror = RouteMirror.read(
            &reader, beside: upstreams, hasResponse: reader.has("redirect") || reader.has("respond"))
        if upstreams.isEmpty { upgrade = .none }
        guard let name else { throw .alreadyReported }
        self.name = name
    }
}

/// `match:` of a route.
struct RouteMatch: ConfigurationDecodable {
    var hosts: [Located<String>] = []
    var path = RouteConfiguration.PathPattern.any
    var methods: [String] = []
    var conditions: [RequestConditionConfiguration] = []

    init() {}

    static var grammar: ConfigurationGrammar? {
        .init([
            .optional(
                "hosts", .list(.text, nonEmpty: true),
                "`api.example.com`, or `*.example.com` for its subdomains; any host if absent."),
            .optional(
                "path", .pattern("^/"),
                "`*` is one segment or a part of one, `**` any number of segments; any path if absent."),
            .optional("path_regex", .text, "Instead of `path`: a regular expression that matches the whole path."),
            .optional("methods", .list(.text, nonEmpty: true), "Any method if absent; `GET` is for `HEAD`, too."),
            .optional(
                "headers", .list(.block(of: RequestConditionBlock.self), nonEmpty: false), default: "[]",
                "Conditions on the request's headers; all must hold."),
            .optional(
                "query", .list(.block(of: RequestConditionBlock.self), nonEmpty: false), default: "[]",
                "Conditions on the parameters of the query; all must hold."),
        ])
    }

    init(from reader: inout ConfigurationReader) throws(ConfigurationError) {
        hosts =
            reader.optional("hosts", as: NonEmpty<Located<HostPattern>>.self)?.map {
                Located($0.value.text, at: $0.location)
            } ?? []
        methods = reader.optional("methods", as: NonEmpty<MethodName>.self)?.map(\.text) ?? []
        conditions = RequestConditionBlock.read(.header, "headers", &reader)
        conditions += RequestConditionBlock.read(.query, "query", &reader)
        let glob: Located<PathGlob>? = reader.optional("path")
        let regex: Located<String>? = reader.optional("path_regex")
        if let glob { path = .glob(Located(glob.value.text, at: glob.location)) }
        guard let regex else { return }
        if glob != nil {
            reader.error(
                .configConflictingKeys, at: regex.location, "'path' and 'path_regex' are both given in \(reader.title)")
        } else if regex.value.isEmpty {
            reader.error(.configBadPattern, at: regex.location, "path_regex: must not be empty")
        }
        path = .regex(regex)
    }
}

/// `limits:` of a route.
struct RouteLimits: ConfigurationDecodable {
    var body = RouteConfiguration.BodyLimit.inherited
    var others = RouteLimitsConfiguration()

    init() {}

    static var grammar: ConfigurationGrammar? {
        .init(
            [
                .optional(
                    "body_bytes", .either([.size, .choice(["unlimited"])]),
                    "Overrides `server.limits.body_bytes`; `unlimited` for streams.")
            ] + RouteLimitsConfiguration.keys)
    }

    init(from reader: inout ConfigurationReader) throws(ConfigurationError) {
        let limit: SizeLimit? = reader.optional("body_bytes")
        if let limit { body = limit.bytes.map { .bytes($0) } ?? .unlimited }
        others = RouteLimitsConfiguration(&reader)
    }
}
