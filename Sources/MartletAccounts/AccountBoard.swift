internal import MartletCore
private import Synchronization

/// What callers and the threads of a backend both see and count.
final class AccountBoard: Sendable {
    private let content = Mutex(AccountHealth(state: .starting))

    var health: AccountHealth { content.withLock { $0 } }

    /// Counts a call and what came of it.
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

    /// - Returns: whether this is news: another state or another reason.
    @discardableResult func unavailable(_ error: AccountError) -> Bool {
        content.withLock { health in
            guard health.state != .stopped else { return false }
            let isNews = health.state != .unavailable || health.code != error.code
            health.state = .unavailable
            health.code = error.code
            health.detail = error.message
            return isNews
        }
    }

    func stopped() { content.withLock { $0.state = .stopped } }
}
