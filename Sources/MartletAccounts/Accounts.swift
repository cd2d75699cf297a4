package import MartletCore
package import MartletIO

/// Makes account stores.
package enum Accounts {
    /// The store of a URL; nothing is opened before its `start()`.
    /// - Parameters:
    ///   - url: which database.
    ///   - clock: for deadlines, and for the times of changes that nobody else says.
    ///   - logger: hears about outages and about persons who are known twice.
    ///   - loop: the service loop, on which the connections to PostgreSQL live.
    ///   - resolver: looks up the names of PostgreSQL servers.
    ///   - readOnly: for commands that only look: nothing is made or changed, the schema included. Starting fails as
    ///     `accounts.schema_missing` or `accounts.schema_outdated` where the tables are not there yet or are older.
    /// - Throws: `accounts.bad_url`.
    package static func open(
        _ url: AccountURL, clock: Clock, logger: Logger, loop: EventLoop, resolver: Resolver, readOnly: Bool = false
    ) throws(AccountError) -> any AccountStoring {
        let engine: any AccountEngine
        switch url {
        case .sqlite(let path):
            var options = SQLiteOptions()
            options.isReadOnly = readOnly
            engine = SQLiteEngine(
                path: path, options: options, schema: Schema(.sqlite), clock: clock, logger: logger)
        case .postgresql(let text):
            var options = PostgreSQLOptions()
            options.isReadOnly = readOnly
            if readOnly { options.connections = 1 }
            engine = PostgreSQLEngine(
                try PostgreSQLTarget(text), options: options, schema: Schema(.postgresql), loop: loop,
                resolver: resolver, clock: clock, logger: logger)
        }
        return AccountStore(engine, clock: clock, logger: logger)
    }
}
