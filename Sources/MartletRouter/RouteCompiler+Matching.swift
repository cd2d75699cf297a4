import MartletConfig
import MartletCore
import MartletHTTP

/// What a route matches.
extension RouteCompiler {
    mutating func hosts(of route: RouteConfiguration) -> [HostPattern] {
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

    mutating func path(of route: RouteConfiguration) -> RoutePattern.Path {
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

    mutating func methodSet(of route: RouteConfiguration) -> MethodSet {
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
                    "has method '\(name)': requests with it are rejected (did you mean '\(name.uppercased())'?)")
                continue
            }
            guard let bit = methods.bit(of: name) else {
                error(
                    .configBadValue, route,
                    "exceeds the limit of \(MethodNames.maximumCount) different methods on all routes")
                continue
            }
            set.formUnion(bit)
            if name == "GET", let head = methods.bit(of: "HEAD") { set.formUnion(head) }
        }
        return set
    }

    mutating func conditions(of route: RouteConfiguration) -> [RequestCondition] {
        route.conditions.compactMap { condition in
            do throws(PatternError) {
                return try RequestCondition(condition)
            } catch {
                guard case .matches(let pattern) = condition.test else { return nil }
                diagnostics.error(.configBadPattern, at: pattern.location, "matches: \(error)")
                return nil
            }
        }
    }

    /// Records an error for every condition on a header that only the gateway sets: any client could send it.
    ///
    /// Call it once all routes are known.
    mutating func checkConditions(of routes: [RouteConfiguration]) {
        let reserved = FieldNameSet(reservedNames.sorted(), reservesAuthPrefix: true)
        for condition in routes.lazy.flatMap(\.conditions)
        where condition.source == .header && reserved.contains(condition.name.value) {
            diagnostics.error(
                .configBadHeader, at: condition.name.location,
                "header '\(condition.name.value)' is set by the gateway for upstreams: in a request it is the client's own"
            )
        }
    }
}
