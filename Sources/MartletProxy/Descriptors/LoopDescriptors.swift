internal import MartletProvider

/// What an upstream connection has of the ``DescriptorBudget``.
struct DescriptorCharge {
    /// Its descriptor was taken.
    var isTaken = false
    /// The network that it is counted for, while it carries that one's request.
    var network: ClientNetwork?
}

/// A loop's view of the ``DescriptorBudget``.
struct LoopDescriptors {
    private let budget: DescriptorBudget?
    /// Whether descriptors were scarce when this loop opened or closed a connection last: then the use of an idle
    /// connection counts as well. Idle ones are few enough for the time in between.
    private(set) var isScarce = false

    /// - Parameter budget: `nil` for a loop that takes what it needs.
    init(_ budget: DescriptorBudget?) { self.budget = budget }

    /// Whether none is left for any network.
    var isFull: Bool { budget?.isFull ?? false }

    /// Takes the descriptor of a new connection.
    /// - Parameter network: of the client; `nil` where its address does not tell.
    /// - Returns: `nil` if there is none, or none for this network.
    mutating func take(for network: ClientNetwork?) -> DescriptorCharge? {
        guard let budget else { return DescriptorCharge() }
        isScarce = budget.isScarce
        guard budget.take() else { return nil }
        var charge = DescriptorCharge(isTaken: true)
        guard use(&charge, by: network) else {
            budget.release()
            return nil
        }
        return charge
    }

    /// Counts a connection for a network.
    /// - Returns: whether the network may have it.
    func use(_ charge: inout DescriptorCharge, by network: ClientNetwork?) -> Bool {
        guard let budget, let network else { return true }
        guard budget.enter(network) else { return false }
        charge.network = network
        return true
    }

    /// Ends the use of a connection by a network.
    func endUse(_ charge: inout DescriptorCharge) {
        if let network = charge.network { budget?.leave(network) }
        charge.network = nil
    }

    /// Gives back what a closed connection had.
    mutating func release(_ charge: inout DescriptorCharge) {
        endUse(&charge)
        guard charge.isTaken, let budget else { return }
        budget.release()
        charge.isTaken = false
        isScarce = budget.isScarce
    }
}
