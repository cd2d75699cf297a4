import MartletRouter

@testable import MartletConfig
@testable import MartletDecisions

/// The settings of a route, and what the loop makes of them.
struct RouteBench {
    private static let somewhere = SourceLocation(file: "config.yaml", line: 1, column: 1)

    var bodyLimit = RouteConfiguration.BodyLimit.inherited
    /// What the route inherits.
    var limits = Limits()
    var forwardsCredentials = false
    var removed: [String] = []
    var stripPrefix: String?
    var upgrade = UpgradeConfiguration()
    /// The `Host` that its upstream gets, the second of two.
    var host = UpstreamConfiguration.HostPolicy.keep
    /// More settings.
    var change: (inout RouteConfiguration) -> Void = { _ in }

    /// A handler of this process, with a limit of 77 bytes, and the route.
    func compile() -> (mount: CompiledRoute, route: CompiledRoute) {
        var route = RouteConfiguration(
            name: Self.located("route"), hosts: [], path: .any, methods: [], authentication: .none,
            credentials: [.session, .direct], authorize: [], maximumAge: nil, setHeaders: nil, removeHeaders: removed,
            stripPrefix: stripPrefix.map { Self.located($0) }, bodyLimit: bodyLimit,
            forwardsCredentials: forwardsCredentials, upstream: Self.located("second"))
        route.upgrade = upgrade
        change(&route)
        let mount = RouteMount(name: "auth", hosts: [], path: "/auth/**", location: Self.somewhere, bodyLimit: 77)
        var diagnostics = Diagnostics()
        let table = RouteTable.compile(
            [route], mounts: [mount], upstreams: ["first", "second"], providers: [], paths: PathOptions(),
            limits: limits, into: &diagnostics)
        guard let table else { fatalError(diagnostics.description) }
        let upstreams = [upstream("first", host: .fixed("other")), upstream("second", host: host)]
        let compiled = table.routes.map { CompiledRoute($0, upstreams, removals: $0.removeNames) }
        return (compiled[0], compiled[1])
    }

    static func located(_ text: String) -> Located<String> { Located(text, at: Self.somewhere) }

    private func upstream(_ name: String, host: UpstreamConfiguration.HostPolicy) -> Upstream {
        Upstream(
            UpstreamConfiguration(
                name: Self.located(name),
                members: [EndpointConfiguration(Located(.http(host: "127.0.0.1", port: 9000), at: Self.somewhere))],
                timeouts: UpstreamTimeouts(), host: host, balance: .roundRobin))
    }
}
