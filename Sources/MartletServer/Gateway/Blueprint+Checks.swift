internal import MartletConfig
internal import MartletProxy
internal import MartletRouter

/// The endpoint for checks.
extension Blueprint {
    private static let checkName = "martlet.check"

    /// The mount of the endpoint, on every host: a proxy sends that of the request, or one of its own. None where no
    /// check is possible, so that its path is one like any other.
    static func checkMounts(_ configuration: GatewayConfiguration) -> [RouteMount] {
        guard configuration.servesChecks else { return [] }
        let location = configuration.routes.first?.name.location ?? SourceLocation(file: "", line: 1, column: 1)
        return [
            RouteMount(
                name: checkName, hosts: [], path: "\(configuration.sessions.path)/check/**", location: location,
                bodyLimit: .max)
        ]
    }

    /// How the endpoint responds; `nil` without one.
    var checks: CheckRules? {
        guard let route = routes.routes.first(where: { $0.mount >= 0 && $0.name == Self.checkName }) else { return nil }
        return CheckRules(
            routes, mount: route.mount, endpoint: "\(configuration.sessions.path)/check",
            configuration.server.forwardAuth, assertionHeader: assertion?.headerName)
    }
}
