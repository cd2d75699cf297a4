/// How the descriptors that the system lets this process open are divided by purpose.
///
/// What clients can cause, with or without a credential, never takes the last ones: accepting, operators, health
/// checks, stores and files have theirs.
package struct DescriptorPlan: Sendable, Equatable {
    /// The reserve is this part of the limit.
    private static let reservedPart = 8
    private static let smallestReserve = 256
    private static let largestReserve = 4096

    /// The limit of the system.
    package let limit: Int
    /// For what no client causes: listeners, loops, files, stores, calls of other services, probes, mirrors, operators.
    package let reserve: Int

    /// - Parameter limit: how many descriptors the process may have open.
    package init(limit: Int) {
        self.limit = limit
        let part = min(max(limit / Self.reservedPart, Self.smallestReserve), Self.largestReserve)
        reserve = min(part, limit / 2)
    }

    /// The most connections of clients, whatever is configured: each may need one to an upstream as well.
    package var clients: Int { max((limit - reserve) / 2, 1) }

    /// The most connections to the admin listener: the other half of the reserve stays for the rest of it.
    package var operators: Int { max(reserve / 2, 1) }

    /// What is left for connections to upstreams, and for the pipes of their bodies.
    /// - Parameter connections: the connections of clients that the configuration allows.
    package func upstreams(besides connections: Int) -> Int {
        max(limit - reserve - min(connections, clients), 1)
    }
}
