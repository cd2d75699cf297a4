package import MartletConfig

/// What the running configuration says, for operators: no secrets, and nothing of the files that it names.
package struct ConfigurationFacts: Sendable {
    /// A route: what it matches, who may use it, and where its requests go.
    struct Route: Sendable {
        let name: String
        let hosts: [String]
        let path: String
        let methods: [String]
        /// The names of the header fields and of the query parameters that its conditions are about, with `no ` before
        /// those that must not be there. Values may be secrets, and are left out.
        let headers: [String]
        let query: [String]
        /// `none`, the names of the accepted providers, or `optional` before them.
        let auth: String
        /// How many conditions a caller must meet.
        let conditions: Int
        /// Its upstream, or what it responds itself.
        let target: String
    }

    /// A listener with its actual address.
    struct Listener: Sendable {
        let address: String
        /// `public` or `admin`.
        let role: String
        let isSecure: Bool
    }

    /// SHA-256 of the configuration's text, in hexadecimal digits.
    var digest = ""
    var routes: [Route] = []
    var listeners: [Listener] = []
}

extension ConfigurationFacts {
    /// What a configuration says.
    /// - Parameters:
    ///   - addresses: those of the listeners.
    ///   - adminAddress: that of the admin listener.
    package init(
        _ configuration: GatewayConfiguration, digest: String, addresses: [String], adminAddress: String?
    ) {
        self.digest = digest
        routes = configuration.routes.map { Route($0) }
        listeners = zip(addresses, configuration.server.listeners).map {
            Listener(address: $0, role: "public", isSecure: $1.tls != nil)
        }
        guard let adminAddress else { return }
        listeners.append(Listener(address: adminAddress, role: "admin", isSecure: configuration.admin?.tls != nil))
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
