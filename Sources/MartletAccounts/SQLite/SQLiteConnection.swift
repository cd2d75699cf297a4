internal import CSQLite
internal import Glibc
internal import MartletCore

/// One connection to the file; used by one thread at a time, which it may block.
@safe final class SQLiteConnection {
    /// Whether a connection reads or writes.
    enum Purpose {
        case writing
        case reading
    }

    private let database: OpaquePointer
    private var statements: [Statement: SQLiteStatement] = [:]
    /// Reads the mark of a file whose accounts were moved.
    private var mark: SQLiteStatement?
    /// The value of `user_version`, which is otherwise 0, of such a file.
    private static let movedVersion: Int64 = 0x4D6F_7665

    /// Opens an existing file.
    init(path: String, for purpose: Purpose, busyTimeout: Duration) throws(AccountError) {
        // A relative name such as ":memory:" has a special meaning for SQLite; a path does not.
        let name = path.utf8.first == UInt8(ascii: "/") ? path : "./" + path
        let access = purpose == .writing ? SQLITE_OPEN_READWRITE : SQLITE_OPEN_READONLY
        var database: OpaquePointer?
        let status = unsafe sqlite3_open_v2(
            name, &database, access | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_PRIVATECACHE, nil)
        guard status == SQLITE_OK, let database = unsafe database else {
            unsafe sqlite3_close_v2(database)
            throw .sqlite(status)
        }
        unsafe self.database = unsafe database
        unsafe sqlite3_extended_result_codes(database, 1)
        unsafe sqlite3_busy_timeout(database, Int32(clamping: busyTimeout.wholeMilliseconds))
        let hardened = unsafe martlet_sqlite_harden(database)
        guard hardened == SQLITE_OK else { throw .sqlite(hardened) }
        try configure(purpose)
    }

    deinit {
        statements.removeAll()
        mark = nil
        unsafe sqlite3_close_v2(database)
    }

    /// Creates an empty file that only its owner may read, unless it exists.
    ///
    /// Uses `mknod`, because closing a descriptor of the file would release the locks that this process holds on it.
    static func create(_ path: String) throws(AccountError) {
        guard unsafe mknod(path, S_IFREG | S_IRUSR | S_IWUSR, 0) != 0, errno != EEXIST else { return }
        let reason = unsafe String(cString: strerror(errno))
        throw .unavailable(.accountsCannotOpen, "cannot create SQLite file '\(path)': \(reason)")
    }

    /// Runs read queries outside a transaction.
    func read<Value>(_ reading: ReadOperation<Value>) throws(AccountError) -> Value {
        try reading.finish(try run(reading.queries))
    }

    /// Runs the steps in a transaction that holds the write lock.
    func transact<Value>(_ first: TransactionStep<Value>) throws(AccountError) -> Value {
        try execute("BEGIN IMMEDIATE")
        var step = first
        do throws(AccountError) {
            guard try !isMoved() else { throw .moved }
            while true {
                switch step {
                case .run(let queries, let next): step = try next(try run(queries))
                case .commit(let queries, let finish):
                    let results = try run(queries)
                    try execute("COMMIT")
                    return try finish(results)
                }
            }
        } catch {
            // After some errors SQLite has already rolled back.
            if unsafe sqlite3_get_autocommit(database) == 0 { try? execute("ROLLBACK") }
            throw error
        }
    }

    /// Makes all later transactions of all processes fail with `accounts.moved`; may be repeated.
    func markMoved() throws(AccountError) {
        guard try !isMoved() else { return }
        try transact(.commit([Query(.plain("PRAGMA user_version = \(Self.movedVersion)"))]) { _ in })
    }

    private func isMoved() throws(AccountError) -> Bool {
        let statement: SQLiteStatement
        if let mark {
            statement = mark
        } else {
            statement = try unsafe SQLiteStatement("PRAGMA user_version", in: database)
            mark = statement
        }
        guard let row = try statement.run([]).first else { throw .corrupt }
        return try row.integer(0) == Self.movedVersion
    }

    private func configure(_ purpose: Purpose) throws(AccountError) {
        try execute("PRAGMA foreign_keys = ON; PRAGMA cell_size_check = ON")
        guard purpose == .writing else { return try execute("PRAGMA query_only = ON") }
        guard unsafe sqlite3_db_readonly(database, "main") == 0 else {
            throw .unavailable(.accountsReadOnly, "SQLite file is read-only")
        }
        let mode = try run([Query(.plain("PRAGMA journal_mode = WAL"))])
        guard try mode[0].first?.text(0) == "wal" else {
            throw .unavailable(.accountsCannotOpen, "SQLite file cannot use a write-ahead log on its file system")
        }
        try execute("PRAGMA synchronous = FULL; PRAGMA journal_size_limit = 4194304")
    }

    private func run(_ queries: [Query]) throws(AccountError) -> QueryResults {
        var rows: [[Row]] = []
        for query in queries { rows.append(try prepared(query.statement).run(query.values)) }
        return QueryResults(rows: rows)
    }

    private func prepared(_ statement: Statement) throws(AccountError) -> SQLiteStatement {
        if let cached = statements[statement] { return cached }
        // SQLite's numbered parameters are `?1`; it would treat `$1` as a named parameter.
        let text = String(statement.text(.sqlite).map { $0 == "$" ? "?" : $0 })
        let prepared = try unsafe SQLiteStatement(text, in: database)
        if statement.isKept { statements[statement] = prepared }
        return prepared
    }

    private func execute(_ text: String) throws(AccountError) {
        let status = unsafe sqlite3_exec(database, text, nil, nil, nil)
        guard status == SQLITE_OK else { throw .sqlite(status) }
    }
}
