/// A semaphore that limits concurrent work, such as queries to a store, and serves waiting owners round-robin.
///
/// A flood from one owner delays that owner only. A permit is never revoked: its holder must finish by itself.
public final class FairSemaphore: Sendable {
    private typealias Waiter = CheckedContinuation<Bool, Never>

    private struct State {
        var free: Int
        var waiting: FairQueue<Waiter>

        mutating func takePermit() -> Bool {
            guard free > 0 else { return false }
            free -= 1
            return true
        }
    }

    private let state: Lock<State>

    /// - Parameters:
    ///   - permits: the maximum number of concurrent holders.
    ///   - queue: the maximum number of waiters; half of it for one group, a quarter for one member.
    public convenience init(permits: Int, queue: Int) { self.init(.pluginWork, permits: permits, queue: queue) }

    /// - Parameters:
    ///   - bound: that of the waiters.
    ///   - permits: the maximum number of concurrent holders.
    ///   - queue: the maximum number of waiters, where the bound leaves it open.
    package init(_ bound: SharedBound, permits: Int, queue: Int? = nil) {
        let limits = FairQueue<Waiter>.Limits(bound, total: queue)
        state = Lock(State(free: permits, waiting: FairQueue(limits)))
    }

    /// How many wait.
    package var waiting: Int { state.withLock { $0.waiting.count } }

    /// Waits for a permit, to be returned with ``release()``.
    /// - Returns: `false` when too many wait already; there is nothing to release then.
    public func acquire(as owner: WorkOwner) async -> Bool {
        if state.withLock({ $0.takePermit() }) { return true }
        return await withCheckedContinuation { waiter in
            let (resumed, isAcquired) = state.withLock { state -> (Waiter?, Bool) in
                if state.takePermit() { return (waiter, true) }
                switch state.waiting.append(waiter, of: owner) {
                case .queued: return (nil, false)
                case .queuedInsteadOf(let other): return (other, false)
                case .rejected: return (waiter, false)
                }
            }
            resumed?.resume(returning: isAcquired)
        }
    }

    /// Returns a permit, or passes it to the next waiter.
    public func release() {
        let next = state.withLock { state -> Waiter? in
            let next = state.waiting.popFirst()
            if next == nil { state.free += 1 }
            return next
        }
        next?.resume(returning: true)
    }
}
