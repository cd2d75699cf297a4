package import MartletCore

/// How the account store stands: for readiness and metrics.
package struct AccountHealth: Sendable {
    /// Whether it can be asked.
    package enum State: String, Sendable, CaseIterable {
        /// It has not been opened, or the first connection is being made.
        case starting
        case ready
        /// The last attempt failed; the next call, or the next connection, tries again.
        case unavailable
        case stopped
    }

    package var state: State
    /// Why it is unavailable, or was last.
    package var code: ErrorCode?
    /// The same in words, without a secret and without personal data.
    package var detail = ""
    /// Calls, whatever came of them.
    package var calls = 0
    /// Calls that ended as `unavailable`, by code.
    package var failures: [ErrorCode: Int] = [:]
    /// Connections made after the first ones; always 0 for SQLite.
    package var reconnects = 0

    package init(state: State) { self.state = state }
}
