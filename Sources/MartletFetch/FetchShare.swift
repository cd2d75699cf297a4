/// Whose requests they are: every purpose has slots and a queue of its own, so that a flood of one is no outage of another.
package enum FetchPurpose: Hashable, Sendable {
    /// Documents with issuers' keys.
    case issuerKeys
    /// Calls of the provider of that name.
    case provider(String)

    var limits: FetchLimits {
        switch self {
        case .issuerKeys: FetchLimits(slots: 16, total: 64)
        case .provider: FetchLimits(slots: 64, total: 256)
        }
    }
}

/// How much one purpose may have.
struct FetchLimits: Sendable {
    /// Requests that may be sent at once.
    let slots: Int
    /// Requests that may be sent or wait for that; more are refused.
    let total: Int
}

/// The slots of one purpose: how many are taken, and who waits for one.
struct FetchShare {
    /// What asking for a slot came to.
    enum Admission { case granted, queued, refused }

    private let limits: FetchLimits
    private(set) var taken = 0
    /// In the order in which they came.
    private var waiting: [UInt64] = []

    init(_ limits: FetchLimits) { self.limits = limits }

    /// Nobody has a slot or waits for one.
    var isIdle: Bool { taken == 0 && waiting.isEmpty }

    /// Asks for a slot under a number that nobody else waits under.
    mutating func enter(_ number: UInt64) -> Admission {
        if taken < limits.slots, waiting.isEmpty {
            taken += 1
            return .granted
        }
        guard taken + waiting.count < limits.total else { return .refused }
        waiting.append(number)
        return .queued
    }

    /// Gives a slot back.
    /// - Returns: who has it now.
    mutating func leave() -> UInt64? {
        guard waiting.isEmpty else { return waiting.removeFirst() }
        taken = max(taken - 1, 0)
        return nil
    }

    /// Ends the waiting of one; nothing happens if that one does not wait any more.
    mutating func abandon(_ number: UInt64) { waiting.removeAll { $0 == number } }

    /// Ends the waiting of all.
    mutating func abandonAll() { waiting.removeAll() }
}
