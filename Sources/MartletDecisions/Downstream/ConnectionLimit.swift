package import MartletConfig
package import MartletCore
internal import MartletProvider
internal import MartletTraffic
private import Synchronization

/// Counts the process's downstream connections over all loops.
///
/// A network may not have the last ones, whatever the limit of one address is: it leaves an eighth to others.
package final class ConnectionLimit: Sendable {

    private let total = Atomic<Int>(0)
    private let maximum: Int
    private let perAddress = Lock<[[UInt8]: Int]>([:])
    private let shares: NetworkShares

    /// - Parameter maximum: counts where the configuration allows more.
    package init(_ bound: SharedBound = .connections, maximum: Int = .max) {
        self.maximum = maximum
        shares = NetworkShares(bound)
    }

    /// Number of connections.
    package var count: Int { total.load(ordering: .relaxed) }

    private func limit(_ limits: Limits) -> Int { min(limits.connections, maximum) }

    /// How a connection was counted in, and has to be counted out, or why it was refused.
    package struct Admission: OptionSet {
        package let rawValue: UInt8

        @inline(__always)
        package init(rawValue: UInt8) { self.rawValue = rawValue }

        package static let counted = Admission(rawValue: 1)
        /// For its network, too.
        static let countedByNetwork = Admission(rawValue: 3)
        /// For its address, where that has a limit.
        static let countedByAddress = Admission(rawValue: 5)

        /// There are too many.
        package static let refused = Admission([])
        /// Its network has too many.
        package static let refusedToNetwork = Admission(rawValue: 8)
        /// Its address has too many.
        static let refusedToAddress = Admission(rawValue: 16)

        package var isAdmitted: Bool { contains(.counted) }
    }

    /// Counts a new connection in, unless a limit is reached.
    /// - Parameters:
    ///   - address: of the peer; `nil` where it does not identify the peer.
    ///   - isDivided: whether its network has a share; a trusted proxy is many clients.
    package func enter(_ address: [UInt8]?, isDivided: Bool = true, limits: Limits) -> Admission {
        let limit = limit(limits)
        let used = total.add(1, ordering: .relaxed).newValue
        guard used <= limit else {
            total.subtract(1, ordering: .relaxed)
            return .refused
        }
        var admission = Admission.counted
        guard let address else { return admission }
        if isDivided, limit >= NetworkShares.smallestDivided, let network = ClientNetwork(address: address) {
            guard shares.enter(network, free: limit - used + 1) else {
                total.subtract(1, ordering: .relaxed)
                return .refusedToNetwork
            }
            admission = .countedByNetwork
        }
        guard limits.connectionsPerAddress > 0 else { return admission }
        let isAllowed = perAddress.withLock { counts in
            let count = counts[address, default: 0]
            guard count < limits.connectionsPerAddress else { return false }
            counts[address] = count + 1
            return true
        }
        guard isAllowed else {
            leave(address, admission)
            return .refusedToAddress
        }
        return admission.union(.countedByAddress)
    }

    /// Counts a connection out, unless it was not counted in.
    package func leave(_ address: [UInt8], _ admission: Admission) {
        guard admission.isAdmitted else { return }
        total.subtract(1, ordering: .relaxed)
        if admission.contains(.countedByNetwork), let network = ClientNetwork(address: address) {
            shares.leave(network)
        }
        guard admission.contains(.countedByAddress) else { return }
        perAddress.withLock { counts in
            guard let count = counts[address] else { return }
            counts[address] = count > 1 ? count - 1 : nil
        }
    }
}
