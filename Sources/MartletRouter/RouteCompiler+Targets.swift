import MartletConfig

/// Where a route's requests go: its upstream and how their targets change, or its own response.
extension RouteCompiler {
    /// The upstream of a route, or the response of the gateway itself.
    mutating func target(
        of route: RouteConfiguration
    ) -> (upstream: Int, split: RouteSplit?, response: RouteResponse?)? {
        switch route.response {
        case .redirect(let redirect)?: return template(of: redirect, route).map { (-1, nil, $0) }
        case .fixed(let fixed)?:
            return (-1, nil, .fixed(status: fixed.status, contentType: fixed.contentType, body: fixed.body))
        case nil: break
        }
        if let upstream = route.upstream { return index(of: upstream, route).map { ($0, nil, nil) } }
        // It serves checks alone.
        if route.split.isEmpty { return (-1, nil, nil) }
        let shares = route.split.compactMap { share in index(of: share.upstream, route).map { (share, $0) } }
        guard let first = shares.first, shares.count == route.split.count else { return nil }
        return (first.1, RouteSplit(shares), nil)
    }

    /// The upstream that gets copies of a route's requests, whose mark is reserved.
    mutating func mirror(of route: RouteConfiguration) -> RouteMirror? {
        guard let mirror = route.mirror, let index = index(of: mirror.upstream, route) else { return nil }
        reserve(markOf: RouteMirror.fieldName)
        return RouteMirror(upstream: index, percentage: mirror.percentage)
    }

    private mutating func index(of upstream: Located<String>, _ route: RouteConfiguration) -> Int? {
        if let index = upstreams[upstream.value] { return index }
        diagnostics.error(
            .configUnknownUpstream, at: upstream.location,
            "route '\(route.name.value)' names upstream '\(upstream.value)', which is not defined")
        return nil
    }

    private mutating func template(
        of redirect: RedirectConfiguration, _ route: RouteConfiguration
    ) -> RouteResponse? {
        let (target, location) = (redirect.target.value, redirect.target.location)
        do throws(PatternError) {
            let template = try RedirectTemplate(target)
            // Otherwise anyone could name any host, and links to this one would lead there.
            if template.namesHost, route.hosts.isEmpty {
                throw PatternError("has $host as its host, so the route needs 'hosts'")
            }
            return .redirect(template, status: redirect.status)
        } catch {
            diagnostics.error(.configBadPattern, at: location, "to: '\(target)' \(error)")
            return nil
        }
    }

    mutating func prefix(_ prefix: Located<String>?, _ key: String) -> [UInt8] {
        guard let text = prefix else { return [] }
        do {
            var prefix = try PathText.normalized(text.value, .literal, paths)
            if prefix.last == .slash { prefix.removeLast() }
            return prefix
        } catch {
            diagnostics.error(.configBadPattern, at: text.location, "\(key) '\(text.value)' \(error)")
            return []
        }
    }

    mutating func rewrite(of route: RouteConfiguration, stripping strip: [UInt8]) -> TargetRewrite? {
        let added = prefix(route.rewrite.addPrefix, "add_prefix")
        var rule: TargetRewrite.Rule?
        if let expression = route.rewrite.expression, let replacement = route.rewrite.replacement {
            do throws(PatternError) {
                let pattern = try RegularExpression(expression.value, of: .path)
                do throws(PatternError) {
                    rule = TargetRewrite.Rule(
                        pattern, try ReplacementTemplate(replacement.value, groups: pattern.groupCount))
                } catch {
                    diagnostics.error(
                        .configBadPattern, at: replacement.location, "to: '\(replacement.value)' \(error)")
                }
            } catch {
                diagnostics.error(.configBadPattern, at: expression.location, "regex \(error)")
            }
        }
        guard rule != nil || !added.isEmpty else { return nil }
        return TargetRewrite(stripping: strip, rule: rule, adding: added, paths: paths)
    }
}
