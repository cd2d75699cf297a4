package import MartletCore
private import Synchronization

/// What the rest of the process may tell a loop.
extension Mailbox {
    /// Goes on with a new configuration; a socket of −1 is one that the loop has already.
    package func adopt(_ snapshot: Snapshot, listeners: [ListenerSocket]) {
        post(.adopt(snapshot, listeners: listeners))
    }

    /// New addresses of host names.
    package func resolved(_ names: [ResolvedName]) { post(.resolved(names)) }

    /// Forgets every verdict.
    package func forget() { post(.forget) }

    /// Forgets the copies of sessions that have ended, and verdicts on subjects: see ``SubjectNumber``.
    package func revoked(_ numbers: [UInt64]) { post(.revoked(numbers)) }

    /// Refuses session tokens, known ones too, or no longer does.
    package func refuseSessions(_ refuses: Bool) { post(.refuseSessions(refuses)) }

    /// Accepts no more, serves what is under way, and ends; what is left at the deadline is cut.
    ///
    /// - Parameter hasHeir: whether another process accepts from the same sockets, which have what waits there.
    package func drain(until deadline: MonotonicTime, hasHeir: Bool = false) {
        post(.drain(deadline: deadline.nanoseconds, hasHeir: hasHeir))
    }

    /// The loop's counters; `nil` when it does not answer in time.
    package func report(within patience: Duration) async -> LoopReport? {
        let answer = OnceOnly<LoopReport>()
        post(.collect { answer.settle($0) })
        return await answer.value(within: patience)
    }
}

/// A value that comes once, or not in time.
private final class OnceOnly<Value: Sendable>: Sendable {
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
