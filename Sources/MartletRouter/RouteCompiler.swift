import MartletConfig
import MartletCore
import MartletHTTP

/// Compiles routes one by one, with the data that they share: methods, header templates, reserved names.
struct RouteCompiler {
    let upstreams: [String: Int]
    private let providers: [String: Int]
    let paths: PathOptions
    private let limits: Limits
    private var routes: ContiguousArray<Route> = []
    private var injections: ContiguousArray<HeaderInjection> = []
    private var injectionIndices: [HeaderInjection.Key: Int] = [:]
    /// Stored as letters and digits. Includes the default headers even if no route uses them.
    private(set) var reservedNames: Set<String>
    /// The letters and digits of the assertion header, which no route may set or remove.
    private var assertionName: String?
    var methods = MethodNames()
    var diagnostics = Diagnostics()

    init(upstreams: [String], providers: [String], paths: PathOptions, limits: Limits) {
        self.upstreams = Dictionary(zip(upstreams, upstreams.indices), uniquingKeysWith: { first, _ in first })
        self.providers = Dictionary(zip(providers, providers.indices), uniquingKeysWith: { first, _ in first })
        self.paths = paths
        self.limits = limits
        reservedNames = Set((HeaderInjection.defaultNames + ["X-Auth-Assertion"]).map { ReservedNames.letters(of: $0) })
    }

    /// Reserves the header of the signed assertion.
    mutating func reserve(_ header: Located<String>) {
        let letters = ReservedNames.letters(of: header.value)
        assertionName = letters
        reservedNames.insert(letters)
        if let reason = ReservedNames.validationError(of: header.value, .set) {
            diagnostics.error(.configBadHeader, at: header.location, "header '\(header.value)' \(reason)")
        } else if HeaderInjection.defaultNames.contains(where: { ReservedNames.letters(of: $0) == letters }) {
            diagnostics.error(
                .configBadHeader, at: header.location, "header '\(header.value)' is one of the default identity headers"
            )
        }
    }

    /// Reserves the field that marks copies of requests.
    mutating func reserve(markOf name: String) { reservedNames.insert(ReservedNames.letters(of: name)) }

    /// Compiles one route. Errors are recorded in ``diagnostics``, and the route is omitted.
    mutating func add(_ route: RouteConfiguration) {
        let pattern = RoutePattern(
            hosts: hosts(of: route), path: path(of: route), methods: methodSet(of: route),
            conditions: conditions(of: route))
        let (mode, accepted) = authentication(of: route)
        let policy = policy(of: route, mode)
        let injection = injection(of: route)
        let stripPrefix = prefix(route.stripPrefix, "strip_prefix")
        let rewrite = rewrite(of: route, stripping: stripPrefix)
        for name in route.removeHeaders { check(removed: name, of: route) }
        let mirror = mirror(of: route)
        guard let target = target(of: route) else { return }
        routes.append(
            Route(
                index: routes.count, name: route.name.value, upstream: target.upstream, split: target.split,
                mirror: mirror, response: target.response,
                mount: -1, mode: mode,
                providers: accepted, credentials: route.credentials,
                bodyLimit: bodyLimit(of: route), streamLimit: streamLimit(of: route),
                forwardsCredentials: route.forwardsCredentials,
                removeNames: FieldNameSet(route.removeHeaders, reservesAuthPrefix: false),
                upgrade: target.response == nil ? route.upgrade : .none,
                policy: policy, injection: injection,
                pattern: pattern, stripPrefix: stripPrefix, rewrite: rewrite, host: route.rewrite.host,
                responseHeaders: route.responseHeaders, crossOrigin: route.crossOrigin, timeout: route.timeout))
    }

    /// Adds a mount; mounts must be added before the routes.
    mutating func add(_ mount: RouteMount, number: Int) {
        do {
            let hosts = try mount.hosts.map { text in try HostPattern(text) }
            let path = try PathGlob(try PathText.normalized(mount.path, .glob, paths))
            routes.append(
                Route(
                    index: routes.count, name: mount.name, upstream: -1, split: nil, mirror: nil, response: nil,
                    mount: number,
                    mode: .none,
                    providers: [],
                    credentials: [], bodyLimit: mount.bodyLimit, streamLimit: mount.bodyLimit,
                    forwardsCredentials: false,
                    removeNames: FieldNameSet([], reservesAuthPrefix: false), upgrade: .none,
                    policy: Policy(rules: [], maximumAge: nil, authentication: nil), injection: -1,
                    pattern: RoutePattern(hosts: hosts, path: .glob(path), methods: .any), stripPrefix: [],
                    rewrite: nil, host: nil, responseHeaders: ResponseHeaderConfiguration(), crossOrigin: nil,
                    timeout: nil))
        } catch {
            diagnostics.error(.configBadPattern, at: mount.location, "'\(mount.path)' \(error)")
        }
    }

    /// Builds the table; call it only if there were no errors.
    func build() -> RouteTable {
        RouteTable(
            routes: routes, injections: injections,
            reservedNames: FieldNameSet(reservedNames.sorted(), reservesAuthPrefix: true), methods: methods)
    }

    // MARK: Authorization

    private mutating func authentication(of route: RouteConfiguration) -> (Route.Mode, [Int]) {
        let mode: Route.Mode
        let names: [String]
        switch route.authentication {
        case .none: return (.none, [])
        case .required(let listed): (mode, names) = (.required, listed)
        case .optional(let listed): (mode, names) = (.optional, listed)
        }
        // Without a list, any configured provider is accepted.
        guard !names.isEmpty else { return (mode, providers.values.sorted()) }
        var indices: [Int] = []
        for name in names {
            if let index = providers[name] {
                indices.append(index)
            } else {
                diagnostics.error(
                    .configUnknownProvider, at: route.name.location,
                    "route '\(route.name.value)' names provider '\(name)', which is not defined")
            }
        }
        return (mode, indices)
    }

    private mutating func policy(of route: RouteConfiguration, _ mode: Route.Mode) -> Policy {
        var rules: [Policy.Rule] = []
        for (position, condition) in route.authorize.enumerated() {
            do {
                let index =
                    route.authorizeIndices.indices.contains(position) ? route.authorizeIndices[position] : position
                rules.append(Policy.Rule(condition: try Condition(condition, depth: 0), index: index))
            } catch {
                diagnostics.error(
                    .configBadValue, at: error.location ?? route.name.location,
                    "route '\(route.name.value)' has a condition that \(error.text)")
            }
        }
        let hasConditions =
            !route.authorize.isEmpty || route.maximumAge != nil || !route.authenticationRequirement.isEmpty
        if mode == .none, hasConditions {
            error(.configBadValue, route, "has conditions but 'auth: none', which authenticates no caller")
        }
        return Policy(
            rules: rules, maximumAge: route.maximumAge?.wholeSeconds,
            authentication: AuthenticationRule(route.authenticationRequirement))
    }

    private func bodyLimit(of route: RouteConfiguration) -> Int? {
        switch route.bodyLimit {
        case .inherited: limits.bodyBytes
        case .unlimited: nil
        case .bytes(let count): count
        }
    }

    private func streamLimit(of route: RouteConfiguration) -> Int? {
        if case .bytes(let count) = route.bodyLimit { count } else { nil }
    }

    // MARK: Headers

    private mutating func injection(of route: RouteConfiguration) -> Int {
        if let headers = route.setHeaders {
            var seen: Set<String> = []
            for header in headers {
                check(header, of: route)
                reservedNames.insert(ReservedNames.letters(of: header.name.value))
                if !seen.insert(ReservedNames.dashed(header.name.value)).inserted {
                    diagnostics.error(
                        .configBadHeader, at: header.name.location,
                        "header '\(header.name.value)' is set twice: names are compared ignoring case, with '_' equal to '-'"
                    )
                }
            }
        }
        let key = HeaderInjection.Key(headers: route.setHeaders, route: route.name.value)
        if let known = injectionIndices[key] { return known }
        injections.append(HeaderInjection(id: injections.count, headers: route.setHeaders, route: route.name.value))
        injectionIndices[key] = injections.count - 1
        return injections.count - 1
    }

    private mutating func check(_ header: HeaderConfiguration, of route: RouteConfiguration) {
        let name = header.name.value
        if ReservedNames.letters(of: name) == assertionName {
            diagnostics.error(
                .configBadHeader, at: header.name.location,
                "header '\(name)' is reserved for the assertion and cannot be set")
        }
        if let reason = ReservedNames.validationError(of: name, .set) {
            diagnostics.error(.configBadHeader, at: header.name.location, "header '\(name)' \(reason)")
        }
        if let join = header.join, let reason = HeaderEncoder(header.encoding).validationError(forSeparator: join) {
            diagnostics.error(.configBadHeader, at: header.name.location, "join of header '\(name)' \(reason)")
        }
        if let fallback = header.fallback,
            let reason = HeaderTemplate(header, route: "").validationError(forDefault: fallback)
        {
            diagnostics.error(.configBadHeader, at: header.name.location, "default of header '\(name)' \(reason)")
        }
    }

    private mutating func check(removed name: String, of route: RouteConfiguration) {
        if ReservedNames.letters(of: name) == assertionName {
            error(.configBadHeader, route, "removes header '\(name)', which is reserved for the assertion")
        }
        if let reason = ReservedNames.validationError(of: name, .remove) {
            error(.configBadHeader, route, "removes header '\(name)', which \(reason)")
        }
    }

    /// Records an error about a route as a whole.
    mutating func error(_ code: ErrorCode, _ route: RouteConfiguration, _ text: String) {
        diagnostics.error(code, at: route.name.location, "route '\(route.name.value)' \(text)")
    }
}
