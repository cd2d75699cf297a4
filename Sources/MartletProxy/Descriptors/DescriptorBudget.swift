internal import MartletCore
internal import MartletProvider
internal import MartletTraffic
private import Synchronization

/// The descriptors that requests take for their way to upstreams, over all loops: connections, and pipes.
///
/// They are bounded by what the system allows, less than what accepting, operators, health checks and stores need
/// (``DescriptorPlan``). A network of clients has a share of them: whoever holds them, by streams that never end or
/// windows that never open, gets 503 for more, and others their connection. Counted where a connection is opened and
/// closed, not for each request.
package final class DescriptorBudget: Sendable {
    package let plan: DescriptorPlan
    private let limit: Atomic<Int>
    private let used = Atomic<Int>(0)
    private let shares = NetworkShares(.upstreamConnections)

    /// - Parameter plan: what the system allows.
    package init(_ plan: DescriptorPlan) {
        self.plan = plan
        limit = Atomic(plan.upstreams(besides: 0))
    }

    /// Leaves as many to clients as a configuration allows connections.
    package func adopt(connections: Int) { limit.store(plan.upstreams(besides: connections), ordering: .relaxed) }

    /// How many are open.
    package var count: Int { used.load(ordering: .relaxed) }

    private var free: Int { limit.load(ordering: .relaxed) - count }

    /// Whether none is left.
    var isFull: Bool { free <= 0 }

    /// Whether so many are taken that connections that exist already count for whoever uses them.
    var isScarce: Bool { count > limit.load(ordering: .relaxed) / 2 }

    /// Takes descriptors.
    /// - Returns: whether there are as many.
    func take(_ number: Int = 1) -> Bool {
        guard used.add(number, ordering: .relaxed).newValue <= limit.load(ordering: .relaxed) else {
            release(number)
            return false
        }
        return true
    }

    /// Gives descriptors back that are closed.
    func release(_ number: Int = 1) { used.subtract(number, ordering: .relaxed) }

    /// Counts a connection for a network; it was taken before.
    /// - Returns: whether the network may have it.
    func enter(_ network: ClientNetwork) -> Bool { shares.enter(network, free: free + 1) }

    /// Ends the use of a connection by a network.
    func leave(_ network: ClientNetwork) { shares.leave(network) }
}
