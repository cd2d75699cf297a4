internal import MartletConfig
private import Synchronization

/// Counts the process's downstream connections over all loops.
package final class ConnectionLimit: Sendable {
    private let total = Atomic<Int>(0)
    private let perAddress = Mutex<[[UInt8]: Int]>([:])

    package init() {}

    /// Number of connections.
    package var count: Int { total.load(ordering: .relaxed) }

    /// Whether the total limit is reached.
    func isFull(_ limits: Limits) -> Bool { count >= limits.connections }

    /// How a connection was counted in, and has to be counted out.
    enum Admission {
        case refused
        case counted
        /// Its address was counted, too.
        case countedByAddress
    }

    /// Counts a new connection in, unless a limit is reached.
    /// - Parameter address: of the peer; `nil` where it does not identify the peer.
    func enter(_ address: [UInt8]?, limits: Limits) -> Admission {
        guard total.add(1, ordering: .relaxed).newValue <= limits.connections else {
            total.subtract(1, ordering: .relaxed)
            return .refused
        }
        guard limits.connectionsPerAddress > 0, let address else { return .counted }
        let isAllowed = perAddress.withLock { counts in
            let count = counts[address, default: 0]
            guard count < limits.connectionsPerAddress else { return false }
            counts[address] = count + 1
            return true
        }
        if !isAllowed { total.subtract(1, ordering: .relaxed) }
        return isAllowed ? .countedByAddress : .refused
    }

    /// Counts a connection out, unless it was not counted in.
    func leave(_ address: [UInt8], _ admission: Admission) {
        guard admission != .refused else { return }
        total.subtract(1, ordering: .relaxed)
        guard admission == .countedByAddress else { return }
        perAddress.withLock { counts in
            guard let count = counts[address] else { return }
            counts[address] = count > 1 ? count - 1 : nil
        }
    }
}
