/// One statement with its values.
struct Query: Sendable {
    enum Value: Sendable {
        case text(String)
        case integer(Int64)
    }

    let statement: Statement
    let values: [Value]

    init(_ statement: Statement, _ values: Value...) {
        self.statement = statement
        self.values = values
    }
}

/// One row of an answer, every column as text.
struct Row: Sendable {
    let columns: [String?]

    /// A column that is never null.
    /// - Throws: `accounts.corrupt` when it is, or is not there.
    func text(_ index: Int) throws(AccountError) -> String {
        guard columns.indices.contains(index), let text = columns[index] else { throw .corrupt }
        return text
    }

    /// A column that is a whole number or null.
    func optionalInteger(_ index: Int) throws(AccountError) -> Int64? {
        guard columns.indices.contains(index) else { throw .corrupt }
        return columns[index] == nil ? nil : try integer(index)
    }

    /// A column that is a whole number.
    func integer(_ index: Int) throws(AccountError) -> Int64 {
        guard let number = Int64(try text(index)) else { throw .corrupt }
        return number
    }
}

/// The rows of several queries, in their order.
struct Answers: Sendable {
    let rows: [[Row]]

    /// The rows of one query; none for one that was not asked.
    subscript(index: Int) -> [Row] { rows.indices.contains(index) ? rows[index] : [] }
}

/// A call that reads: its queries, and what their answers mean.
struct Reading<Value: Sendable>: Sendable {
    let queries: [Query]
    let finish: @Sendable (Answers) throws(AccountError) -> Value
}

/// A call that writes, inside one transaction: what to ask next, and what the answers lead to.
///
/// Rules are written as steps so that both databases run the same ones: SQLite on a thread, PostgreSQL by messages. What
/// is thrown takes everything back. A step may be run again from the start after a collision with somebody else.
enum Step<Value: Sendable>: Sendable {
    /// Asks, then goes on.
    case run([Query], @Sendable (Answers) throws(AccountError) -> Step<Value>)
    /// Asks for the last time and commits.
    ///
    /// What `finish` throws comes after the commit: it is an answer, not a way back.
    case commit([Query], finish: @Sendable (Answers) throws(AccountError) -> Value)

    /// Has nothing more to ask.
    static func end(_ value: Value) -> Step { .commit([]) { _ in value } }
}
