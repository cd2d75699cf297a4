internal import MartletAdmin
internal import MartletConfig
internal import MartletCore
internal import MartletDecisions
internal import MartletProxy
internal import MartletUpstreams

/// What the loops know of endpoints besides the configuration: the addresses of their names, whether they are healthy,
/// and which are out of use; and the copies of requests, which are sent to endpoints as well.
final class EndpointStates: GatewayPart {
    private let names: NameResolution
    private let healthChecks: HealthChecks
    let mirrors: Mirrors
    private let drained = DrainedEndpoints()
    private let lookups = BackgroundTask()

    init(_ services: Services) {
        let (clock, logger) = (services.clock, services.logger)
        names = NameResolution(NameResolver(on: services.loop), clock: clock, logger: logger)
        healthChecks = HealthChecks(clock: clock, logger: logger)
        mirrors = Mirrors(logger: logger)
    }

    /// Has loops be notified of what changes.
    func attach(to loops: LoopGroup) {
        healthChecks.attach { [mirrors] endpoints in
            loops.post(.health(endpoints))
            mirrors.healthChanged(endpoints)
        }
        names.attach(
            NameResolution.Observer(
                changed: { loops.post(.resolved($0)) },
                all: { [healthChecks, mirrors] names in
                    healthChecks.follow(names)
                    mirrors.follow(names)
                }))
    }

    /// Gives loops the addresses of all names, before any that are newer.
    func withNames(_ body: ([ResolvedName]) -> Void) { names.withAll(body) }

    /// Takes an endpoint of a configuration out of use, or back.
    func change(
        _ endpoint: String, of upstream: String, isDrained: Bool, in upstreams: [UpstreamConfiguration],
        _ loops: LoopGroup?
    ) -> EndpointDraining {
        drained.change(endpoint, of: upstream, isDrained: isDrained, in: upstreams) { set(drained: $0, loops) }
    }

    private func set(drained endpoints: Set<EndpointIdentity>, _ loops: LoopGroup?) {
        loops?.post(.drained(endpoints))
        mirrors.setDrained(endpoints)
    }

    // MARK: The part of the gateway

    func prepare(_ change: GatewayChange, in gateway: Gateway) async throws(StartError) {
        await names.prepare(change.configuration.upstreams)
    }

    func lead(_ change: GatewayChange, in gateway: Gateway) {
        names.follow(change.configuration.upstreams) { mirrors.follow(change.configuration, $0) }
    }

    func follow(_ change: GatewayChange, in gateway: Gateway) {
        let upstreams = change.configuration.upstreams
        names.withAll { healthChecks.follow(upstreams, $0) }
        let loops = gateway.clientLoops
        drained.follow(upstreams) { set(drained: $0, loops) }
        lookups.start { [names] in await names.run() }
    }

    func abandon(_ graph: Graph?, keeping serving: Graph, in gateway: Gateway) async {
        if graph != nil { names.follow(serving.blueprint.configuration.upstreams) }
    }

    func report(into report: inout AdminReport, of graph: Graph, in gateway: Gateway) {
        report.healthChecks = healthChecks.counts.map { ($0, $1.successes, $1.failures, $1.delayed, $1.unhealthy) }
        report.mirrors = mirrors.counts.map { ($0, $1.sent, $1.failed, $1.dropped) }
    }

    func finish(in gateway: Gateway) async { lookups.cancel() }

    func stop(in gateway: Gateway) async {
        healthChecks.stop()
        mirrors.stop()
        names.stop()
    }
}
