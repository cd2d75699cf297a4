/// Ends a task's wait early. A signal without a waiter ends the next wait immediately.
package final class Wakeup: Sendable {
    private struct State {
        var isSignaled = false
        var waiter: CheckedContinuation<Void, Never>?
    }

    private let state = Lock(State())

    package init() {}

    /// Ends the current wait, or else the next one.
    package func signal() {
        let waiter = state.withLock { state -> CheckedContinuation<Void, Never>? in
            let waiter = state.waiter
            state.waiter = nil
            state.isSignaled = waiter == nil
            return waiter
        }
        waiter?.resume()
    }

    /// Waits for a signal, for a time at most; returns immediately in a cancelled task. One task may wait at a time.
    ///
    /// It may also return early: a wait that has just timed out can leave its signal to the next one.
    package func wait(atMost limit: Duration) async {
        let timer = Task {
            try? await Task.sleep(for: limit)
            if !Task.isCancelled { self.signal() }
        }
        await withTaskCancellationHandler {
            await waitForSignal()
        } onCancel: {
            self.signal()
        }
        timer.cancel()
    }

    private func waitForSignal() async {
        await withCheckedContinuation { (continuation: CheckedContinuation<Void, Never>) in
            let isDue = state.withLock { state -> Bool in
                guard !state.isSignaled, !Task.isCancelled else {
                    state.isSignaled = false
                    return true
                }
                state.waiter = continuation
                return false
            }
            if isDue { continuation.resume() }
        }
    }
}
