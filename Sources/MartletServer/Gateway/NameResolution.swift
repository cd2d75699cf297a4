internal import MartletConfig
internal import MartletCore
internal import MartletIO
internal import MartletProxy

/// Resolves the host names of upstream endpoints, off the loops.
enum NameResolution {
    /// The addresses of every name; a name that cannot be resolved is skipped, and the loops keep its old addresses.
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
                    "upstream host name could not be resolved", ("host", host), ("reason", error.code.rawValue))
            }
        }
        return resolved
    }
}
