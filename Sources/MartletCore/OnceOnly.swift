/// A value that is set once, or times out.
package final class OnceOnly<Value: Sendable>: Sendable {
    private enum State {
        case empty
        case waiting(CheckedContinuation<Value?, Never>)
        case completed(Value?)
    }

    private let state = Lock(State.empty)

    package init() {}

    /// Sets the value; only the first call has an effect.
    /// - Returns: whether this was the first call, and no timeout came before it.
    @discardableResult
    package func complete(_ value: Value?) -> Bool {
        let (waiter, isFirst) = state.withLock { state -> (CheckedContinuation<Value?, Never>?, Bool) in
            switch state {
            case .empty:
                state = .completed(value)
                return (nil, true)
            case .waiting(let continuation):
                state = .completed(value)
                return (continuation, true)
            case .completed: return (nil, false)
            }
        }
        waiter?.resume(returning: value)
        return isFirst
    }

    /// Waits for the value; one caller at a time.
    /// - Returns: `nil` after the timeout.
    package func value(within timeout: Duration) async -> Value? {
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
