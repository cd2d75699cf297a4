package import MartletCore
package import MartletIO

/// The settings of `accounts:` for PostgreSQL.
package struct AccountPool: Sendable, Equatable {
    /// The number of connections of the process.
    package var connections = 8
    /// The timeout of a statement and of a call, including the wait for a connection.
    package var statementTimeout = Duration.seconds(2)

    package init() {}
}

/// Creates account stores.
package enum Accounts {
    /// Creates the store of a URL; `start()` opens it.
    /// - Parameters:
    ///   - url: the database.
    ///   - pool: the connections to PostgreSQL.
    ///   - clock: for deadlines, and for the times of changes that callers do not pass.
    ///   - logger: logs outages, and identities that match two accounts.
    ///   - loop: the service loop that runs the connections to PostgreSQL.
    ///   - resolver: resolves the names of PostgreSQL servers.
    ///   - readOnly: for commands that only read: nothing is created or changed, including the schema. Starting fails
    ///     with `accounts.schema_missing` or `accounts.schema_outdated` if the tables are missing or outdated.
    /// - Throws: `accounts.bad_url`.
    package static func open(
        _ url: AccountURL, pool: AccountPool = AccountPool(), clock: Clock, logger: Logger, loop: ServiceLoop,
        resolver: Resolver, readOnly: Bool = false
    ) throws(AccountError) -> AccountStore {
        let engine: any AccountEngine
        switch url {
        case .sqlite(let path):
            var options = SQLiteOptions()
            options.isReadOnly = readOnly
            engine = SQLiteEngine(path: path, options: options, schema: Schema(.sqlite), clock: clock, logger: logger)
        case .postgresql(let text):
            var options = PostgreSQLOptions()
            options.isReadOnly = readOnly
            options.connections = readOnly ? 1 : pool.connections
            options.callTimeout = pool.statementTimeout
            options.lockTimeout = min(options.lockTimeout, pool.statementTimeout * 3 / 4)
            engine = PostgreSQLEngine(
                try PostgreSQLTarget(text), options: options, schema: Schema(.postgresql), loop: loop,
                resolver: resolver, clock: clock, logger: logger)
        }
        return AccountStore(engine, clock: clock, logger: logger)
    }
}
