/// One entry of `routes:`.
// lint:large-type one property for each key of a route
@frozen package struct RouteConfiguration: KeyedBlock {
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

    package var name = Located<String>.unread
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
    package var crossOrigin: CrossOriginConfiguration?
    package var timeout: Duration?
    /// `nil` if the gateway responds itself, the route serves checks alone, or several upstreams share the requests.
    package var upstream: Located<String>?
    package var split: [SplitShare] = []
    package var mirror: MirrorConfiguration?
    /// What it responds then.
    package var response: RouteResponseConfiguration?

    package static var grammar: ConfigurationGrammar? {
        table.withAtMostOne(of: ["upstream", "redirect"]).withAtMostOne(of: ["upstream", "respond"])
            .withAtMostOne(of: ["redirect", "respond"])
    }

    static let keys: [ConfigurationKey<Self>] = [
        .required("name", \.name, "The name of the route in logs and metrics."),
        .check(always: true) { if $1.given("name") != nil { $1.checkName($0.name) } },
        .block("match", as: RouteMatch.self, "The requests that the route matches; all of them if absent.") {
            ($0.hosts, $0.path, $0.methods, $0.conditions) = ($1.hosts, $1.path, $1.methods, $1.conditions)
        },
        .row(
            .optional(
                "auth", .either([.choice(["none"]), .block(of: RouteAuthentication.self)]),
                "`none`, or the accepted providers; any configured provider if absent.")
        ) { $0.readAuthentication(&$1) },
        .row(
            .optional(
                "authorize", .list(.authorize, nonEmpty: false), default: "[]",
                "Conditions on the caller's claims; all must hold.")
        ) { $0.readAuthorize(&$1) },
        .block("headers", as: RouteHeaders.self, "Headers that are set or removed.") {
            ($0.setHeaders, $0.removeHeaders, $0.responseHeaders) = ($1.set, $1.remove, $1.response)
        },
        .block("rewrite", as: RouteRewrite.self, "Changes to the path and the host.") {
            ($0.stripPrefix, $0.rewrite) = ($1.stripPrefix, $1.value)
        },
        .block(
            "cors", \.crossOrigin, "Which pages of other origins may use the route; left to the upstream if absent."),
        .key(
            "timeout", \.timeout, in: Duration.positive,
            "How long a request may take until the response's head; unlimited if absent."),
        .block("limits", as: RouteLimits.self, "Limits that override `server.limits`.") {
            ($0.bodyLimit, $0.limits) = ($1.body, $1.others)
        },
        .row(
            .optional(
                "upgrade", .either([.list(.text, nonEmpty: false), .block(of: UpgradeConfiguration.self)]),
                "Allowed upgrades and the limits of tunnels; a list is `protocols` alone.")
        ) { $0.upgrade = UpgradeConfiguration.read(&$1) },
        .key(
            "forward_credentials", \.forwardsCredentials,
            "Whether the credential that Martlet verified is forwarded to the upstream."),
        .check(always: true) { _, reader in RouteResponseConfiguration.check(&reader) },
        .key(
            "upstream", \.upstream,
            "The upstream of the requests: a name in `upstreams`; a route without one serves checks alone."),
        .row(
            .optional(
                "split", .list(.block(of: SplitShare.self), nonEmpty: true),
                "Instead of `upstream`: upstreams that share the requests.")
        ) { $0.split = SplitShare.read(&$1) },
        .block("mirror", \.mirror, "Beside `upstream` or `split`: an upstream that gets copies of requests."),
        .block("redirect", as: RedirectConfiguration.self, "Instead of `upstream`: where clients are sent.") {
            $0.response = .redirect($1)
        },
        .block(
            "respond", as: FixedResponseConfiguration.self, "Instead of `upstream`: a response of the gateway itself."
        ) {
            $0.response = .fixed($1)
        },
        .check(always: true) { $0.check(&$1) },
    ]

    private mutating func check(_ reader: inout ConfigurationReader) {
        HeaderConfiguration.warnAboutAddresses(in: setHeaders ?? [], where: authorize, &reader.diagnostics)
        if reader.has("cors") { CrossOriginConfiguration.check(reader.node("headers"), &reader) }
        if case .none = authentication, !authorize.isEmpty || !authenticationRequirement.isEmpty {
            reader.reject(
                "authorize", .configBadValue, "cannot be used with 'auth: none', which authenticates no caller")
        }
        let upstreams = (upstream.map { [$0] } ?? []) + split.map(\.upstream)
        mirror?.check(beside: upstreams, &reader)
        if upstreams.isEmpty { upgrade = .none }
    }
}

/// `match:` of a route.
struct RouteMatch: KeyedBlock {
    var hosts: [Located<String>] = []
    var path = RouteConfiguration.PathPattern.any
    var methods: [String] = []
    var conditions: [RequestConditionConfiguration] = []

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
                reader.reject("path_regex", beside: "path")
            } else if regex.value.isEmpty {
                reader.reject("path_regex", .configBadPattern, "must not be empty")
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
