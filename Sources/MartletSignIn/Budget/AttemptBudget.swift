internal import MartletCore
internal import MartletProvider
private import Synchronization

/// A network has used up what it may try.
struct BudgetExceeded: Error {
    let retryAfter: Duration
}

/// Bounds how often a network may fail at one thing that needs no proof, such as logging in with one provider.
///
/// What succeeds costs nothing, so that many people behind one address do not get in each other's way. What is under way
/// counts as if it had failed, so that a burst gets no further than a sequence.
///
/// It is this process's alone: nobody is asked.
final class AttemptBudget: Sendable {
    /// One that was let through, and has to be brought to its end.
    struct Attempt: Sendable {
        fileprivate let blocks: [NetworkBlock]
    }

    private let counts: Mutex<AttemptCounts>

    init(_ limit: FailureLimit) { counts = Mutex(AttemptCounts(limit)) }

    /// Lets an attempt through.
    /// - Parameter network: `nil` where nobody knows; all of those share one budget.
    func begin(from network: ClientNetwork?, at now: MonotonicTime) throws(BudgetExceeded) -> Attempt {
        let blocks = network?.blocks ?? [.unknown]
        let wait = counts.withLock { $0.begin(blocks, at: now.nanoseconds) }
        if let wait { throw BudgetExceeded(retryAfter: .nanoseconds(wait)) }
        return Attempt(blocks: blocks)
    }

    /// Ends an attempt; to be called once.
    func end(_ attempt: Attempt, failed: Bool, at now: MonotonicTime) {
        counts.withLock { $0.end(attempt.blocks, failed: failed, at: now.nanoseconds) }
    }
}

/// The counts of an ``AttemptBudget``.
struct AttemptCounts: Sendable {
    /// What an attempt is told that comes while too many others are under way, in nanoseconds.
    private static let shortWait: Int64 = 1_000_000_000

    private let limit: FailureLimit
    private var failures: [NetworkBlock.Size: DrainingCounts] = [:]
    /// At most as many entries as attempts under way have blocks.
    private var underWay: [NetworkBlock: Int] = [:]

    init(_ limit: FailureLimit) { self.limit = limit }

    /// Notes an attempt as under way in all its blocks, or in none.
    /// - Returns: how long to wait where there is no room, in nanoseconds.
    mutating func begin(_ blocks: [NetworkBlock], at now: Int64) -> Int64? {
        for block in blocks {
            if let wait = wait(for: block, at: now) { return wait }
        }
        for block in blocks { underWay[block, default: 0] += 1 }
        return nil
    }

    /// Ends an attempt that was begun.
    mutating func end(_ blocks: [NetworkBlock], failed: Bool, at now: Int64) {
        for block in blocks {
            let left = (underWay[block] ?? 1) - 1
            underWay[block] = left > 0 ? left : nil
            guard failed else { continue }
            failures[block.size, default: DrainingCounts()].add(block, cost: cost(in: block), at: now)
        }
    }

    private func wait(for block: NetworkBlock, at now: Int64) -> Int64? {
        let cost = cost(in: block)
        let backlog = failures[block.size]?.backlog(of: block, at: now) ?? 0
        // Rounded up: what has drained in part still counts.
        let failed = Int(clamping: backlog / cost) + (backlog % cost > 0 ? 1 : 0)
        let most = most(in: block)
        guard failed < most else { return max(backlog &- Int64(clamping: most - 1) * cost, 1) }
        return (underWay[block] ?? 0) < most &- failed ? nil : Self.shortWait
    }

    private func most(in block: NetworkBlock) -> Int { limit.attempts.multipliedOrLargest(by: block.size.share) }

    /// How long one failure takes to drain.
    private func cost(in block: NetworkBlock) -> Int64 {
        max(limit.window.wholeNanoseconds / Int64(clamping: most(in: block)), 1)
    }
}

extension NetworkBlock {
    /// What kind of block it is.
    enum Size: Hashable, Sendable {
        case address, addresses256, subnet64, subnet56, subnet48, unknown

        /// How often the limit of the smallest block fits in.
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
    fileprivate func multipliedOrLargest(by factor: Int) -> Int {
        let (product, overflow) = multipliedReportingOverflow(by: factor)
        return overflow ? .max : product
    }
}
