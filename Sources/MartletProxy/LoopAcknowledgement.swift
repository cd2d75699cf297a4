private import Synchronization

/// Tells when every loop has done what one message asked of it.
///
/// Loops acknowledge where nobody waits for them; who waits does so with a deadline, because a loop may be stuck.
package final class LoopAcknowledgement: Sendable {
    private let missing: Atomic<Int>
    private let done = OnceOnly<Bool>()

    /// - Parameter loops: how many are asked.
    package init(loops: Int) {
        missing = Atomic(loops)
        if loops <= 0 { done.settle(true) }
    }

    /// One loop has done it; each says so once.
    package func acknowledge() {
        if missing.subtract(1, ordering: .acquiringAndReleasing).newValue == 0 { done.settle(true) }
    }

    /// Waits for all of them.
    /// - Returns: whether all had done it before the deadline.
    package func wait(within patience: Duration) async -> Bool { await done.value(within: patience) ?? false }
}

/// A value that comes once, or not in time.
final class OnceOnly<Value: Sendable>: Sendable {
    private enum State {
        case empty
        case waiting(CheckedContinuation<Value?, Never>)
        case settled(Value?)
    }

    private let state = Mutex(State.empty)

    func settle(_ value: Value?) {
        let waiter = state.withLock { state -> CheckedContinuation<Value?, Never>? in
            switch state {
            case .empty:
                state = .settled(value)
                return nil
            case .waiting(let continuation):
                state = .settled(value)
                return continuation
            case .settled: return nil
            }
        }
        waiter?.resume(returning: value)
    }

    func value(within patience: Duration) async -> Value? {
        let timeout = Task {
            try await Task.sleep(for: patience)
            self.settle(nil)
        }
        defer { timeout.cancel() }
        return await withCheckedContinuation { continuation in
            let ready = state.withLock { state -> (Value?)? in
                guard case .settled(let value) = state else {
                    state = .waiting(continuation)
                    return nil
                }
                return .some(value)
            }
            if let ready { continuation.resume(returning: ready) }
        }
    }
}
