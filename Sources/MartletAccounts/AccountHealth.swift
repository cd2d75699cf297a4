package import MartletCore

/// The health of the account store, for readiness and metrics.
package struct AccountHealth: Sendable {
    /// The state of the store.
    package enum State: String, Sendable, CaseIterable {
        /// The store has not been opened, or the first connection is in progress.
        case starting
        case ready
        /// The store is there, and calls fail.
        case degraded
        /// The last attempt failed; the next call or connection tries again.
        case unavailable
        case stopped
    }

    package var state: State
    /// The error code of the current or last outage.
    package var code: ErrorCode?
    /// The error message, without secrets or personal data.
    package var detail = ""
    /// The calls, successful or not, and how long they took; a failure is one without a result.
    package var counts = CallCounts()
    /// The number of calls, successful or not.
    package var calls: Int { counts.calls }
    /// The number of calls that failed as `unavailable`, by error code.
    package var failures: [ErrorCode: Int] = [:]
    /// The number of reconnections; always 0 for SQLite.
    package var reconnects = 0

    package init(state: State) { self.state = state }
}
