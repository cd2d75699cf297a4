/// A database engine that runs the account queries.
protocol AccountEngine: Sendable {
    var dialect: Dialect { get }
    var health: AccountHealth { get }

    /// Opens the database and migrates its schema.
    func start() async throws(AccountError)
    func shutdown() async
    /// Runs read queries outside a transaction.
    func read<Value>(_ reading: ReadOperation<Value>) async throws(AccountError) -> Value
    /// Runs the steps in one transaction.
    func transact<Value>(_ first: TransactionStep<Value>) async throws(AccountError) -> Value
}

/// The SQL dialect of a database.
enum Dialect: Sendable {
    case sqlite
    case postgresql
}
