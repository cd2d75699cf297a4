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
    /// - Throws: `accounts.bad_url`.
    package static func open(
        _ url: AccountURL, clock: Clock, logger: Logger, loop: EventLoop, resolver: Resolver
    ) throws(AccountError) -> any AccountStoring {
        let engine: any AccountEngine
        switch url {
        case .sqlite(let path):
            engine = SQLiteEngine(
                path: path, options: SQLiteOptions(), schema: Schema(.sqlite), clock: clock, logger: logger)
        case .postgresql(let text):
            engine = PostgreSQLEngine(
                try PostgreSQLTarget(text), options: PostgreSQLOptions(), schema: Schema(.postgresql), loop: loop,
                resolver: resolver, clock: clock, logger: logger)
        }
        return AccountStore(engine, clock: clock, logger: logger)
    }
}
