import MartletConfig
import MartletCore
import MartletHTTP

/// Compiles routes one by one and keeps what they share: methods, header templates, reserved names.
struct RouteCompiler {
    private let upstreams: [String: Int]
    private let providers: [String: Int]
    private let paths: PathOptions
    private let limits: Limits
    private var routes: ContiguousArray<Route> = []
    private var injections: ContiguousArray<HeaderInjection> = []
    private var injectionIndices: [HeaderInjection.Key: Int] = [:]
    /// By their letters; those of the default set belong to the gateway even where every route has a set of its own.
    private var reservedNames: Set<String>
    /// The letters of the assertion's header; no route may set or remove it.
    private var assertionName: String?
    private var methods = MethodNames()
    private(set) var diagnostics = Diagnostics()

    init(upstreams: [String], providers: [String], paths: PathOptions, limits: Limits) {
        self.upstreams = Dictionary(zip(upstreams, upstreams.indices), uniquingKeysWith: { first, _ in first })
        self.providers = Dictionary(zip(providers, providers.indices), uniquingKeysWith: { first, _ in first })
        self.paths = paths
        self.limits = limits
        reservedNames = Set((HeaderInjection.defaultNames + ["X-Auth-Assertion"]).map { ReservedNames.letters(of: $0) })
    }

    /// Keeps a header for the signed assertion.
    mutating func reserve(_ header: Located<String>) {
        let letters = ReservedNames.letters(of: header.value)
        assertionName = letters
        reservedNames.insert(letters)
        if let problem = ReservedNames.problem(with: header.value, .set) {
            diagnostics.error(.configBadHeader, at: header.location, "header '\(header.value)' \(problem)")
        } else if HeaderInjection.defaultNames.contains(where: { ReservedNames.letters(of: $0) == letters }) {
            diagnostics.error(
                .configBadHeader, at: header.location, "header '\(header.value)' is one of the default identity headers"
            )
        }
    }

    /// Compiles one route; what is wrong goes to ``diagnostics`` and the route is left out.
    mutating func add(_ route: RouteConfiguration) {
        let pattern = RoutePattern(hosts: hosts(of: route), path: path(of: route), methods: methodSet(of: route))
        let (mode, vouching) = authentication(of: route)
        let policy = policy(of: route, mode)
        let injection = injection(of: route)
        let stripPrefix = stripPrefix(of: route)
        for name in route.removeHeaders { check(removed: name, of: route) }
        guard let upstream = upstreams[route.upstream.value] else {
            return diagnostics.error(
                .configUnknownUpstream, at: route.upstream.location,
                "route '\(route.name.value)' names upstream '\(route.upstream.value)', which is not defined")
        }
        routes.append(
            Route(
                index: routes.count, name: route.name.value, upstream: upstream, mount: -1, mode: mode,
                providers: vouching, credentials: route.credentials,
                bodyLimit: bodyLimit(of: route), streamLimit: streamLimit(of: route),
                forwardsCredentials: route.forwardsCredentials,
                removeNames: FieldNameSet(route.removeHeaders, reservesAuthPrefix: false), upgrade: route.upgrade,
                policy: policy, injection: injection,
                pattern: pattern, stripPrefix: stripPrefix))
    }

    /// Puts what the gateway answers itself before the routes.
    mutating func add(_ mount: RouteMount, number: Int) {
        do {
            let hosts = try mount.hosts.map { text in try HostPattern(text) }
            let path = try PathGlob(try PathText.normalized(mount.path, .glob, paths))
            routes.append(
                Route(
                    index: routes.count, name: mount.name, upstream: -1, mount: number, mode: .none, providers: [],
                    credentials: [], bodyLimit: mount.bodyLimit, streamLimit: mount.bodyLimit,
                    forwardsCredentials: false,
                    removeNames: FieldNameSet([], reservesAuthPrefix: false), upgrade: .none,
                    policy: Policy(rules: [], maximumAge: nil, maximumAgeIndex: nil), injection: -1,
                    pattern: RoutePattern(hosts: hosts, path: .glob(path), methods: .any), stripPrefix: []))
        } catch {
            diagnostics.error(.configBadPattern, at: mount.location, "'\(mount.path)' \(error)")
        }
    }

    /// The table; only when there were no errors.
    func build() -> RouteTable {
        RouteTable(
            routes: routes, injections: injections,
            reservedNames: FieldNameSet(reservedNames.sorted(), reservesAuthPrefix: true), methods: methods)
    }

    // MARK: Matching

    private mutating func hosts(of route: RouteConfiguration) -> [HostPattern] {
        var patterns: [HostPattern] = []
        for host in route.hosts {
            do {
                patterns.append(try HostPattern(host.value))
            } catch {
                diagnostics.error(.configBadPattern, at: host.location, "host '\(host.value)' \(error)")
            }
        }
        return patterns
    }

    private mutating func path(of route: RouteConfiguration) -> RoutePattern.Path {
        switch route.path {
        case .any: return .any
        case .glob(let text):
            do {
                return .glob(try PathGlob(try PathText.normalized(text.value, .glob, paths)))
            } catch {
                diagnostics.error(.configBadPattern, at: text.location, "path '\(text.value)' \(error)")
            }
        case .regex(let text):
            do {
                return .expression(try RegularExpression(text.value, of: .path))
            } catch {
                diagnostics.error(.configBadPattern, at: text.location, "path_regex \(error)")
            }
        }
        return .any
    }

    private mutating func methodSet(of route: RouteConfiguration) -> MethodSet {
        guard !route.methods.isEmpty else { return .any }
        var set: MethodSet = []
        for name in route.methods {
            guard !name.isEmpty, name.utf8.allSatisfy(\.isTokenCharacter) else {
                error(.configBadValue, route, "has method '\(name)', which is not a token")
                continue
            }
            guard !MethodRegistry.hasInOtherCase(Array(name.utf8).span) else {
                error(
                    .configBadValue, route,
                    "has method '\(name)': requests with it are refused; '\(name.uppercased())' is one")
                continue
            }
            guard let bit = methods.bit(of: name) else {
                error(
                    .configBadValue, route, "brings the methods of all routes to more than \(MethodNames.maximumCount)")
                continue
            }
            set.formUnion(bit)
            if name == "GET", let head = methods.bit(of: "HEAD") { set.formUnion(head) }
        }
        return set
    }

    private mutating func stripPrefix(of route: RouteConfiguration) -> [UInt8] {
        guard let text = route.stripPrefix else { return [] }
        do {
            var prefix = try PathText.normalized(text.value, .literal, paths)
            if prefix.last == .slash { prefix.removeLast() }
            return prefix
        } catch {
            diagnostics.error(.configBadPattern, at: text.location, "strip_prefix '\(text.value)' \(error)")
            return []
        }
    }

    // MARK: Demands

    private mutating func authentication(of route: RouteConfiguration) -> (Route.Mode, [Int]) {
        let mode: Route.Mode
        let names: [String]
        switch route.authentication {
        case .none: return (.none, [])
        case .required(let listed): (mode, names) = (.required, listed)
        case .optional(let listed): (mode, names) = (.optional, listed)
        }
        // A route that lists nobody is vouched for by any configured provider.
        guard !names.isEmpty else { return (mode, providers.values.sorted()) }
        var places: [Int] = []
        for name in names {
            if let place = providers[name] {
                places.append(place)
            } else {
                diagnostics.error(
                    .configUnknownProvider, at: route.name.location,
                    "route '\(route.name.value)' names provider '\(name)', which is not defined")
            }
        }
        return (mode, places)
    }

    private mutating func policy(of route: RouteConfiguration, _ mode: Route.Mode) -> Policy {
        var rules: [Policy.Rule] = []
        for (place, condition) in route.authorize.enumerated() {
            do {
                let index = route.authorizeIndices.indices.contains(place) ? route.authorizeIndices[place] : place
                rules.append(Policy.Rule(condition: try Condition(condition, depth: 0), index: index))
            } catch {
                diagnostics.error(
                    .configBadValue, at: error.location ?? route.name.location,
                    "route '\(route.name.value)' has a condition that \(error.text)")
            }
        }
        if mode == .none, !route.authorize.isEmpty || route.maximumAge != nil {
            error(.configBadValue, route, "has conditions but 'auth: none', so that nobody could meet them")
        }
        return Policy(
            rules: rules, maximumAge: route.maximumAge?.wholeSeconds, maximumAgeIndex: route.maximumAgeIndex)
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
                        "header '\(header.name.value)' is set twice: names are the same in any case and with '_' for '-'"
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
                .configBadHeader, at: header.name.location, "header '\(name)' is the assertion's and cannot be set")
        }
        if let problem = ReservedNames.problem(with: name, .set) {
            diagnostics.error(.configBadHeader, at: header.name.location, "header '\(name)' \(problem)")
        }
        if let join = header.join, let problem = HeaderEncoder(header.encoding).problem(withSeparator: join) {
            diagnostics.error(.configBadHeader, at: header.name.location, "join of header '\(name)' \(problem)")
        }
        if let fallback = header.fallback,
            let problem = HeaderTemplate(header, route: "").problem(withDefault: fallback)
        {
            diagnostics.error(.configBadHeader, at: header.name.location, "default of header '\(name)' \(problem)")
        }
    }

    private mutating func check(removed name: String, of route: RouteConfiguration) {
        if ReservedNames.letters(of: name) == assertionName {
            error(.configBadHeader, route, "removes header '\(name)', which is the assertion's")
        }
        if let problem = ReservedNames.problem(with: name, .remove) {
            error(.configBadHeader, route, "removes header '\(name)', which \(problem)")
        }
    }

    private mutating func error(_ code: ErrorCode, _ route: RouteConfiguration, _ text: String) {
        diagnostics.error(code, at: route.name.location, "route '\(route.name.value)' \(text)")
    }
}
