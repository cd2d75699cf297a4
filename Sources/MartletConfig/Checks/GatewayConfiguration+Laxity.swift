private import MartletJSON

extension GatewayConfiguration {
    /// Warns of routes that any client can pick with a header or a parameter, and that demand less of it than the route
    /// that would match otherwise.
    func warnOfLaxRoutes(_ diagnostics: inout Diagnostics) {
        // Quadratic, like the comparison of all routes.
        guard routes.count(where: { !$0.conditions.isEmpty }) <= 1_000 else { return }
        for (index, route) in routes.enumerated() where !route.conditions.isEmpty {
            guard let (next, reason) = laxity(of: route, at: index) else { continue }
            let names = Set(route.conditions.map { $0.source == .header ? "headers" : "query" }).sorted()
            diagnostics.warning(
                .configInsecure, at: route.name.location,
                "route \(quoted(route.name.value)) is picked by \(names.joined(separator: " and ")), which any client"
                    + " chooses, and \(reason) of route \(quoted(next.name.value)), which would match without them")
        }
    }

    /// The first route that would match instead of one with conditions and demands more, and what that is.
    private func laxity(of route: RouteConfiguration, at index: Int) -> (RouteConfiguration, String)? {
        for next in routes[(index + 1)...] where next.overlaps(route) {
            if let reason = route.laxity(comparedTo: next) { return (next, reason) }
            // No request of the route reaches one behind it.
            if next.covers(route) { return nil }
        }
        return nil
    }
}

extension RouteConfiguration {
    /// Whether a request can match both, judging by the text of the patterns alone, and conditions aside.
    fileprivate func overlaps(_ other: RouteConfiguration) -> Bool {
        var (mine, theirs) = (self, other)
        (mine.conditions, theirs.conditions) = ([], [])
        return mine.covers(theirs) || theirs.covers(mine)
    }

    /// What this route does not demand, though `other` does; `nil` if it demands at least as much.
    fileprivate func laxity(comparedTo other: RouteConfiguration) -> String? {
        if authentication.rank < other.authentication.rank { return "lacks the authentication" }
        guard other.authentication.rank > 0 else { return nil }
        let (mine, theirs) = (authentication.providers, other.authentication.providers)
        if !mine.isSubset(of: theirs) { return "accepts other providers than those" }
        if !credentials.isSubset(of: other.credentials) { return "accepts other credentials than those" }
        if let age = other.maximumAge, maximumAge ?? .seconds(Int64.max) > age { return "lacks auth.max_age" }
        let known = Set(authorize.map(\.key))
        if other.authorize.contains(where: { !known.contains($0.key) }) { return "lacks a condition" }
        let (own, required) = (authenticationRequirement, other.authenticationRequirement)
        if let level = required.level?.value, own.level?.value != level { return "lacks a condition" }
        if let age = required.maximumAge?.value, own.maximumAge?.value ?? .seconds(Int64.max) > age {
            return "lacks a condition"
        }
        return nil
    }
}

extension RouteConfiguration.Authentication {
    /// How much is demanded of callers.
    fileprivate var rank: Int {
        switch self {
        case .none: 0
        case .optional: 1
        case .required: 2
        }
    }

    fileprivate var providers: Set<String> {
        switch self {
        case .none: []
        case .optional(let names), .required(let names): Set(names)
        }
    }
}

extension ConditionConfiguration {
    /// The same for equal conditions, wherever they are written.
    fileprivate var key: String {
        switch self {
        case .claim(let path, .matches(let pattern), let inverted, let orAbsent):
            "\(path.name.debugDescription) \(path.members) ~ \(pattern.value) \(inverted) \(orAbsent)"
        case .claim(let path, let test, let inverted, let orAbsent):
            "\(path.name.debugDescription) \(path.members) \(test) \(inverted) \(orAbsent)"
        case .any(let conditions): "any [\(conditions.map(\.key).joined(separator: ", "))]"
        }
    }
}
