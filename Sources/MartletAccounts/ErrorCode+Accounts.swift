package import MartletCore

extension ErrorCode {
    /// The URL under `accounts:` is malformed.
    package static let accountsBadURL: ErrorCode = "accounts.bad_url"
    /// A text that cannot be a subject or a name: empty, too long, or with a NUL.
    package static let accountsTextInvalid: ErrorCode = "accounts.text_invalid"

    /// The identity is bound to another account.
    package static let accountsBoundElsewhere: ErrorCode = "accounts.bound_elsewhere"
    /// The account has another identity of the same provider.
    package static let accountsProviderTaken: ErrorCode = "accounts.provider_taken"
    /// The account would be left without an identity.
    package static let accountsLastIdentity: ErrorCode = "accounts.last_identity"
    /// There is no account of that subject.
    package static let accountsUnknownAccount: ErrorCode = "accounts.unknown_account"
    /// The account has no identity of that provider.
    package static let accountsNotLinked: ErrorCode = "accounts.not_linked"
    /// There is no user of that name.
    package static let accountsUnknownUser: ErrorCode = "accounts.unknown_user"
    /// There is a user of that name already.
    package static let accountsDuplicateUser: ErrorCode = "accounts.duplicate_user"

    /// The store has not been started.
    package static let accountsNotStarted: ErrorCode = "accounts.not_started"
    /// The store has been shut down.
    package static let accountsStopped: ErrorCode = "accounts.stopped"
    /// Too many calls wait.
    package static let accountsOverloaded: ErrorCode = "accounts.overloaded"
    /// The call was not done by its deadline.
    package static let accountsTimeout: ErrorCode = "accounts.timeout"
    /// The database was made by a newer version.
    package static let accountsSchemaNewer: ErrorCode = "accounts.schema_newer"
    /// The database or its tables are not there yet, and the store was opened for reading only.
    package static let accountsSchemaMissing: ErrorCode = "accounts.schema_missing"
    /// The tables are of an older version, and the store was opened for reading only.
    package static let accountsSchemaOutdated: ErrorCode = "accounts.schema_outdated"
    /// The schema could not be brought up to date.
    package static let accountsSchemaFailed: ErrorCode = "accounts.schema_failed"
    /// The database holds what it cannot hold.
    package static let accountsCorrupt: ErrorCode = "accounts.corrupt"
    /// The database refused for a reason of its own.
    package static let accountsFailed: ErrorCode = "accounts.failed"
    /// Others hold what the call needs, for longer than it waits.
    package static let accountsBusy: ErrorCode = "accounts.busy"

    /// The SQLite file cannot be opened or made.
    package static let accountsCannotOpen: ErrorCode = "accounts.cannot_open"
    /// The SQLite file, its folder or the PostgreSQL server takes no writes.
    package static let accountsReadOnly: ErrorCode = "accounts.read_only"
    /// There is no room left to write.
    package static let accountsFull: ErrorCode = "accounts.full"
    /// Reading or writing the SQLite file failed.
    package static let accountsInputOutput: ErrorCode = "accounts.io"

    /// The host name of the PostgreSQL server has no address.
    package static let accountsNameUnknown: ErrorCode = "accounts.name_unknown"
    /// No connection to PostgreSQL could be made.
    package static let accountsConnectFailed: ErrorCode = "accounts.connect_failed"
    /// There is no connection to PostgreSQL.
    package static let accountsNotConnected: ErrorCode = "accounts.not_connected"
    /// The connection ended before the answer: whether the call was done is unknown.
    package static let accountsConnectionLost: ErrorCode = "accounts.connection_lost"
}

extension AccountError {
    static func unavailable(_ code: ErrorCode, _ message: String) -> AccountError {
        AccountError(code, .unavailable, message)
    }

    static let notStarted = unavailable(.accountsNotStarted, "the account store has not been started")
    static let stopped = unavailable(.accountsStopped, "the account store has been shut down")
    static let overloaded = unavailable(.accountsOverloaded, "too many calls wait for the account store")
    static let timeout = unavailable(.accountsTimeout, "the account store did not answer in time")
    static let corrupt = unavailable(.accountsCorrupt, "the account store holds what it cannot hold")
    static let textInvalid = unavailable(
        .accountsTextInvalid, "a subject or name is empty, too long or holds a NUL, or there are too many of them")
    static let schemaNewer = unavailable(
        .accountsSchemaNewer, "the account store was made by a newer version of Martlet")

    static let schemaMissing = unavailable(
        .accountsSchemaMissing, "the account store has no tables yet; the gateway creates them when it starts")
    static let schemaOutdated = unavailable(
        .accountsSchemaOutdated,
        "the account store's tables are of an older version; the gateway updates them when it starts")

    static let boundElsewhere = AccountError(
        .accountsBoundElsewhere, .identityTaken, "the identity is bound to another account")
    static let providerTaken = AccountError(
        .accountsProviderTaken, .providerAlreadyLinked, "the account has another identity of that provider")
    static let lastIdentity = AccountError(
        .accountsLastIdentity, .lastIdentity, "the account would be left without an identity")
    static let unknownAccount = AccountError(.accountsUnknownAccount, .notFound, "there is no such account")
    static let notLinked = AccountError(
        .accountsNotLinked, .notFound, "the account has no identity of that provider")
    static let unknownUser = AccountError(.accountsUnknownUser, .notFound, "there is no such user")
    static let duplicateUser = AccountError(.accountsDuplicateUser, .duplicateUser, "there is such a user already")

    /// The same for callers who know the shared store's errors only.
    var asStoreError: StoreError { StoreError(code: code, message: message) }
}
