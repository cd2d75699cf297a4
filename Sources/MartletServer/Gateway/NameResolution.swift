internal import MartletConfig
internal import MartletCore
internal import MartletIO
internal import MartletProxy

/// Looks up the host names of upstream endpoints, off the loops.
enum NameResolution {
    /// The addresses of every name; one that cannot be resolved is left out, and loops keep what they had.
    static func resolve(_ snapshot: Snapshot, _ services: Services) async -> [ResolvedName] {
        var resolved: [ResolvedName] = []
        for endpoint in Set(snapshot.upstreams.flatMap(\.endpoints)) {
            guard let (host, port) = endpoint.hostAndPort, SocketEndpoint(literal: host, port: port) == nil else {
                continue
            }
            do {
                let addresses = try await services.resolver.resolve(host: host, port: port)
                resolved.append(ResolvedName(endpoint: endpoint, addresses: addresses))
            } catch {
                services.logger.warning(
                    "an upstream's name could not be resolved", ("host", host), ("reason", error.code.rawValue))
            }
        }
        return resolved
    }
}
