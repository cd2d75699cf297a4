internal import MartletConfig
internal import MartletDecisions
internal import MartletRouter

/// The endpoint for checks.
extension Blueprint {
    private static let checkName = "martlet.check"
    private static let callName = "martlet.check_call"
    /// The path of the endpoint for checks by gRPC, which Envoy sets.
    private static let callPath = "/envoy.service.auth.v3.Authorization/Check"
    /// The message of a call, and the five bytes before it.
    private static let callBytes = 64 * 1024 + 5

    /// The mounts of the endpoints, on every host: a proxy sends that of the request, or one of its own. None where no
    /// check is possible, so that their paths are some like any other.
    static func checkMounts(_ configuration: GatewayConfiguration) -> [RouteMount] {
        guard configuration.servesChecks else { return [] }
        let location = configuration.routes.first?.name.location ?? SourceLocation(file: "", line: 1, column: 1)
        let check = RouteMount(
            name: checkName, hosts: [], path: "\(configuration.sessions.path)/check/**", location: location,
            bodyLimit: .max)
        guard configuration.server.trustsProxies || configuration.server.forwardAuth.isPresent else { return [check] }
        return [
            check, RouteMount(name: callName, hosts: [], path: callPath, location: location, bodyLimit: callBytes),
        ]
    }

    /// How the endpoints respond; `nil` without one.
    var checks: CheckRules? {
        func mount(_ name: String) -> Int? { routes.routes.first { $0.mount >= 0 && $0.name == name }?.mount }
        guard let check = mount(Self.checkName) else { return nil }
        return CheckRules(
            routes, mount: check, callMount: mount(Self.callName), endpoint: "\(configuration.sessions.path)/check",
            configuration.server.forwardAuth, assertionHeader: assertion?.headerName)
    }
}
