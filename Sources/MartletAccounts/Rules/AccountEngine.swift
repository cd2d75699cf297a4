internal import MartletCore
internal import MartletTracing

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

extension AccountEngine {
    /// Runs one read query, and decodes its rows.
    func rows<Value: Sendable>(
        _ query: Query, _ decode: @escaping @Sendable (Row) throws(AccountError) -> Value
    ) async throws(AccountError) -> [Value] {
        try await read(ReadOperation(queries: [query]) { results throws(AccountError) in try results[0].map(decode) })
    }

    /// Runs queries in one transaction, whose results say nothing.
    func commit(_ queries: [Query]) async throws(AccountError) {
        try await transact(TransactionStep<Void>.commit(queries) { _ in })
    }

    /// Runs one query in a transaction; `false` if no row has matched.
    func change(_ query: Query) async throws(AccountError) -> Bool {
        try await transact(.commit([query]) { results in !results[0].isEmpty })
    }
}

extension StoreError {
    /// The result of a call of the account store for those who expect `StoreError`.
    static func mapping<Value>(
        _ call: @autoclosure () async throws(AccountError) -> Value
    ) async throws(StoreError) -> Value {
        do { return try await call() } catch { throw StoreError(error) }
    }

    init(_ error: AccountError) { self.init(code: error.code, message: error.message) }
}

/// The SQL dialect of a database.
enum Dialect: Sendable {
    case sqlite
    case postgresql
}

/// Calls of the account store in the traces of the requests that they are for.
enum AccountTrace {
    /// Records a call; its queries and their values stay out of the trace.
    /// - Parameter system: as OpenTelemetry names the database.
    static func span<Value>(
        of system: String, _ call: () async throws(AccountError) -> Value
    ) async throws(AccountError) -> Value {
        guard TraceScope.isSampled else { return try await call() }
        return try await TraceScope.span("accounts", .client, [SpanAttribute("db.system.name", system)], call)
    }
}
