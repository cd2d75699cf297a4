extension GatewayConfiguration {
    /// Adds all providers to routes that list none.
    mutating func fillInProviders() {
        let all = providers.map(\.name.value)
        for index in routes.indices {
            switch routes[index].authentication {
            case .required(let names) where names.isEmpty: routes[index].authentication = .required(providers: all)
            case .optional(let names) where names.isEmpty: routes[index].authentication = .optional(providers: all)
            default: break
            }
        }
    }

    /// Records an error for every address that two listeners have.
    func checkListeners(_ diagnostics: inout Diagnostics) {
        var owners: [SocketAddress: String] = [:]
        let admin = self.admin.map { [($0.address, "the admin listener")] } ?? []
        for (address, owner) in admin + server.listeners.map({ ($0.address, "another listener") }) {
            if case .ip(_, port: 0) = address.value { continue }
            if let first = owners.updateValue(owner, forKey: address.value) {
                diagnostics.error(
                    .configDuplicateName, at: address.location,
                    "address \(address.value.configurationText) is already used by \(first)")
            }
        }
    }

    /// Records an error for PROXY protocol listeners without trusted proxies: no client could connect.
    ///
    /// Unix sockets are protected by file permissions, and the type of an inherited descriptor is unknown until
    /// startup.
    func checkProxyProtocol(_ reader: inout ConfigurationReader) {
        guard reader.node("server")?["trusted_proxies"]?.elements?.isEmpty ?? true else { return }
        for listener in server.listeners where listener.acceptsProxyProtocol {
            guard case .ip = listener.address.value else { continue }
            reader.error(
                .configMissingKey, at: listener.address.location,
                "proxy_protocol: no client could connect to \(listener.address.value.configurationText): "
                    + "the header is accepted only from server.trusted_proxies, which is empty")
        }
    }

    /// Records an error for every mirror whose upstream cannot get copies.
    func checkMirrors(_ diagnostics: inout Diagnostics) {
        for route in routes {
            guard let name = route.mirror?.upstream,
                let upstream = upstreams.first(where: { $0.name.value == name.value })
            else { continue }
            var reason: String?
            if upstream.transport.sendsProxyProtocol {
                reason = "whose connections begin with the address of one client: copies share connections"
            } else if upstream.endpoints.allSatisfy({ $0.value == .echo }) {
                reason = "which gets no copies: builtin:echo is in this process"
            }
            guard let reason else { continue }
            diagnostics.error(
                .configBadValue, at: name.location,
                "mirror of route \(quoted(route.name.value)) names upstream \(quoted(name.value)), \(reason)")
        }
    }

    /// Provider kinds that throttle by client address.
    private static let countingKinds: Set<String> = ["password", "wechat"]

    /// Warns of Unix sockets whose clients share one throttle, because their addresses are unknown.
    func warnOfSharedThrottles(_ diagnostics: inout Diagnostics) {
        guard let provider = providers.first(where: { Self.countingKinds.contains($0.kind.value) }) else { return }
        for listener in server.listeners where !listener.isTrusted && !listener.acceptsProxyProtocol {
            guard case .unix = listener.address.value else { continue }
            diagnostics.warning(
                .configInsecure, at: listener.address.location,
                "all clients of this socket share the throttles of provider \(quoted(provider.name.value)): "
                    + "if a proxy connects to it, set trusted: true or proxy_protocol: true")
        }
    }

    /// Warns of routes all of whose requests match the sign-in endpoints or an earlier route.
    func warnOfUnreachableRoutes(_ diagnostics: inout Diagnostics) {
        for route in routes where sessions.covers(route) {
            diagnostics.warning(
                .configUnreachableRoute, at: route.name.location,
                "route \(quoted(route.name.value)) is never reached: the sign-in endpoints below sessions.path, "
                    + "\(quoted(sessions.path)), match first")
        }
        // The comparison is quadratic; for larger files the warning is not worth the time.
        guard routes.count <= 1_000 else { return }
        for (index, route) in routes.enumerated() {
            guard !sessions.covers(route),
                let earlier = routes[..<index].first(where: { $0.covers(route) })
            else { continue }
            diagnostics.warning(
                .configUnreachableRoute, at: route.name.location,
                "route \(quoted(route.name.value)) is never reached: route \(quoted(earlier.name.value)) "
                    + "matches all of its requests first")
        }
    }

    /// Warns of attempts that may take longer than all attempts together.
    func warnOfLongAttempts(_ diagnostics: inout Diagnostics) {
        var attempts: [String: Duration] = [:]
        for upstream in upstreams {
            guard let retries = upstream.policies.retries, retries.attempts > 0 else { continue }
            attempts[upstream.name.value] = retries.perTryTimeout
        }
        for route in routes {
            guard let whole = route.timeout, let name = route.upstream, let attempt = attempts[name.value],
                attempt >= whole
            else { continue }
            diagnostics.warning(
                .configBadValue, at: route.name.location,
                "route \(quoted(route.name.value)): per_try_timeout (\(attempt.configurationText)) is not shorter than "
                    + "its timeout (\(whole.configurationText)), so that no attempt is followed by another")
        }
    }
}

extension SessionsConfiguration {
    func serves(_ host: String) -> Bool {
        hosts.isEmpty
            || hosts.contains { pattern in
                pattern.hasPrefix("*.") ? host.hasSuffix(pattern.dropFirst()) : pattern == host
            }
    }

    /// Whether the sign-in endpoints match every request that a route matches.
    fileprivate func covers(_ route: RouteConfiguration) -> Bool {
        guard case .glob(let glob) = route.path, glob.value == path || glob.value.hasPrefix("\(path)/") else {
            return false
        }
        return hosts.isEmpty || (!route.hosts.isEmpty && route.hosts.allSatisfy { hosts.contains($0.value) })
    }
}

extension RouteConfiguration {
    /// Whether this route matches every request that `other` matches, judging by the text of the patterns alone.
    ///
    /// One with conditions never does.
    func covers(_ other: RouteConfiguration) -> Bool {
        guard conditions.isEmpty, path.covers(other.path) else { return false }
        guard methods.isEmpty || (!other.methods.isEmpty && Set(other.methods).isSubset(of: methods)) else {
            return false
        }
        if hosts.isEmpty { return true }
        let names = Set(hosts.map(\.value))
        return !other.hosts.isEmpty && other.hosts.allSatisfy { names.contains($0.value) }
    }
}

extension RouteConfiguration.PathPattern {
    fileprivate func covers(_ other: RouteConfiguration.PathPattern) -> Bool {
        switch (self, other) {
        case (.any, _): return true
        case (.glob(let mine), .glob(let theirs)):
            if mine.value == theirs.value { return true }
            guard mine.value.hasSuffix("/**") else { return false }
            let prefix = mine.value.dropLast(3)
            return theirs.value == prefix || theirs.value.hasPrefix("\(prefix)/")
        case (.glob(let mine), _): return mine.value == "/**"
        case (.regex(let mine), .regex(let theirs)): return mine.value == theirs.value
        case (.regex, _): return false
        }
    }
}
