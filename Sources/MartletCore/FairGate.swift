private import Synchronization

/// Lets so much be under way at once, such as questions to a store, and serves owners in turn where more wants to be.
///
/// So a flood of one owner's delays that owner alone, and what is behind the gate never gets more than it can take. What
/// is let in must end by itself: nobody is taken out again.
public final class FairGate: Sendable {
    private typealias Waiter = CheckedContinuation<Bool, Never>

    private struct State {
        var free: Int
        var waiting: FairQueue<Waiter>

        mutating func takePlace() -> Bool {
            guard free > 0 else { return false }
            free -= 1
            return true
        }
    }

    private let state: Mutex<State>

    /// - Parameters:
    ///   - places: how much may be under way.
    ///   - queue: how much may wait for that; half of it for one group, a quarter for one member.
    public init(places: Int, queue: Int) {
        let limits = FairQueue<Waiter>.Limits(total: queue, group: max(queue / 2, 1), member: max(queue / 4, 1))
        state = Mutex(State(free: places, waiting: FairQueue(limits)))
    }

    /// Waits for a place; who has got one gives it back with ``leave()``.
    /// - Returns: `false` where too many wait already.
    public func enter(as owner: WorkOwner) async -> Bool {
        if state.withLock({ $0.takePlace() }) { return true }
        return await withCheckedContinuation { waiter in
            let (answered, isIn) = state.withLock { state -> (Waiter?, Bool) in
                if state.takePlace() { return (waiter, true) }
                switch state.waiting.append(waiter, of: owner) {
                case .queued: return (nil, false)
                case .queuedInsteadOf(let other): return (other, false)
                case .refused: return (waiter, false)
                }
            }
            answered?.resume(returning: isIn)
        }
    }

    /// Gives a place back, to whoever's turn it is.
    public func leave() {
        let next = state.withLock { state -> Waiter? in
            let next = state.waiting.popFirst()
            if next == nil { state.free += 1 }
            return next
        }
        next?.resume(returning: true)
    }
}
