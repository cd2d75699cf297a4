internal import MartletCore
private import Synchronization

/// Records the health and the counters of an account store for its callers and its threads.
final class AccountHealthRecorder: Sendable {
    private let content = Mutex(AccountHealth(state: .starting))

    var health: AccountHealth { content.withLock { $0 } }

    /// Counts a call and its outcome.
    func count(_ failure: AccountError?) {
        content.withLock { health in
            health.calls += 1
            if let failure, failure.kind == .unavailable { health.failures[failure.code, default: 0] += 1 }
        }
    }

    func ready() {
        content.withLock { health in
            if health.state != .stopped { health.state = .ready }
        }
    }

    func reconnected() { content.withLock { $0.reconnects += 1 } }

    /// - Returns: whether the state or the error code has changed.
    @discardableResult func unavailable(_ error: AccountError) -> Bool {
        content.withLock { health in
            guard health.state != .stopped else { return false }
            let hasChanged = health.state != .unavailable || health.code != error.code
            health.state = .unavailable
            health.code = error.code
            health.detail = error.message
            return hasChanged
        }
    }

    func stopped() { content.withLock { $0.state = .stopped } }
}
