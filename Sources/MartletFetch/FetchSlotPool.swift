internal import MartletCore

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
        // More than one network's part, so that others' requests need not wait for its slow ones.
        case .issuerKeys: FetchLimits(.keyRequests, slots: 48)
        case .provider: FetchLimits(.providerRequests, slots: 192)
        case .webhook: FetchLimits(.webhookRequests, slots: 32)
        case .audit: FetchLimits(.auditRequests, slots: 1)
        }
    }
}

/// The limits of one purpose.
struct FetchLimits: Sendable {
    /// The maximum number of concurrent requests.
    let slots: Int
    /// The maximum number of concurrent and queued requests; further ones are rejected.
    let total: Int
    /// The maximum number of them for one network, and for one address.
    let group: Int
    let member: Int

    /// - Parameter total: instead of the bound's.
    init(_ bound: SharedBound, slots: Int, total: Int? = nil) {
        let total = total ?? bound.total
        (self.slots, self.total) = (slots, total)
        (group, member) = (bound.networkPart(of: total), bound.addressPart(of: total))
    }
}

/// The slots of one purpose and the queue of waiters for one.
///
/// Slots and places in the queue belong to whoever causes the requests: half of them to one network at most, a quarter to
/// one address, so that one that causes all that it can leaves the rest to others.
struct FetchSlotPool {
    /// The result of requesting a slot.
    enum Admission { case granted, queued, rejected }

    private let limits: FetchLimits
    private var queue = FairQueue<UInt64>(.behind(.providerRequests))
    /// The owners of those that still wait; others are left in the queue until their turn.
    private var waiting: [UInt64: WorkOwner] = [:]
    private(set) var inUse = 0
    /// What is in use and waited for, by network and by address.
    private var groups: [UInt64: Int] = [:]
    private var members: [WorkOwner: Int] = [:]

    init(_ limits: FetchLimits) { self.limits = limits }

    /// Whether no slot is in use or waited for.
    var isIdle: Bool { inUse == 0 && waiting.isEmpty }

    /// Requests a slot for a waiter with a unique number.
    /// - Parameter owner: who causes the request; what the gateway does for itself has no share.
    mutating func acquire(_ number: UInt64, for owner: WorkOwner = .anonymous) -> Admission {
        guard hasCapacity(for: owner) else { return .rejected }
        count(owner, 1)
        if inUse < limits.slots, waiting.isEmpty {
            inUse += 1
            return .granted
        }
        _ = queue.append(number, of: owner)
        waiting[number] = owner
        return .queued
    }

    /// Releases a slot of an owner.
    /// - Returns: the waiter that gets it.
    mutating func release(by owner: WorkOwner = .anonymous) -> UInt64? {
        count(owner, -1)
        while let number = queue.popFirst() {
            if waiting.removeValue(forKey: number) != nil { return number }
        }
        inUse = max(inUse - 1, 0)
        return nil
    }

    /// Whether a request of this owner would be granted or queued.
    func hasCapacity(for owner: WorkOwner) -> Bool {
        guard inUse + waiting.count < limits.total else { return false }
        return owner == .anonymous
            || (groups[owner.group] ?? 0) < limits.group && (members[owner] ?? 0) < limits.member
    }

    private mutating func count(_ owner: WorkOwner, _ change: Int) {
        guard owner != .anonymous else { return }
        let (group, member) = ((groups[owner.group] ?? 0) + change, (members[owner] ?? 0) + change)
        groups[owner.group] = group > 0 ? group : nil
        members[owner] = member > 0 ? member : nil
    }

    /// Removes a waiter from the queue, if it is still there.
    mutating func abandon(_ number: UInt64) {
        guard let owner = waiting.removeValue(forKey: number) else { return }
        count(owner, -1)
        // Those that have given up are in the queue until their turn, which may be far away.
        if queue.count > 2 * waiting.count + limits.total { compact() }
    }

    private mutating func compact() {
        let left = queue.popAll().filter { waiting[$0] != nil }
        for number in left { _ = queue.append(number, of: waiting[number] ?? .anonymous) }
    }

    /// Removes all waiters.
    mutating func abandonAll() {
        for number in Array(waiting.keys) { abandon(number) }
    }
}
