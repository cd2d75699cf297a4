internal import MartletCore

/// Why a batch came to nothing.
enum PostgreSQLFailure: Error {
    /// The server refused a statement; the five characters of its SQLSTATE.
    case refused(state: String)
    /// The connection is gone, and with it whatever was under way.
    case lost

    /// What to do about it.
    enum Remedy {
        /// The transaction met another one: from the start, at once.
        case retry
        /// The connection is of no use; from the start on another one.
        case reconnect
        /// The call fails.
        case fail(AccountError)
        /// The call fails, and the connection is of no use.
        case failAndReconnect(AccountError)
    }

    var isLoss: Bool {
        if case .lost = self { true } else { false }
    }

    var remedy: Remedy {
        guard case .refused(let state) = self else { return .reconnect }
        switch state {
        // serialization_failure, deadlock_detected, unique_violation, foreign_key_violation
        case "40001", "40P01", "23505", "23503": return .retry
        // The statements that this session had prepared are gone or out of date.
        case "26000", "0A000", "42P05": return .reconnect
        // A server that has become a standby: the next connection may find the one that writes.
        case "25006": return .failAndReconnect(.unavailable(.accountsReadOnly, "PostgreSQL takes no writes"))
        case "57014": return .fail(.timeout)
        case "55P03": return .fail(.postgreSQLBusy)
        case "53100": return .fail(.unavailable(.accountsFull, "PostgreSQL has no room left"))
        default: break
        }
        // Connection exceptions, and shutdowns by the administrator or after a crash.
        if state.hasPrefix("08") || state.hasPrefix("57P") { return .reconnect }
        // The server's words may hold data; its code does not.
        return .fail(.unavailable(.accountsFailed, "PostgreSQL refused a statement (SQLSTATE \(state))"))
    }
}

extension AccountError {
    static let postgreSQLBusy = unavailable(.accountsBusy, "others hold what the call needs for too long")
    static let connectionLost = unavailable(
        .accountsConnectionLost, "the connection to PostgreSQL ended; whether the change was made is unknown")
    static let settingsRefused = unavailable(
        .accountsConnectFailed, "PostgreSQL refused the settings of a session")
    static let connectTimeout = unavailable(
        .accountsConnectFailed, "PostgreSQL did not answer a new connection in time")

    static func notConnected(_ reason: AccountError?) -> AccountError {
        guard let reason else { return unavailable(.accountsNotConnected, "there is no connection to PostgreSQL") }
        return unavailable(.accountsNotConnected, "there is no connection to PostgreSQL: \(reason.message)")
    }
}
