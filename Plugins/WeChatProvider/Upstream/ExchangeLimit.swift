private import Synchronization

/// Limits the exchanges in flight per application, so that a flood for one leaves capacity for the others.
final class ExchangeLimit: Sendable {
    /// Half of the calls that a provider may have in flight in all.
    static let perApp = 128

    private let counts: Mutex<[String: Int]> = Mutex([:])

    /// Acquires a slot; `false` when all are in use.
    func acquire(_ app: String) -> Bool {
        counts.withLock { counts in
            let count = counts[app] ?? 0
            guard count < Self.perApp else { return false }
            counts[app] = count + 1
            return true
        }
    }

    /// Releases an acquired slot.
    func release(_ app: String) {
        counts.withLock { counts in
            guard let count = counts[app] else { return }
            counts[app] = count > 1 ? count - 1 : nil
        }
    }
}
