import MartletConfig
import Testing

@testable import MartletDecisions

@Suite struct CompiledRouteTests {
    @Test func `a route of a handler in this process has no upstream, and tunnels nothing`() {
        var bench = RouteBench()
        bench.forwardsCredentials = true
        bench.removed = ["x-debug"]
        bench.stripPrefix = "/v1"
        bench.host = .endpoint
        let mount = bench.compile().mount
        #expect(mount.mount == 0 && mount.upstream == -1 && mount.bodyLimit == 77 && mount.streamLimit == 77)
        #expect(mount.rewriting == .dropsAuthorization && !mount.stripsPrefix && mount.keepsHost)
        #expect(!mount.tunnels.areAllowed)
    }

    @Test func `a route refers to its upstream by index`() {
        let route = RouteBench().compile().route
        #expect(route.mount == -1 && route.upstream == 1)
    }

    @Test(
        arguments: [
            (.inherited, 5, 5, Int.max), (.inherited, nil, Int.max, Int.max), (.unlimited, 5, Int.max, Int.max),
            (.bytes(7), 5, 7, 7), (.bytes(7), nil, 7, 7), (.bytes(0), 5, 0, 0), (.inherited, 0, 0, Int.max),
        ] as [(RouteConfiguration.BodyLimit, Int?, Int, Int)])
    func `an inherited limit does not apply to streams of gRPC`(
        _ limit: RouteConfiguration.BodyLimit, _ inherited: Int?, _ ofBody: Int, _ ofStream: Int
    ) {
        var bench = RouteBench()
        bench.bodyLimit = limit
        bench.limits.bodyBytes = inherited
        let route = bench.compile().route
        #expect(route.bodyLimit == ofBody && route.streamLimit == ofStream)
    }

    @Test(
        arguments: [
            (false, [], .dropsAuthorization), (false, ["x-debug"], [.dropsAuthorization, .hasRemovals]),
            (true, [], .keepsOwnTokens), (true, ["x-debug"], [.keepsOwnTokens, .hasRemovals]),
        ] as [(Bool, [String], RequestFieldRules)])
    func `the rules for fields are those of the route alone`(
        _ forwardsCredentials: Bool, _ removed: [String], _ expected: RequestFieldRules
    ) {
        var bench = RouteBench()
        bench.forwardsCredentials = forwardsCredentials
        bench.removed = removed
        #expect(bench.compile().route.rewriting == expected)
    }

    @Test(
        arguments: [
            (.keep, true), (.endpoint, false), (.fixed("inner"), false), (.fixed(""), false),
        ] as [(UpstreamConfiguration.HostPolicy, Bool)])
    func `Host is kept where the upstream gets the client's`(
        _ host: UpstreamConfiguration.HostPolicy, _ expected: Bool
    ) {
        var bench = RouteBench()
        bench.host = host
        #expect(bench.compile().route.keepsHost == expected)
    }

    @Test(arguments: [(nil, false), ("/v1", true), ("/v1/", true), ("/a/b", true)] as [(String?, Bool)])
    func `a prefix is stripped where there is one`(_ prefix: String?, _ expected: Bool) {
        var bench = RouteBench()
        bench.stripPrefix = prefix
        #expect(bench.compile().route.stripsPrefix == expected)
    }

    @Test(
        arguments: [
            (["websocket"], true), (["chat/2"], true), (["websocket", "irc"], true), ([], false),
        ] as [([String], Bool)])
    func `tunnels are allowed where a protocol is`(_ protocols: [String], _ expected: Bool) {
        var bench = RouteBench()
        bench.upgrade.protocols = protocols
        #expect(bench.compile().route.tunnels.areAllowed == expected)
    }

    @Test(
        arguments: [
            (.seconds(300), nil, 300_000_000_000, 3_155_760_000_000_000_000),
            (.nanoseconds(1), .nanoseconds(2), 1, 2), (.zero, .zero, 0, 0), (.seconds(-1), .seconds(-1), 0, 0),
            (.seconds(Int64.max), .seconds(Int64.max), 3_155_760_000_000_000_000, 3_155_760_000_000_000_000),
        ] as [(Duration, Duration?, Int64, Int64)])
    func `the limits of tunnels can be added to the clock`(
        _ idle: Duration, _ age: Duration?, _ idleTimeout: Int64, _ maximumAge: Int64
    ) {
        var bench = RouteBench()
        bench.upgrade.idle = idle
        bench.upgrade.maximumConnectionAge = age
        let tunnels = bench.compile().route.tunnels
        #expect(tunnels.idleTimeout == idleTimeout && tunnels.maximumAge == maximumAge)
    }

    @Test func `a route has extras only where it has rules for them`() {
        var bench = RouteBench()
        #expect(bench.compile().route.extras.isEmpty && bench.compile().mount.extras.isEmpty)
        bench.change = { $0.timeout = .seconds(2) }
        #expect(bench.compile().route.extras == .timeout && bench.compile().route.timeout == 2_000_000_000)
        bench.change = { $0.responseHeaders.remove = ["server"] }
        #expect(bench.compile().route.extras == .responseFields && bench.compile().route.timeout == .max)
        bench.change = { $0.conditions = [.init(.query, RouteBench.located("v"), .present(true))] }
        #expect(bench.compile().route.extras == .conditions)
        bench.change = { $0.rewrite.host = "b" }
        #expect(bench.compile().route.extras.isEmpty && !bench.compile().route.keepsHost)
        bench.change = { $0.rewrite.addPrefix = RouteBench.located("/b") }
        #expect(bench.compile().route.rewritesTarget && !bench.compile().route.keepsHost)
    }
}
