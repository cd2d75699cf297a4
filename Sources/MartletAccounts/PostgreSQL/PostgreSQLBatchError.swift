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
        /// The server takes no writes: close its connections and retry on another server, or fail with this error.
        case leave(AccountError)
    }

    var isConnectionLost: Bool {
        if case .connectionLost = self { true } else { false }
    }

    /// Whether a commit that was sent may have succeeded.
    var leavesCommitUnknown: Bool {
        guard case .statementFailed(let state) = self else { return true }
        return state == "40003" || state.hasPrefix("08") || state.hasPrefix("57P")
    }

    var recovery: Recovery {
        guard case .statementFailed(let state) = self else { return .reconnect }
        switch state {
        // serialization_failure, deadlock_detected, unique_violation, foreign_key_violation
        case "40001", "40P01", "23505", "23503": return .retry
        // The server has become a standby, possibly behind a pooler; nothing was written.
        case "25006": return .leave(.readOnlyServer)
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
    static let roleUnknown = unavailable(
        .accountsConnectFailed, "PostgreSQL does not say whether it is the primary")
    static let standby = unavailable(.accountsReadOnly, "PostgreSQL is a standby")
    static let readOnlyServer = unavailable(.accountsReadOnly, "PostgreSQL is read-only")
    static let oldPrimary = unavailable(
        .accountsOldPrimary, "PostgreSQL has an older timeline than a server seen before")
    static let migrating = unavailable(
        .accountsMigrating, "account store schema is being migrated, or the migration waits for locks")
    static let connectTimeout = unavailable(
        .accountsConnectFailed, "PostgreSQL connection timed out")

    static func notConnected(_ reason: AccountError?) -> AccountError {
        guard let reason else { return unavailable(.accountsNotConnected, "not connected to PostgreSQL") }
        let isTelling: [ErrorCode] = [.accountsReadOnly, .accountsOldPrimary, .accountsMigrating]
        if isTelling.contains(reason.code) { return reason }
        return unavailable(.accountsNotConnected, "not connected to PostgreSQL: \(reason.message)")
    }
}
