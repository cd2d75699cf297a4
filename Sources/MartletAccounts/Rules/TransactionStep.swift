internal import MartletCore
internal import MartletJSON

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

    /// A time in seconds.
    func time(_ index: Int) throws(AccountError) -> UnixTime { UnixTime(seconds: try integer(index)) }

    func optionalTime(_ index: Int) throws(AccountError) -> UnixTime? {
        try optionalInteger(index).map { UnixTime(seconds: $0) }
    }

    /// The state of an identity; `nil` if nothing is known.
    func state(_ index: Int) throws(AccountError) -> IdentityState? {
        try optionalInteger(index).flatMap(IdentityState.init)
    }

    /// An object, such as claims.
    func object(_ index: Int) throws(AccountError) -> JSONObject { try StoredClaims.read(try text(index)) }

    /// An object; empty where there is none.
    func optionalObject(_ index: Int) throws(AccountError) -> JSONObject {
        try optionalText(index).map(StoredClaims.read) ?? [:]
    }

    /// The columns `claims`, `rule_claims` and `profile_claims`.
    func layers(_ operators: Int, _ rules: Int, _ profile: Int) throws(AccountError) -> ClaimLayers {
        ClaimLayers(
            operators: try optionalObject(operators), rules: try optionalObject(rules),
            profile: try optionalObject(profile))
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
