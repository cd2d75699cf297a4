import Dispatch
import Synchronization

/// Holds who comes to it until a test opens it, so that the test can look at work that is under way; and counts them.
package final class Gate: Sendable {
    private struct State {
        var isOpen = false
        var inside = 0
        var highest = 0
        var tasks: [CheckedContinuation<Void, Never>] = []
    }

    private let state = Mutex(State())
    /// Has a permit once the gate is open, which each thread hands on.
    private let threads = DispatchSemaphore(value: 0)

    package init() {}

    /// How many are before it.
    package var waiting: Int { state.withLock { $0.inside } }
    /// How many were before it at the same time.
    package var highest: Int { state.withLock { $0.highest } }

    /// Lets pass who waits, and all who come later.
    package func open() {
        let tasks = state.withLock { state in
            defer { state.tasks = [] }
            state.isOpen = true
            return state.tasks
        }
        threads.signal()
        for task in tasks { task.resume() }
    }

    /// Waits in a task, whether it is cancelled or not.
    package func pass() async {
        enter()
        await withCheckedContinuation { continuation in
            let isOpen = state.withLock { state in
                if !state.isOpen { state.tasks.append(continuation) }
                return state.isOpen
            }
            if isOpen { continuation.resume() }
        }
        leave()
    }

    /// Waits until the task is cancelled.
    package static func untilCancelled() async {
        let gate = Gate()
        await withTaskCancellationHandler {
            await gate.pass()
        } onCancel: {
            gate.open()
        }
    }

    /// Blocks the thread.
    package func block() {
        enter()
        threads.wait()
        threads.signal()
        leave()
    }

    private func enter() {
        state.withLock { state in
            state.inside += 1
            state.highest = max(state.highest, state.inside)
        }
    }

    private func leave() { state.withLock { $0.inside -= 1 } }
}
