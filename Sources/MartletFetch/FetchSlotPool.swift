/// The purpose of a request; each has its own slots and queue, so that a flood for one does not affect the others.
package enum FetchPurpose: Hashable, Sendable {
    /// Key sets of issuers.
    case issuerKeys
    /// Calls of the provider with this name.
    case provider(String)
    /// Deliveries to the webhook with this name.
    case webhook(String)
    /// Lines of the audit log.
    case audit

    var limits: FetchLimits {
        switch self {
        case .issuerKeys: FetchLimits(slots: 16, total: 64)
        case .provider: FetchLimits(slots: 64, total: 256)
        case .webhook: FetchLimits(slots: 32, total: 64)
        case .audit: FetchLimits(slots: 1, total: 4)
        }
    }
}

/// The limits of one purpose.
struct FetchLimits: Sendable {
    /// The maximum number of concurrent requests.
    let slots: Int
    /// The maximum number of concurrent and queued requests; further ones are rejected.
    let total: Int
}

/// The slots of one purpose and the queue of waiters for one.
struct FetchSlotPool {
    /// The result of requesting a slot.
    enum Admission { case granted, queued, rejected }

    private let limits: FetchLimits
    private(set) var inUse = 0
    /// In order of arrival.
    private var waiting: [UInt64] = []

    init(_ limits: FetchLimits) { self.limits = limits }

    /// Whether no slot is in use or waited for.
    var isIdle: Bool { inUse == 0 && waiting.isEmpty }

    /// Requests a slot for a waiter with a unique number.
    mutating func acquire(_ number: UInt64) -> Admission {
        if inUse < limits.slots, waiting.isEmpty {
            inUse += 1
            return .granted
        }
        guard inUse + waiting.count < limits.total else { return .rejected }
        waiting.append(number)
        return .queued
    }

    /// Releases a slot.
    /// - Returns: the waiter that gets it.
    mutating func release() -> UInt64? {
        guard waiting.isEmpty else { return waiting.removeFirst() }
        inUse = max(inUse - 1, 0)
        return nil
    }

    /// Removes a waiter from the queue, if it is still there.
    mutating func abandon(_ number: UInt64) { waiting.removeAll { $0 == number } }

    /// Removes all waiters.
    mutating func abandonAll() { waiting.removeAll() }
}
