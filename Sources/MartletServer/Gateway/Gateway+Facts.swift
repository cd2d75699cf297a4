package import MartletAdmin
internal import MartletConfig
internal import MartletCore
internal import MartletDecisions

extension Gateway {
    /// What the running configuration says, for the admin pages.
    package var configurationFacts: ConfigurationFacts {
        let blueprint = graph.blueprint
        let configuration = blueprint.configuration
        let admin = configuration.admin
        let listeners = zip(addresses, configuration.server.listeners).map { address, listener in
            ConfigurationFacts.Listener(address: address, role: "public", isSecure: listener.tls != nil)
        }
        let own = adminAddresses.first.map {
            [ConfigurationFacts.Listener(address: $0, role: "admin", isSecure: admin?.tls != nil)]
        }
        return ConfigurationFacts(
            digest: blueprint.digest, routes: configuration.routes.map { ConfigurationFacts.Route($0) },
            listeners: listeners + (own ?? []))
    }
}

extension ConfigurationFacts.Route {
    fileprivate init(_ route: RouteConfiguration) {
        let path =
            switch route.path {
            case .any: "/**"
            case .glob(let pattern): pattern.value
            case .regex(let pattern): "~ \(pattern.value)"
            }
        let auth =
            switch route.authentication {
            case .none: "none"
            case .required(let providers): providers.joined(separator: ", ")
            case .optional(let providers): "optional " + providers.joined(separator: ", ")
            }
        self.init(
            name: route.name.value, hosts: route.hosts.map(\.value), path: path, methods: route.methods,
            headers: Self.names(.header, route), query: Self.names(.query, route), auth: auth,
            conditions: route.authorize.count, target: Self.target(route))
    }

    private static func names(_ source: RequestConditionConfiguration.Source, _ route: RouteConfiguration) -> [String] {
        route.conditions.filter { $0.source == source }.map { condition in
            if case .present(false) = condition.test { return "no \(condition.name.value)" }
            return condition.name.value
        }
    }

    private static func target(_ route: RouteConfiguration) -> String {
        if let upstream = route.upstream { return upstream.value }
        if !route.split.isEmpty {
            return route.split.map { "\($0.upstream.value) \($0.weight)" }.joined(separator: ", ")
        }
        switch route.response {
        case .redirect(let redirect): return "redirect (\(redirect.status))"
        case .fixed(let fixed): return "response (\(fixed.status))"
        case nil: return "checks only"
        }
    }
}
