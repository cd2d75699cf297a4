internal import Glibc
internal import MartletCore
private import Synchronization

/// Deadlines and bounds of the SQLite store.
struct SQLiteOptions: Sendable {
    /// How long a call waits for other processes that write.
    var busyTimeout = Duration.seconds(2)
    /// How long a call may wait for a thread.
    var queueTimeout = Duration.seconds(2)
    var readers = 2
    /// Calls that may wait at once, for reading and for writing; more fail as `accounts.overloaded`.
    var maximumWaiting = 1024
    /// Nothing is made or changed: neither the file nor its tables.
    var isReadOnly = false
}

/// SQLite on threads of its own: one that writes, a few that read.
///
/// Several processes may share the file: each change is one transaction that begins by taking the write lock.
final class SQLiteEngine: AccountEngine {
    /// A connection and its right to be used; each is only ever locked by a thread of a pool.
    private final class Slot: Sendable {
        let connection = Mutex<SQLiteConnection?>(nil)
    }

    let dialect = Dialect.sqlite
    private let path: String
    private let options: SQLiteOptions
    private let schema: Schema
    private let clock: Clock
    private let logger: Logger
    private let board = AccountBoard()
    private let writing: WorkPool
    private let reading: WorkPool
    private let writer = Slot()
    private let readers: [Slot]

    init(path: String, options: SQLiteOptions, schema: Schema, clock: Clock, logger: Logger) {
        self.path = path
        self.options = options
        self.schema = schema
        self.clock = clock
        self.logger = logger
        let queue = options.maximumWaiting
        writing = WorkPool(name: "accounts-write", threads: 1, queue: queue, niceness: 0, clock: clock)
        reading = WorkPool(name: "accounts-read", threads: options.readers, queue: queue, niceness: 0, clock: clock)
        readers = (0..<max(options.readers, 1)).map { _ in Slot() }
    }

    var health: AccountHealth { board.health }

    func start() async throws(AccountError) {
        try await counted { () async throws(AccountError) in
            try await SQLiteEngine.work(on: writing, until: .never) { [self] () throws(AccountError) in try open() }
        }
    }

    func shutdown() async {
        board.stopped()
        _ = try? await reading.run(until: .never) { [self] in closeReaders() }
        reading.stop()
        _ = try? await writing.run(until: .never) { [self] in writer.connection.withLock { $0 = nil } }
        writing.stop()
    }

    func read<Value>(_ query: Reading<Value>) async throws(AccountError) -> Value {
        let deadline = clock.monotonicTime + options.queueTimeout
        return try await counted { () async throws(AccountError) in
            try await SQLiteEngine.work(on: reading, until: deadline) { [self] () throws(AccountError) in
                try withReader { connection throws(AccountError) in try connection.read(query) }
            }
        }
    }

    func change<Value>(_ first: Step<Value>) async throws(AccountError) -> Value {
        let deadline = clock.monotonicTime + options.queueTimeout
        return try await counted { () async throws(AccountError) in
            try await SQLiteEngine.work(on: writing, until: deadline) { [self] () throws(AccountError) in
                try SQLiteEngine.use(writer) { connection throws(AccountError) in try connection.change(first) }
            }
        }
    }
}

// MARK: - On the threads

extension SQLiteEngine {
    /// Another process may be opening the file at the same moment, and not every such collision waits by itself.
    private func open() throws(AccountError) {
        let deadline = clock.monotonicTime + options.busyTimeout
        while true {
            do {
                return try openOnce()
            } catch {
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
            try SQLiteEngine.use(writer) { connection throws(AccountError) in try migrate(connection) }
            for slot in readers { try fill(slot, .reading) }
        } catch {
            writer.connection.withLock { $0 = nil }
            throw error
        }
    }

    /// Opens the file for reading only, where it is there and has the tables of this version.
    private func openReaders() throws(AccountError) {
        guard unsafe access(path, F_OK) == 0 else { throw .schemaMissing }
        for slot in readers { try fill(slot, .reading) }
        do throws(AccountError) {
            try SQLiteEngine.use(readers[0]) { connection throws(AccountError) in
                guard try connection.read(schema.isThere) else { throw .schemaMissing }
                let version = try connection.read(schema.version)
                guard version <= schema.latest else { throw .schemaNewer }
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
        if try connection.read(schema.isThere) {
            let version = try connection.read(schema.version)
            guard version <= schema.latest else { throw .schemaNewer }
            if version == schema.latest { return }
        }
        try connection.change(schema.upgrade)
    }

    private func withReader<Value: Sendable>(
        _ body: (SQLiteConnection) throws(AccountError) -> Value
    ) throws(AccountError) -> Value {
        for slot in readers {
            let answer: Result<Value, AccountError>? = slot.connection.withLockIfAvailable { connection in
                guard let connection else { return .failure(.notStarted) }
                do throws(AccountError) {
                    return .success(try body(connection))
                } catch {
                    return .failure(error)
                }
            }
            if let answer { return try answer.get() }
        }
        // There are as many slots as threads; one that looked in between two others' turns waits for the first.
        return try SQLiteEngine.use(readers[0], body)
    }

    /// Waits for the readers that are at work.
    private func closeReaders() {
        for slot in readers {
            slot.connection.withLock { $0 = nil }
        }
    }

    private static func use<Value: Sendable>(
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
    private static func work<Value: Sendable>(
        on pool: WorkPool, until deadline: MonotonicTime,
        _ body: @escaping @Sendable () throws(AccountError) -> Value
    ) async throws(AccountError) -> Value {
        let answer: Result<Value, AccountError>
        do throws(WorkPool.Refusal) {
            answer = try await pool.run(until: deadline) {
                do throws(AccountError) {
                    return .success(try body())
                } catch {
                    return .failure(error)
                }
            }
        } catch {
            switch error {
            case .overloaded: throw .overloaded
            case .stopped: throw .stopped
            case .expired: throw .timeout
            }
        }
        return try answer.get()
    }

    /// Counts the call, and notes whether the store can be asked.
    private func counted<Value: Sendable>(
        _ body: () async throws(AccountError) -> Value
    ) async throws(AccountError) -> Value {
        do throws(AccountError) {
            let value = try await body()
            board.count(nil)
            board.ready()
            return value
        } catch {
            board.count(error)
            if error.kind != .unavailable || error.code == .accountsTextInvalid {
                board.ready()
            } else if board.unavailable(error) {
                logger.warning("the account store is unavailable", ("code", "\(error.code)"), ("reason", error.message))
            }
            throw error
        }
    }
}
