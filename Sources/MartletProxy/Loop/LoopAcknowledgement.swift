private import Synchronization

/// Completes when every loop has processed a message; waiting has a deadline, because a loop may be stuck.
package final class LoopAcknowledgement: Sendable {
    private let missing: Atomic<Int>
    private let done = OnceOnly<Bool>()

    /// - Parameter loops: how many loops have to acknowledge.
    package init(loops: Int) {
        missing = Atomic(loops)
        if loops <= 0 { done.complete(true) }
    }

    /// Acknowledges for one loop; each loop calls it once.
    package func acknowledge() {
        if missing.subtract(1, ordering: .acquiringAndReleasing).newValue == 0 { done.complete(true) }
    }

    /// Waits for all loops.
    /// - Returns: whether all had acknowledged before the deadline.
    package func wait(within timeout: Duration) async -> Bool { await done.value(within: timeout) ?? false }
}

/// A value that is set once, or times out.
final class OnceOnly<Value: Sendable>: Sendable {
    private enum State {
        case empty
        case waiting(CheckedContinuation<Value?, Never>)
        case completed(Value?)
    }

    private let state = Mutex(State.empty)

    func complete(_ value: Value?) {
        let waiter = state.withLock { state -> CheckedContinuation<Value?, Never>? in
            switch state {
            case .empty:
                state = .completed(value)
                return nil
            case .waiting(let continuation):
                state = .completed(value)
                return continuation
            case .completed: return nil
            }
        }
        waiter?.resume(returning: value)
    }

    func value(within timeout: Duration) async -> Value? {
        let timer = Task {
            try await Task.sleep(for: timeout)
            self.complete(nil)
        }
        defer { timer.cancel() }
        return await withCheckedContinuation { continuation in
            let ready = state.withLock { state -> (Value?)? in
                guard case .completed(let value) = state else {
                    state = .waiting(continuation)
                    return nil
                }
                return .some(value)
            }
            if let ready { continuation.resume(returning: ready) }
        }
    }
}
