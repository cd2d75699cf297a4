internal import MartletCore
internal import MartletProvider

/// A network has exceeded its budget.
struct BudgetExceededError: Error {
    let retryAfter: Duration
}

/// Limits how often a network may fail at one kind of unauthenticated request, such as logins with one provider.
///
/// Successes cost nothing, so that many users behind one address do not affect each other. Attempts in flight count as
/// failed, so that concurrent attempts get no further than sequential ones.
///
/// Budgets are local to the process.
final class AttemptBudget: Sendable {
    /// An admitted attempt; it must be ended.
    struct Attempt: Sendable {
        fileprivate let blocks: [NetworkBlock]
    }

    private let counts: Lock<AttemptCounts>

    /// - Parameter limit: instead of the bound's.
    init(_ bound: SharedBound, _ limit: FailureLimit? = nil) {
        counts = Lock(AttemptCounts(limit ?? FailureLimit(bound)))
    }

    /// Admits an attempt.
    /// - Parameter network: `nil` if unknown; all unknown networks share one budget.
    func begin(from network: ClientNetwork?, at now: MonotonicTime) throws(BudgetExceededError) -> Attempt {
        let blocks = network?.blocks ?? [.unknown]
        let wait = counts.withLock { $0.begin(blocks, at: now.nanoseconds) }
        if let wait { throw BudgetExceededError(retryAfter: .nanoseconds(wait)) }
        return Attempt(blocks: blocks)
    }

    /// Counts a failure that no attempt was admitted for.
    func add(from network: ClientNetwork?, at now: MonotonicTime) {
        counts.withLock { $0.end(network?.blocks ?? [.unknown], failed: true, at: now.nanoseconds) }
    }

    /// How long a network has to wait that has failed too often; `nil` for one that has not.
    func wait(of network: ClientNetwork?, at now: MonotonicTime) -> Duration? {
        let wait: Int64? = counts.withLock { counts in
            for block in network?.blocks ?? [.unknown] {
                if let wait = counts.wait(for: block, at: now.nanoseconds) { return wait }
            }
            return nil
        }
        return wait.map { .nanoseconds($0) }
    }

    /// Ends an attempt; to be called once.
    func end(_ attempt: Attempt, failed: Bool, at now: MonotonicTime) {
        counts.withLock { $0.end(attempt.blocks, failed: failed, at: now.nanoseconds) }
    }
}

/// The counts of an ``AttemptBudget``.
struct AttemptCounts: Sendable {
    /// The wait while too many attempts are in flight, in nanoseconds.
    private static let inFlightWait: Int64 = 1_000_000_000

    private let limit: FailureLimit
    private var failures: [NetworkBlock.Size: LeakyCountMinSketch] = [:]
    /// Has entries only for the blocks of attempts in flight.
    private var inFlight: [NetworkBlock: Int] = [:]

    init(_ limit: FailureLimit) { self.limit = limit }

    /// Counts an attempt as in flight in all its blocks, or in none.
    /// - Returns: how long to wait if a block's limit is reached, in nanoseconds.
    mutating func begin(_ blocks: [NetworkBlock], at now: Int64) -> Int64? {
        for block in blocks {
            if let wait = wait(for: block, at: now) { return wait }
        }
        for block in blocks { inFlight[block, default: 0] += 1 }
        return nil
    }

    /// Ends an admitted attempt.
    mutating func end(_ blocks: [NetworkBlock], failed: Bool, at now: Int64) {
        for block in blocks {
            let left = (inFlight[block] ?? 1) - 1
            inFlight[block] = left > 0 ? left : nil
            guard failed else { continue }
            failures[block.size, default: LeakyCountMinSketch()].add(block, cost: cost(in: block), at: now)
        }
    }

    func wait(for block: NetworkBlock, at now: Int64) -> Int64? {
        let cost = cost(in: block)
        let backlog = failures[block.size]?.backlog(of: block, at: now) ?? 0
        // Rounded up: a partly drained failure still counts.
        let failed = Int(clamping: backlog / cost) + (backlog % cost > 0 ? 1 : 0)
        let maximum = maximum(in: block)
        guard failed < maximum else { return max(backlog &- Int64(clamping: maximum - 1) * cost, 1) }
        return (inFlight[block] ?? 0) < maximum &- failed ? nil : Self.inFlightWait
    }

    private func maximum(in block: NetworkBlock) -> Int { limit.attempts.saturatingMultiply(by: block.size.share) }

    /// How long one failure takes to drain, in nanoseconds.
    private func cost(in block: NetworkBlock) -> Int64 {
        max(limit.window.wholeNanoseconds / Int64(clamping: maximum(in: block)), 1)
    }
}

extension NetworkBlock {
    /// The kind of a block.
    enum Size: Hashable, Sendable {
        case address, addresses256, subnet64, subnet56, subnet48, unknown

        /// The block's limit as a multiple of the smallest block's.
        var share: Int {
            switch self {
            case .address, .subnet64: 1
            case .addresses256, .subnet56: 4
            case .subnet48, .unknown: 16
            }
        }
    }

    var size: Size {
        switch self {
        case .address: .address
        case .addresses256: .addresses256
        case .subnet64: .subnet64
        case .subnet56: .subnet56
        case .subnet48: .subnet48
        case .unknown: .unknown
        }
    }
}

extension Int {
    fileprivate func saturatingMultiply(by factor: Int) -> Int {
        let (product, overflow) = multipliedReportingOverflow(by: factor)
        return overflow ? .max : product
    }
}
