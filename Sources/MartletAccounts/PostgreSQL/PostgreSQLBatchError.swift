internal import MartletCore

/// The error of a batch of statements.
enum PostgreSQLBatchError: Error {
    /// A statement failed with this SQLSTATE.
    case statementFailed(state: String)
    /// The connection was lost.
    case connectionLost

    /// How to recover from the error.
    enum Recovery {
        /// Retry immediately: the transaction conflicted with another one.
        case retry
        /// Close the connection and retry on another one.
        case reconnect
        /// Fail the call.
        case fail(AccountError)
        /// Fail the call and close the connection.
        case failAndReconnect(AccountError)
    }

    var isConnectionLost: Bool {
        if case .connectionLost = self { true } else { false }
    }

    var recovery: Recovery {
        guard case .statementFailed(let state) = self else { return .reconnect }
        switch state {
        // serialization_failure, deadlock_detected, unique_violation, foreign_key_violation
        case "40001", "40P01", "23505", "23503": return .retry
        // Prepared statements of this session are missing or outdated.
        case "26000", "0A000", "42P05": return .reconnect
        // The server has become a standby; the next connection may reach the primary.
        case "25006": return .failAndReconnect(.unavailable(.accountsReadOnly, "PostgreSQL is read-only"))
        case "57014": return .fail(.timeout)
        case "55P03": return .fail(.postgreSQLBusy)
        case "53100": return .fail(.unavailable(.accountsFull, "PostgreSQL has no disk space left"))
        default: break
        }
        // Connection exceptions, and shutdowns by the administrator or after a crash.
        if state.hasPrefix("08") || state.hasPrefix("57P") { return .reconnect }
        // The server's message may contain data; the code does not.
        return .fail(.unavailable(.accountsFailed, "PostgreSQL statement failed (SQLSTATE \(state))"))
    }
}

extension AccountError {
    static let postgreSQLBusy = unavailable(.accountsBusy, "timed out waiting for locks")
    static let connectionLost = unavailable(
        .accountsConnectionLost, "PostgreSQL connection lost; the outcome of the change is unknown")
    static let settingsRejected = unavailable(
        .accountsConnectFailed, "PostgreSQL rejected the session settings")
    static let connectTimeout = unavailable(
        .accountsConnectFailed, "PostgreSQL connection timed out")

    static func notConnected(_ reason: AccountError?) -> AccountError {
        guard let reason else { return unavailable(.accountsNotConnected, "not connected to PostgreSQL") }
        return unavailable(.accountsNotConnected, "not connected to PostgreSQL: \(reason.message)")
    }
}
