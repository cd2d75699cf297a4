/// A database that can run the rules.
protocol AccountEngine: Sendable {
    var dialect: Dialect { get }
    var health: AccountHealth { get }

    /// Opens it and brings its schema up to date.
    func start() async throws(AccountError)
    func shutdown() async
    /// Asks once, outside any transaction.
    func read<Value>(_ reading: Reading<Value>) async throws(AccountError) -> Value
    /// Runs the steps in one transaction.
    func change<Value>(_ first: Step<Value>) async throws(AccountError) -> Value
}

/// Where the two databases want other words.
enum Dialect: Sendable {
    case sqlite
    case postgresql
}
