internal import MartletCore
internal import MartletDecisions
internal import MartletProvider
internal import MartletTraffic

/// What is counted of one request by a ``DividedCounter``.
@safe struct DividedEntry {
    private var entry = CounterEntry()
    /// Where its network is counted, if it is, and which one that is.
    private var shares: Unmanaged<NetworkShares>?
    private var network: ClientNetwork?

    @inline(__always)
    var isEntered: Bool { entry.isEntered }

    /// Counts it.
    /// - Parameter network: of the client, where the count is divided; `nil` where its address does not tell.
    /// - Returns: whether there was room, for this network.
    mutating func enter(_ counter: DividedCounter, maximum: Int, for network: ClientNetwork?) -> Bool {
        guard unsafe counter.count._withUnsafeGuaranteedRef({ entry.enter($0, maximum: maximum) }) else { return false }
        guard let network, maximum >= NetworkShares.smallestDivided else { return true }
        let free = maximum - counter.current + 1
        guard unsafe counter.shares._withUnsafeGuaranteedRef({ $0.enter(network, free: free) }) else {
            entry.leave()
            return false
        }
        unsafe shares = counter.shares
        self.network = network
        return true
    }

    /// Counts it out, if it was counted.
    @inline(__always)
    mutating func leave() {
        if isEntered { countOut() }
    }

    @inline(never)
    private mutating func countOut() {
        entry.leave()
        guard let shares = unsafe shares, let network else { return }
        unsafe shares._withUnsafeGuaranteedRef { $0.leave(network) }
        unsafe self.shares = nil
        self.network = nil
    }
}
