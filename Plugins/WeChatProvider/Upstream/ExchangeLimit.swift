private import Synchronization

/// How many codes of one application may be on their way to WeChat: a flood for one leaves room for the others.
final class ExchangeLimit: Sendable {
    /// Half of what a provider may have under way in all.
    static let perApp = 128

    private let counts: Mutex<[String: Int]> = Mutex([:])

    /// Counts one in; `false` when there are as many as there may be.
    func enter(_ app: String) -> Bool {
        counts.withLock { counts in
            let count = counts[app] ?? 0
            guard count < Self.perApp else { return false }
            counts[app] = count + 1
            return true
        }
    }

    /// Counts one out that was counted in.
    func leave(_ app: String) {
        counts.withLock { counts in
            guard let count = counts[app] else { return }
            counts[app] = count > 1 ? count - 1 : nil
        }
    }
}
