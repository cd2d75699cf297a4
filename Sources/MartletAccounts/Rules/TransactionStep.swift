/// One statement with its values.
struct Query: Sendable {
    enum Value: Sendable {
        case text(String)
        case integer(Int64)
    }

    let statement: Statement
    let values: [Value]

    init(_ statement: Statement, _ values: Value...) { self.init(statement, values) }

    init(_ statement: Statement, _ values: [Value]) {
        self.statement = statement
        self.values = values
    }
}

/// One row of a result, with every column as text.
struct Row: Sendable {
    let columns: [String?]

    /// A column that is never null.
    /// - Throws: `accounts.corrupt` if it is null or missing.
    func text(_ index: Int) throws(AccountError) -> String {
        guard columns.indices.contains(index), let text = columns[index] else { throw .corrupt }
        return text
    }

    /// A text column that may be null.
    func optionalText(_ index: Int) throws(AccountError) -> String? {
        guard columns.indices.contains(index) else { throw .corrupt }
        return columns[index]
    }

    /// An integer column that may be null.
    func optionalInteger(_ index: Int) throws(AccountError) -> Int64? {
        guard columns.indices.contains(index) else { throw .corrupt }
        return columns[index] == nil ? nil : try integer(index)
    }

    /// An integer column.
    func integer(_ index: Int) throws(AccountError) -> Int64 {
        guard let number = Int64(try text(index)) else { throw .corrupt }
        return number
    }
}

/// The rows of several queries, in order.
struct QueryResults: Sendable {
    let rows: [[Row]]

    /// The rows of one query; empty for an index out of range.
    subscript(index: Int) -> [Row] { rows.indices.contains(index) ? rows[index] : [] }
}

/// A read operation: its queries and a function that evaluates their results.
struct ReadOperation<Value: Sendable>: Sendable {
    let queries: [Query]
    let finish: @Sendable (QueryResults) throws(AccountError) -> Value
}

/// One step of a transaction: the next queries and a function that evaluates their results.
///
/// Operations are written as steps so that both databases run the same ones: SQLite synchronously on a thread,
/// PostgreSQL asynchronously. A thrown error rolls the transaction back. After a conflict with another transaction the
/// steps run again from the start.
enum TransactionStep<Value: Sendable>: Sendable {
    /// Runs queries and continues with another step.
    case run([Query], @Sendable (QueryResults) throws(AccountError) -> TransactionStep<Value>)
    /// Runs the last queries and commits; an error thrown by `finish` does not roll back.
    case commit([Query], finish: @Sendable (QueryResults) throws(AccountError) -> Value)

    var queries: [Query] {
        switch self {
        case .run(let queries, _), .commit(let queries, _): queries
        }
    }

    /// Commits without further queries.
    static func end(_ value: Value) -> TransactionStep { .commit([]) { _ in value } }
}
