internal import MartletCore

/// Which calls of a provider run, and which wait: decides, and calls nothing.
struct BulkheadState {
    /// Whether a call runs, waits or is rejected.
    enum Entry: Equatable {
        case runs
        /// It waits for its turn.
        /// - Parameter displaced: a call that does not wait any more, because its network has more of them.
        case waits(ticket: UInt64, displaced: UInt64?)
        case saturated
    }

    private let limits: BulkheadLimits
    private var queue: FairQueue<UInt64>
    /// The tickets whose calls still wait.
    private var tickets: Set<UInt64> = []
    private var serial: UInt64 = 0
    private(set) var running = 0
    var waiting: Int { tickets.count }

    init(_ limits: BulkheadLimits) {
        self.limits = limits
        queue = FairQueue(FairQueue<UInt64>.Limits(.providerCalls, total: limits.queue))
    }

    /// Lets a call in, if it may run now or wait.
    mutating func enter(for owner: WorkOwner) -> Entry {
        if running < limits.concurrency {
            running += 1
            return .runs
        }
        guard limits.queue > 0 else { return .saturated }
        serial += 1
        switch queue.append(serial, of: owner) {
        case .rejected: return .saturated
        case .queued:
            tickets.insert(serial)
            return .waits(ticket: serial, displaced: nil)
        case .queuedInsteadOf(let other):
            tickets.insert(serial)
            return .waits(ticket: serial, displaced: tickets.remove(other))
        }
    }

    /// A call that ran has ended.
    /// - Returns: the ticket of the call that runs in its place.
    mutating func leave() -> UInt64? {
        while let next = queue.popFirst() {
            // Those that gave up are still in the queue.
            if tickets.remove(next) != nil { return next }
        }
        running -= 1
        return nil
    }

    /// A call gives up waiting.
    mutating func cancel(_ ticket: UInt64) { tickets.remove(ticket) }
}
