internal import MartletConfig
internal import MartletServer

/// What `martlet run` prints on a terminal when it serves: addresses to open, and what the configuration has.
struct StartBanner {
    let listeners: [String]
    let dashboard: String?
    let file: String
    let routes: [String]
    let providers: [String]
    let upstreams: [String]
    let store: String

    private static let maximumNames = 6

    func text(_ terminal: Terminal) -> String {
        var rows = listeners.map { ("listening", $0) }
        if let dashboard { rows.append(("dashboard", dashboard)) }
        rows += [
            ("routes", Self.list(routes)), ("providers", Self.list(providers)), ("upstreams", Self.list(upstreams)),
            ("store", store),
        ]
        let title = "\(terminal.styled("martlet \(Gateway.version)", .bold))  \(TerminalText.escaped(file))"
        let lines = rows.map { name, value in
            "  \(terminal.styled(name, .dim))\(String(repeating: " ", count: 11 - name.count))\(TerminalText.escaped(value))"
        }
        return ([title] + lines).joined(separator: "\n") + "\n"
    }

    /// `3: a, b, c`.
    private static func list(_ names: [String]) -> String {
        guard !names.isEmpty else { return "none" }
        let shown = names.prefix(maximumNames).joined(separator: ", ")
        return "\(names.count): \(shown)" + (names.count > maximumNames ? ", …" : "")
    }
}

extension StartBanner {
    /// The dashboard's URL; of a listener on every address one that this machine reaches, and that the listener accepts.
    static func dashboard(_ address: String, isSecure: Bool) -> String {
        address.hasPrefix("unix:") ? address : "\(isSecure ? "https" : "http")://\(reachable(address))/"
    }

    /// The address under which this machine reaches a listener: loopback for one on all addresses.
    static func reachable(_ address: String) -> String {
        for (wildcard, loopback) in [("0.0.0.0:", "127.0.0.1:"), ("[::]:", "[::1]:")] where address.hasPrefix(wildcard)
        {
            return loopback + address.dropFirst(wildcard.count)
        }
        return address
    }

    init(_ gateway: Gateway) {
        let configuration = gateway.graph.blueprint.configuration
        let secure = configuration.server.listeners.map { $0.tls != nil }
        listeners = gateway.addresses.enumerated().map { index, address in
            let isSecure = secure.indices.contains(index) && secure[index]
            return address.hasPrefix("unix:") ? address : "\(isSecure ? "https" : "http")://\(address)"
        }
        let isAdminSecure = configuration.admin?.tls != nil
        dashboard = gateway.adminAddresses.first.map { Self.dashboard($0, isSecure: isAdminSecure) }
        file = configuration.source.file
        routes = configuration.routes.map(\.name.value)
        providers = configuration.providers.map(\.name.value)
        upstreams = configuration.upstreams.map(\.name.value)
        let url = configuration.store.url.value
        store = url == "memory:" ? "memory" : RedactedURL(url, isFromVariable: false)?.text ?? "Redis"
    }
}
