internal import MartletCore

/// The error of a batch of statements.
enum PostgreSQLBatchError: Error {
    /// A statement failed with this SQLSTATE, and the server's message.
    case statementFailed(state: String, message: String = "")
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

    var isConnectionLost: Bool { if case .connectionLost = self { true } else { false } }

    /// Whether a commit that was sent may have succeeded.
    var leavesCommitUnknown: Bool {
        guard case .statementFailed(let state, _) = self else { return true }
        return state == "40003" || state.hasPrefix("08") || state.hasPrefix("57P")
    }

    var recovery: Recovery {
        guard case .statementFailed(let state, _) = self else { return .reconnect }
        switch state {
        // serialization_failure, deadlock_detected, unique_violation, foreign_key_violation
        case "40001", "40P01", "23505", "23503": return .retry
        // The server has become a standby, possibly behind a pooler; nothing was written.
        case "25006": return .leave(.readOnlyServer)
        case "57014": return .fail(.timeout)
        case "55P03": return .fail(.postgreSQLBusy)
        case "53100": return .fail(.unavailable(.accountsFull, "PostgreSQL has no disk space left\(detail)"))
        default: break
        }
        // Connection exceptions, and shutdowns by the administrator or after a crash.
        if state.hasPrefix("08") || state.hasPrefix("57P") { return .reconnect }
        return .fail(.unavailable(.accountsFailed, "PostgreSQL statement failed (SQLSTATE \(state))\(detail)"))
    }

    /// What the server says, for operators; `nil` where its message may contain data, and for what ends by itself.
    ///
    /// Messages about names and rights (class 42), resources (53) and operators' interventions (57) have none.
    var serverMessage: String? {
        guard case .statementFailed(let state, let message) = self, !message.isEmpty, state != "57014",
            ["42", "53", "57"].contains(state.prefix(2))
        else { return nil }
        let line = message.prefix { !$0.isNewline }.prefix(300)
        return Self.hint(state, message).map { "\(line): \($0)" } ?? String(line)
    }

    private var detail: String { serverMessage.map { ": \($0)" } ?? "" }

    private static func hint(_ state: String, _ message: String) -> String? {
        switch state {
        // insufficient_privilege
        case "42501" where message.contains("for schema"): missingCreateHint
        case "42501": "the tables have another owner: the user needs all rights on them"
        // undefined_table, undefined_column, duplicate_table, duplicate_column, duplicate_object, datatype_mismatch,
        // undefined_function (for a type), wrong_object_type, invalid_column_reference
        case "42P01", "42703", "42P07", "42701", "42710", "42804", "42883", "42809", "42P10":
            "the tables are not Martlet's, or were changed: it needs a database or a schema of its own"
        default: nil
        }
    }

    /// From version 15 on, only the owner of a database may create tables in it.
    static let missingCreateHint =
        "the user needs CREATE on the schema, so make it the owner of the database, or GRANT CREATE ON SCHEMA public TO it"
}

extension AccountError {
    static let postgreSQLBusy = unavailable(.accountsBusy, "timed out waiting for locks")
    static let connectionLost = unavailable(
        .accountsConnectionLost, "PostgreSQL connection lost; the outcome of the change is unknown")
    static let roleUnknown = unavailable(.accountsConnectFailed, "PostgreSQL does not say whether it is the primary")
    static let standby = unavailable(.accountsReadOnly, "PostgreSQL is a standby")
    static let schemaNotCreatable = unavailable(
        .accountsFailed,
        "account store has no tables yet, and they cannot be created: \(PostgreSQLBatchError.missingCreateHint)")
    static let readOnlyServer = unavailable(.accountsReadOnly, "PostgreSQL is read-only")
    static let oldPrimary = unavailable(
        .accountsOldPrimary, "PostgreSQL has an older timeline than a server seen before")
    static let migrating = unavailable(
        .accountsMigrating, "account store schema is being migrated, or the migration waits for locks")
    static let connectTimeout = unavailable(.accountsConnectFailed, "PostgreSQL connection timed out")

    static func notConnected(_ reason: AccountError?) -> AccountError {
        guard let reason else { return unavailable(.accountsNotConnected, "not connected to PostgreSQL") }
        let isTelling: [ErrorCode] = [.accountsReadOnly, .accountsOldPrimary, .accountsMigrating]
        if isTelling.contains(reason.code) { return reason }
        return unavailable(.accountsNotConnected, "not connected to PostgreSQL: \(reason.message)")
    }
}
