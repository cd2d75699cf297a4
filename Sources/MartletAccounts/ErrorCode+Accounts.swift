package import MartletCore

extension ErrorCode {
    /// The URL in `accounts:` is malformed.
    package static let accountsBadURL: ErrorCode = "accounts.bad_url"
    /// A subject or name is empty, too long or contains NUL.
    package static let accountsTextInvalid: ErrorCode = "accounts.text_invalid"

    /// The identity is bound to another account.
    package static let accountsBoundElsewhere: ErrorCode = "accounts.bound_elsewhere"
    /// The account was reclaimed by the owner of its address since the session began.
    package static let accountsReclaimed: ErrorCode = "accounts.reclaimed"
    /// The account already has another identity of the provider.
    package static let accountsProviderTaken: ErrorCode = "accounts.provider_taken"
    /// The last identity of an account cannot be removed.
    package static let accountsLastIdentity: ErrorCode = "accounts.last_identity"
    /// No account with this subject exists.
    package static let accountsUnknownAccount: ErrorCode = "accounts.unknown_account"
    /// The account has no identity of the provider.
    package static let accountsNotLinked: ErrorCode = "accounts.not_linked"
    /// No user with this name exists.
    package static let accountsUnknownUser: ErrorCode = "accounts.unknown_user"
    /// A user with this name already exists.
    package static let accountsDuplicateUser: ErrorCode = "accounts.duplicate_user"

    /// The name of a claim is malformed.
    package static let claimsNameInvalid: ErrorCode = "claims.name_invalid"
    /// The name belongs to a claim that the checks of providers rely on.
    package static let claimsNameReserved: ErrorCode = "claims.name_reserved"
    /// The value is neither a text, a number, a boolean nor a list of them, or is too long.
    package static let claimsValueInvalid: ErrorCode = "claims.value_invalid"
    /// The account has too many claims, or they are too large together.
    package static let claimsTooLarge: ErrorCode = "claims.too_large"

    /// The store has not been started.
    package static let accountsNotStarted: ErrorCode = "accounts.not_started"
    /// The store has been shut down.
    package static let accountsStopped: ErrorCode = "accounts.stopped"
    /// Too many calls are waiting.
    package static let accountsSaturated: ErrorCode = "accounts.saturated"
    /// The call timed out.
    package static let accountsTimeout: ErrorCode = "accounts.timeout"
    /// The database has the schema of a newer version.
    package static let accountsSchemaNewer: ErrorCode = "accounts.schema_newer"
    /// The database or its tables do not exist yet, and the store was opened read-only.
    package static let accountsSchemaMissing: ErrorCode = "accounts.schema_missing"
    /// The tables have an older schema, and the store was opened read-only.
    package static let accountsSchemaOutdated: ErrorCode = "accounts.schema_outdated"
    /// The schema is being migrated, or the migration waits for locks.
    package static let accountsMigrating: ErrorCode = "accounts.migrating"
    /// The database contains invalid data.
    package static let accountsCorrupt: ErrorCode = "accounts.corrupt"
    /// Any other database error.
    package static let accountsFailed: ErrorCode = "accounts.failed"
    /// Locks of other transactions were held for too long.
    package static let accountsBusy: ErrorCode = "accounts.busy"

    /// The SQLite file cannot be opened or created.
    package static let accountsCannotOpen: ErrorCode = "accounts.cannot_open"
    /// The SQLite file, its folder or the PostgreSQL server is read-only.
    package static let accountsReadOnly: ErrorCode = "accounts.read_only"
    /// The PostgreSQL server has a lower timeline than one seen before: it was replaced.
    package static let accountsOldPrimary: ErrorCode = "accounts.old_primary"
    /// The accounts of the SQLite file were moved with `martlet accounts copy --final`.
    package static let accountsMoved: ErrorCode = "accounts.moved"
    /// The target of a copy has accounts of its own.
    package static let accountsCopyConflict: ErrorCode = "accounts.copy_conflict"
    /// A final copy to the target was completed before.
    package static let accountsCopyDone: ErrorCode = "accounts.copy_done"
    /// Both databases differ after a copy.
    package static let accountsCopyDiffers: ErrorCode = "accounts.copy_differs"
    /// No disk space is left.
    package static let accountsFull: ErrorCode = "accounts.full"
    /// Reading or writing the SQLite file failed.
    package static let accountsInputOutput: ErrorCode = "accounts.io"

    /// The host name of the PostgreSQL server could not be resolved.
    package static let accountsNameUnknown: ErrorCode = "accounts.name_unknown"
    /// The connection to PostgreSQL could not be established.
    package static let accountsConnectFailed: ErrorCode = "accounts.connect_failed"
    /// There is no connection to PostgreSQL.
    package static let accountsNotConnected: ErrorCode = "accounts.not_connected"
    /// The identity was revoked at the issuer, and the credential was issued before that.
    package static let identityRevoked: ErrorCode = "identity.revoked"
    /// The identity was unlinked, or its account deleted, and the credential was issued before that.
    package static let identityDeparted: ErrorCode = "identity.departed"
    /// The user's account at the issuer is gone.
    package static let identityDeleted: ErrorCode = "identity.deleted"

    /// The connection ended before the response, so the outcome of the call is unknown.
    package static let accountsConnectionLost: ErrorCode = "accounts.connection_lost"
}

extension AccountError {
    static func unavailable(_ code: ErrorCode, _ message: String) -> AccountError {
        AccountError(code, .unavailable, message)
    }

    static let notStarted = unavailable(.accountsNotStarted, "account store not started")
    static let stopped = unavailable(.accountsStopped, "account store stopped")
    static let saturated = unavailable(.accountsSaturated, "too many calls waiting for the account store")
    static let timeout = unavailable(.accountsTimeout, "account store timed out")
    static let corrupt = unavailable(.accountsCorrupt, "account store contains invalid data")
    static let textInvalid = unavailable(
        .accountsTextInvalid, "subject or name empty, too long or contains NUL, or too many subjects")
    static let schemaNewer = unavailable(
        .accountsSchemaNewer, "account store schema belongs to a newer version of Martlet")

    static let schemaMissing = unavailable(
        .accountsSchemaMissing, "account store has no tables yet; the gateway creates them when it starts")
    static let schemaOutdated = unavailable(
        .accountsSchemaOutdated,
        "account store schema is outdated; the gateway migrates it when it starts")

    static let boundElsewhere = AccountError(
        .accountsBoundElsewhere, .identityTaken, "the identity is bound to another account")
    static let providerTaken = AccountError(
        .accountsProviderTaken, .providerAlreadyLinked, "the account already has another identity of the provider")
    static let lastIdentity = AccountError(
        .accountsLastIdentity, .lastIdentity, "the last identity of an account cannot be removed")
    static let departed = AccountError(
        .identityDeparted, .outdated, "the credential is older than the end of the identity's account")
    static let reclaimed = AccountError(
        .accountsReclaimed, .outdated, "the account was reclaimed since the session began")
    static let unknownAccount = AccountError(.accountsUnknownAccount, .notFound, "account not found")
    static let notLinked = AccountError(.accountsNotLinked, .notFound, "the account has no identity of the provider")
    static let unknownUser = AccountError(.accountsUnknownUser, .notFound, "user not found")
    static let duplicateUser = AccountError(.accountsDuplicateUser, .duplicateUser, "user already exists")
}
