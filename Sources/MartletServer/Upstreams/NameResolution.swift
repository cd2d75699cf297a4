internal import MartletConfig
internal import MartletCore
internal import MartletIO
internal import MartletProxy
private import Synchronization

/// Resolves the host names of upstream endpoints, off the loops.
final class NameResolution: Sendable {
    private let services: Services
    /// By host, so that each is logged once.
    private let outages = Mutex<[String: OutageReporter]>([:])

    init(_ services: Services) { self.services = services }

    /// The addresses of every name; a name that cannot be resolved is skipped, and the loops keep its old addresses.
    func resolve(_ snapshot: Snapshot) async -> [ResolvedName] {
        var resolved: [ResolvedName] = []
        var hosts: Set<String> = []
        for (upstream, endpoint) in snapshot.upstreams.flatMap({ one in one.endpoints.map { (one.name, $0) } }) {
            guard let (host, port) = endpoint.hostAndPort, SocketEndpoint(literal: host, port: port) == nil else {
                continue
            }
            hosts.insert(host)
            do {
                let addresses = try await services.resolver.resolve(host: host, port: port)
                resolved.append(ResolvedName(upstream: upstream, endpoint: endpoint, addresses: addresses))
                outage(of: host).succeeded()
            } catch {
                outage(of: host).failed(error)
            }
        }
        outages.withLock { outages in outages = outages.filter { hosts.contains($0.key) } }
        return resolved
    }

    private func outage(of host: String) -> OutageReporter {
        outages.withLock { outages in
            if let known = outages[host] { return known }
            let new = OutageReporter(
                "upstream host name could not be resolved", end: "upstream host name resolved again",
                clock: services.clock, logger: services.logger.with(("host", host)))
            outages[host] = new
            return new
        }
    }
}
