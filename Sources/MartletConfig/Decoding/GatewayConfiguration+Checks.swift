extension GatewayConfiguration {
    /// Names all providers on routes that name none.
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

    /// No address may be listened on twice.
    func checkListeners(_ diagnostics: inout Diagnostics) {
        var taken: [SocketAddress: String] = [:]
        let admin = self.admin.map { [($0.address, "the admin listener")] } ?? []
        for (address, owner) in admin + server.listeners.map({ ($0.address, "another listener") }) {
            if case .ip(_, port: 0) = address.value { continue }
            if let first = taken.updateValue(owner, forKey: address.value) {
                diagnostics.error(
                    .configDuplicateName, at: address.location,
                    "\(first) has the address \(address.value.configurationText) already")
            }
        }
    }

    /// A PROXY protocol header is believed from trusted proxies only: without any, nobody gets in.
    ///
    /// Who may open a Unix socket is a matter of its permissions, and what a descriptor is shows only at start.
    func checkProxyProtocol(_ reader: inout ConfigurationReader) {
        guard reader.node("server")?["trusted_proxies"]?.elements?.isEmpty ?? true else { return }
        for listener in server.listeners where listener.takesProxyProtocol {
            guard case .ip = listener.address.value else { continue }
            reader.error(
                .configMissingKey, at: listener.address.location,
                "proxy_protocol: nobody could connect to \(listener.address.value.configurationText): "
                    + "the header is believed only from server.trusted_proxies, which is empty")
        }
    }

    /// Providers that count attempts by the client's address.
    private static let countingKinds: Set<String> = ["password", "wechat"]

    /// Warns of Unix sockets all of whose clients are one to throttles, because nobody says who they are.
    func warnOfNamelessClients(_ diagnostics: inout Diagnostics) {
        guard let provider = providers.first(where: { Self.countingKinds.contains($0.kind.value) }) else { return }
        for listener in server.listeners where !listener.isTrusted && !listener.takesProxyProtocol {
            guard case .unix = listener.address.value else { continue }
            diagnostics.warning(
                .configInsecure, at: listener.address.location,
                "all clients of this socket are one to the throttles of provider \(quoted(provider.name.value)): "
                    + "where a proxy connects to it, say trusted: true or proxy_protocol: true")
        }
    }

    /// Warns of routes all of whose requests the sign-in endpoints or an earlier route take.
    func warnOfUnreachableRoutes(_ diagnostics: inout Diagnostics) {
        for route in routes where sessions.takesAll(of: route) {
            diagnostics.warning(
                .configUnreachableRoute, at: route.name.location,
                "route \(quoted(route.name.value)) is never reached: what is below sessions.path, "
                    + "\(quoted(sessions.path)), is answered here")
        }
        // Every route is compared with every earlier one; past this many, the warning is not worth the time.
        guard routes.count <= 1_000 else { return }
        for (index, route) in routes.enumerated() {
            guard !sessions.takesAll(of: route),
                let earlier = routes[..<index].first(where: { $0.takesAll(of: route) })
            else { continue }
            diagnostics.warning(
                .configUnreachableRoute, at: route.name.location,
                "route \(quoted(route.name.value)) is never reached: route \(quoted(earlier.name.value)) "
                    + "takes all of its requests first")
        }
    }
}

extension SessionsConfiguration {
    /// Whether the sign-in endpoints stand before every request that a route matches.
    fileprivate func takesAll(of route: RouteConfiguration) -> Bool {
        guard case .glob(let glob) = route.path, glob.value == path || glob.value.hasPrefix("\(path)/") else {
            return false
        }
        return hosts.isEmpty || (!route.hosts.isEmpty && route.hosts.allSatisfy { hosts.contains($0.value) })
    }
}

extension RouteConfiguration {
    /// Whether every request that `other` matches is matched here too, as far as the patterns' texts show.
    fileprivate func takesAll(of other: RouteConfiguration) -> Bool {
        guard path.takesAll(of: other.path) else { return false }
        guard methods.isEmpty || (!other.methods.isEmpty && Set(other.methods).isSubset(of: methods)) else {
            return false
        }
        if hosts.isEmpty { return true }
        let names = Set(hosts.map(\.value))
        return !other.hosts.isEmpty && other.hosts.allSatisfy { names.contains($0.value) }
    }
}

extension RouteConfiguration.PathPattern {
    fileprivate func takesAll(of other: RouteConfiguration.PathPattern) -> Bool {
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
