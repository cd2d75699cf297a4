internal import Glibc
internal import MartletCore

/// The SQLite file that accounts are copied from: one read transaction, on a thread of its own.
final class CopySource: Sendable {
    private final class Slot: Sendable {
        let connection = Lock<SQLiteConnection?>(nil, .database)
    }

    private static let busyTimeout = Duration.seconds(5)

    private let path: String
    private let schema = Schema(.sqlite)
    private let thread: ThreadPool
    private let slot = Slot()

    init(path: String, clock: Clock) {
        self.path = path
        thread = ThreadPool(.undivided, name: "accounts-copy", threads: 1, queue: 4, niceness: 0, clock: clock)
    }

    /// Begins the read transaction: later changes are not seen.
    /// - Throws: `accounts.schema_missing`, `accounts.schema_outdated` or `accounts.schema_newer` as well.
    func open() async throws(AccountError) {
        try await perform { [self] () throws(AccountError) in
            guard unsafe access(path, F_OK) == 0 else { throw .schemaMissing }
            try slot.connection.withLock { connection throws(AccountError) in
                connection = try SQLiteConnection(path: path, for: .reading, busyTimeout: Self.busyTimeout)
                try connection.map { opened throws(AccountError) in try begin(opened) }
            }
        }
    }

    private func begin(_ connection: SQLiteConnection) throws(AccountError) {
        _ = try connection.read(ReadOperation(queries: [Query(.plain("BEGIN"))]) { _ in })
        guard try connection.read(schema.exists) else { throw .schemaMissing }
        let version = try connection.read(schema.version)
        // Columns of a newer schema would be lost.
        guard version <= schema.latest else { throw .schemaNewer }
        guard version == schema.latest else { throw .schemaOutdated }
    }

    /// Makes the file read-only for every process that has it open.
    func markMoved() async throws(AccountError) {
        try await perform { [self] () throws(AccountError) in
            let connection = try SQLiteConnection(path: path, for: .writing, busyTimeout: Self.busyTimeout)
            try connection.markMoved()
        }
    }

    func read(_ query: Query) async throws(AccountError) -> [Row] {
        try await perform { [self] () throws(AccountError) in
            try slot.connection.withLock { connection throws(AccountError) in
                guard let connection else { throw .notStarted }
                return try connection.read(ReadOperation(queries: [query]) { $0[0] })
            }
        }
    }

    func close() async {
        _ = try? await thread.run(until: .never) { [self] in slot.connection.withLock { $0 = nil } }
        thread.stop()
    }

    private func perform<Value: Sendable>(
        _ body: @escaping @Sendable () throws(AccountError) -> Value
    ) async throws(AccountError) -> Value {
        try await SQLiteEngine.perform(on: thread, until: .never, body)
    }
}
