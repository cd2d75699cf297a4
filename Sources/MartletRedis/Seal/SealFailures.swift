internal import MartletCore

/// What a sealed value is; the seal is bound to it, and metrics and logs show it.
package enum SealedKind: String, Sendable, CaseIterable {
    case session, claims, message, key, throttle, location, nonce, code, browser, response, change, other
}

/// Counts what does not verify, or cannot be read, and logs it at most once a second.
package final class SealFailures: Sendable {
    /// Why a value does not verify.
    package enum Reason: String, Sendable {
        /// It has no seal.
        case unsealed
        /// It was changed, moved to another key, made for another purpose, or made by someone without a key.
        case altered
        /// Its key is not among the configured ones.
        case keyUnknown = "unknown key"
        /// A later version sealed it, or it is cut off.
        case formUnknown = "unknown form"
        /// It has another type, is no number where one is expected, or is larger than anything that is stored.
        case malformed = "cannot be read"
        /// A message that is too old, or of the future.
        case untimely = "not of this time"
    }

    private struct State {
        var counts: [SealedKind: Int] = [:]
        var nextLine = MonotonicTime(nanoseconds: .min)
        /// How many were not logged since the last line.
        var unlogged = 0
    }

    private static let interval = Duration.seconds(1)

    private let clock: Clock
    private let logger: Logger
    private let state = Lock(State())

    init(clock: Clock, logger: Logger) {
        self.clock = clock
        self.logger = logger
    }

    /// The number of values that did not verify, for every kind.
    package var counts: [SealedKind: Int] {
        let counts = state.withLock { $0.counts }
        return Dictionary(uniqueKeysWithValues: SealedKind.allCases.map { ($0, counts[$0] ?? 0) })
    }

    /// - Parameter isAccepted: whether it is used all the same.
    package func record(_ kind: SealedKind, _ reason: Reason, isAccepted: Bool = false) {
        let now = clock.monotonicTime
        let unlogged: Int? = state.withLock { state in
            state.counts[kind, default: 0] &+= 1
            guard now >= state.nextLine else {
                state.unlogged &+= 1
                return nil
            }
            state.nextLine = now + Self.interval
            defer { state.unlogged = 0 }
            return state.unlogged
        }
        guard let unlogged else { return }
        logger.warning(
            "stored value does not verify", ("code", "store.bad_seal"), ("kind", kind.rawValue),
            ("reason", reason.rawValue), ("accepted", isAccepted ? "true" : "false"), ("unlogged", String(unlogged)))
    }
}
