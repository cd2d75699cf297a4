internal import Glibc
internal import MartletCore

/// Timeouts and limits of the SQLite store.
struct SQLiteOptions: Sendable {
    /// How long a call waits for other writing processes.
    var busyTimeout = Duration.seconds(2)
    /// How long a call may wait for a thread.
    var queueTimeout = Duration.seconds(2)
    var readers = 2
    /// The maximum number of waiting calls, for reads and writes each; further ones fail with `accounts.saturated`.
    var maximumWaiting = SharedBound.accountCalls.total
    /// Creates and changes nothing: neither the file nor its tables.
    var isReadOnly = false
    /// Opens a database of any version, and does not migrate it.
    var acceptsAnySchema = false
}

/// SQLite on dedicated threads: one writer and several readers.
///
/// Several processes may share the file: each change is one transaction that first acquires the write lock.
final class SQLiteEngine: AccountEngine {
    /// A connection with its lock, which only threads of the pools acquire.
    private final class Slot: Sendable {
        let connection = Lock<SQLiteConnection?>(nil, .database)
    }

    let dialect = Dialect.sqlite
    private let path: String
    private let options: SQLiteOptions
    private let schema: Schema
    private let clock: Clock
    private let recorder: AccountHealthRecorder
    private let writing: ThreadPool
    private let reading: ThreadPool
    private let writer = Slot()
    private let readers: [Slot]

    init(path: String, options: SQLiteOptions, schema: Schema, clock: Clock, logger: Logger) {
        self.path = path
        self.options = options
        self.schema = schema
        self.clock = clock
        recorder = AccountHealthRecorder(clock: clock, logger: logger)
        let queue = options.maximumWaiting
        writing = ThreadPool(.accountCalls, name: "accounts-write", threads: 1, queue: queue, niceness: 0, clock: clock)
        reading = ThreadPool(
            .accountCalls, name: "accounts-read", threads: options.readers, queue: queue, niceness: 0, clock: clock)
        readers = (0..<max(options.readers, 1)).map { _ in Slot() }
    }

    var health: AccountHealth { recorder.health }

    func start() async throws(AccountError) {
        try await counted([]) { () async throws(AccountError) in
            try await SQLiteEngine.perform(on: writing, until: .never) { [self] () throws(AccountError) in try open() }
        }
    }

    func shutdown() async {
        recorder.stopped()
        _ = try? await reading.run(until: .never) { [self] in closeReaders() }
        reading.stop()
        _ = try? await writing.run(until: .never) { [self] in writer.connection.withLock { $0 = nil } }
        writing.stop()
    }

    func read<Value>(_ query: ReadOperation<Value>) async throws(AccountError) -> Value {
        let deadline = clock.monotonicTime + options.queueTimeout
        return try await counted(query.queries) { () async throws(AccountError) in
            try await SQLiteEngine.perform(on: reading, until: deadline) { [self] () throws(AccountError) in
                try withReader { connection throws(AccountError) in try connection.read(query) }
            }
        }
    }

    func transact<Value>(_ first: TransactionStep<Value>) async throws(AccountError) -> Value {
        let deadline = clock.monotonicTime + options.queueTimeout
        return try await counted(first.queries) { () async throws(AccountError) in
            try await SQLiteEngine.perform(on: writing, until: deadline) { [self] () throws(AccountError) in
                try SQLiteEngine.withConnection(writer) { connection throws(AccountError) in
                    try connection.transact(first)
                }
            }
        }
    }
}

// MARK: - On the threads

extension SQLiteEngine {
    /// Retries while busy: another process may be opening the file, and SQLite does not wait for every such conflict.
    private func open() throws(AccountError) {
        let deadline = clock.monotonicTime + options.busyTimeout
        while true {
            do { return try openOnce() } catch {
                guard error.code == .accountsBusy, clock.monotonicTime < deadline else { throw error }
                usleep(20_000)
            }
        }
    }

    private func openOnce() throws(AccountError) {
        if options.isReadOnly { return try openReaders() }
        guard writer.connection.withLock({ $0 == nil }) else { return }
        try SQLiteConnection.create(path)
        try fill(writer, .writing)
        do throws(AccountError) {
            try SQLiteEngine.withConnection(writer) { connection throws(AccountError) in try migrate(connection) }
            for slot in readers { try fill(slot, .reading) }
        } catch {
            writer.connection.withLock { $0 = nil }
            throw error
        }
    }

    /// Opens the file read-only, if it exists and has the tables of this version.
    private func openReaders() throws(AccountError) {
        guard unsafe access(path, F_OK) == 0 else { throw .schemaMissing }
        for slot in readers { try fill(slot, .reading) }
        guard !options.acceptsAnySchema else { return }
        do throws(AccountError) {
            try SQLiteEngine.withConnection(readers[0]) { connection throws(AccountError) in
                guard try connection.read(schema.exists) else { throw .schemaMissing }
                let version = try connection.read(schema.version)
                guard version <= schema.latestAccepted else { throw .schemaNewer }
                guard version == schema.latest else { throw .schemaOutdated }
            }
        } catch {
            closeReaders()
            throw error
        }
    }

    private func fill(_ slot: Slot, _ purpose: SQLiteConnection.Purpose) throws(AccountError) {
        try slot.connection.withLock { connection throws(AccountError) in
            connection = try SQLiteConnection(path: path, for: purpose, busyTimeout: options.busyTimeout)
        }
    }

    private func migrate(_ connection: SQLiteConnection) throws(AccountError) {
        guard !options.acceptsAnySchema else { return }
        if try connection.read(schema.exists) {
            let version = try connection.read(schema.version)
            guard version <= schema.latestAccepted else { throw .schemaNewer }
            if version == schema.latest { return }
        }
        _ = try connection.transact(schema.upgrade)
    }

    private func withReader<Value: Sendable>(
        _ body: (SQLiteConnection) throws(AccountError) -> Value
    ) throws(AccountError) -> Value {
        for slot in readers {
            let result: Result<Value, AccountError>? = slot.connection.withLockIfAvailable { connection in
                guard let connection else { return .failure(.notStarted) }
                do throws(AccountError) { return .success(try body(connection)) } catch { return .failure(error) }
            }
            if let result { return try result.get() }
        }
        // There are as many slots as threads; a thread that found none free because of a race waits for the first.
        return try SQLiteEngine.withConnection(readers[0], body)
    }

    /// Closes the readers after their current calls.
    private func closeReaders() {
        for slot in readers {
            slot.connection.withLock { $0 = nil }
        }
    }

    private static func withConnection<Value: Sendable>(
        _ slot: Slot, _ body: (SQLiteConnection) throws(AccountError) -> Value
    ) throws(AccountError) -> Value {
        try slot.connection.withLock { connection throws(AccountError) in
            guard let connection else { throw .notStarted }
            return try body(connection)
        }
    }
}

// MARK: - Around a call

extension SQLiteEngine {
    static func perform<Value: Sendable>(
        on pool: ThreadPool, until deadline: MonotonicTime,
        _ body: @escaping @Sendable () throws(AccountError) -> Value
    ) async throws(AccountError) -> Value {
        let result: Result<Value, AccountError>
        do throws(ThreadPool.JobError) {
            result = try await pool.run(until: deadline) { Result(catching: body) }
        } catch {
            switch error {
            case .overloaded: throw .saturated
            case .stopped: throw .stopped
            case .expired: throw .timeout
            }
        }
        return try result.get()
    }

    /// Counts the call and records whether the store is available.
    /// - Parameter queries: those that it begins with.
    private func counted<Value: Sendable>(
        _ queries: [Query], _ body: () async throws(AccountError) -> Value
    ) async throws(AccountError) -> Value {
        let start = recorder.now
        do throws(AccountError) {
            let value = try await AccountTrace.span(of: "sqlite", body)
            recorder.count(nil, of: queries.map(\.statement), since: start)
            recorder.ready()
            return value
        } catch {
            recorder.count(error, of: queries.map(\.statement), since: start)
            if error.kind != .unavailable || error.code == .accountsTextInvalid {
                recorder.ready()
            } else {
                recorder.unavailable(error)
            }
            throw error
        }
    }
}
