extension RouteConfiguration: ConfigurationDecodable {
    package static var grammar: ConfigurationGrammar? {
        .init([
            .required("name", .text, "What logs and metrics call the route."),
            .optional("match", .block(of: RouteMatch.self), "Which requests it takes; all of them without it."),
            .optional(
                "auth", .either([.choice(["none"]), .block(of: RouteAuthentication.self)]),
                "`none`, or who vouches and how; any configured provider without it."),
            .optional(
                "authorize", .list(.authorize, nonEmpty: false), default: "[]",
                "Conditions on the caller's claims; all must hold."),
            .optional("headers", .block(of: RouteHeaders.self), "Headers that the upstream gets or does not get."),
            .optional("rewrite", .block(of: RouteRewrite.self), "Changes to the path."),
            .optional("limits", .block(of: RouteLimits.self), "Bounds that differ from `server.limits`."),
            .optional(
                "upgrade", .either([.list(.text, nonEmpty: false), .block(of: RouteUpgrade.self)]),
                "What requests may upgrade to, and when that ends; a list is `protocols` alone."),
            .optional(
                "forward_credentials", .boolean, default: "false",
                "Whether the upstream gets the credential that Martlet used."),
            .required("upstream", .text, "Where the request goes: a name in `upstreams`."),
        ])
    }

    package init(from reader: inout ConfigurationReader) throws(ConfigurationError) {
        let match = reader.block("match") ?? RouteMatch()
        (hosts, path, methods) = (match.hosts, match.path, match.methods)
        let authentication = RouteAuthentication.read(&reader)
        self.authentication = authentication?.value ?? .none
        credentials = authentication?.credentials ?? [.session, .direct]
        let rules = AuthorizeRules.read(&reader)
        (authorize, authorizeIndices) = (rules.conditions, rules.indices)
        maximumAge = [authentication?.maximumAge, rules.maximumAge].compactMap(\.self).min()
        maximumAgeIndex = maximumAge == rules.maximumAge ? rules.maximumAgeIndex : nil
        let headers = reader.block("headers") ?? RouteHeaders()
        (setHeaders, removeHeaders) = (headers.set, headers.remove)
        stripPrefix = (reader.block("rewrite") ?? RouteRewrite()).stripPrefix
        bodyLimit = (reader.block("limits") ?? RouteLimits()).body
        upgrade = RouteUpgrade.read(&reader)
        forwardsCredentials = reader.optional("forward_credentials", default: false)
        if let node = reader.node("authorize"), case .none = self.authentication, !rules.isEmpty, authentication != nil
        {
            reader.error(.configBadValue, at: node.location, "authorize: 'auth: none' leaves nobody to judge")
        }
        let name = reader.expectedName("name")
        let upstream = reader.expected("upstream", as: Located<String>.self)
        guard let name, let upstream else { throw .alreadyReported }
        (self.name, self.upstream) = (name, upstream)
    }
}

/// `match:` of a route.
struct RouteMatch: ConfigurationDecodable {
    var hosts: [Located<String>] = []
    var path = RouteConfiguration.PathPattern.any
    var methods: [String] = []

    init() {}

    static var grammar: ConfigurationGrammar? {
        .init([
            .optional(
                "hosts", .list(.text, nonEmpty: true),
                "`api.example.com`, or `*.example.com` for all below it; any host without it."),
            .optional(
                "path", .pattern("^/"),
                "`*` is one segment or a part of one, `**` any number of segments; any path without it."),
            .optional("path_regex", .text, "Instead of `path`: a regular expression for the whole path."),
            .optional("methods", .list(.text, nonEmpty: true), "Any method without it."),
        ])
    }

    init(from reader: inout ConfigurationReader) throws(ConfigurationError) {
        hosts =
            reader.optional("hosts", as: NonEmpty<Located<HostPattern>>.self)?.map {
                Located($0.value.text, at: $0.location)
            } ?? []
        methods = reader.optional("methods", as: NonEmpty<MethodName>.self)?.map(\.text) ?? []
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

/// `rewrite:` of a route.
struct RouteRewrite: ConfigurationDecodable {
    var stripPrefix: Located<String>?

    init() {}

    static var grammar: ConfigurationGrammar? {
        .init([.optional("strip_prefix", .text, "Whole segments that the upstream does not see: `/v1`.")])
    }

    init(from reader: inout ConfigurationReader) throws(ConfigurationError) {
        stripPrefix = reader.optional("strip_prefix", as: Located<PathPrefix>.self).map {
            Located($0.value.text, at: $0.location)
        }
    }
}

/// `limits:` of a route.
struct RouteLimits: ConfigurationDecodable {
    var body = RouteConfiguration.BodyLimit.inherited

    init() {}

    static var grammar: ConfigurationGrammar? {
        .init([
            .optional(
                "body_bytes", .either([.size, .choice(["unlimited"])]),
                "Instead of `server.limits.body_bytes`; `unlimited` for streams.")
        ])
    }

    init(from reader: inout ConfigurationReader) throws(ConfigurationError) {
        let limit: SizeLimit? = reader.optional("body_bytes")
        if let limit { body = limit.bytes.map { .bytes($0) } ?? .unlimited }
    }
}
