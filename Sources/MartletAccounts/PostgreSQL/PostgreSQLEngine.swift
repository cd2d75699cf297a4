internal import MartletCore
internal import MartletIO

/// Deadlines and bounds of the PostgreSQL store.
struct PostgreSQLOptions: Sendable {
    var connections = 4
    /// From the name's look-up to the end of the handshake.
    var connectTimeout = Duration.seconds(2)
    /// From the caller's word to the answer; what takes longer is an outage and costs the connection.
    var callTimeout = Duration.seconds(2)
    /// How long a statement waits for others' locks.
    var lockTimeout = Duration.milliseconds(1500)
    /// After which the server ends a transaction that nobody goes on with.
    var idleTimeout = Duration.seconds(5)
    /// For the change of the schema, and for other instances that make it.
    var upgradeTimeout = Duration.seconds(60)
    var heartbeatInterval = Duration.seconds(5)
    /// Calls that may wait for a connection at once; more fail as `accounts.overloaded`.
    var maximumWaiting = 1024
    /// Calls that read and share a connection.
    var maximumPipelined = 32
    /// The server refuses every change of the session, and the schema stays as it is.
    var isReadOnly = false
}

/// PostgreSQL through libpq, never blocking, on the service loop.
final class PostgreSQLEngine: AccountEngine {
    let dialect = Dialect.postgresql
    private let configuration: PostgreSQLConfiguration
    private let handle: LoopBound<PostgreSQLPool>
    private let board = AccountBoard()

    init(
        _ target: PostgreSQLTarget, options: PostgreSQLOptions, schema: Schema, loop: EventLoop, resolver: Resolver,
        clock: Clock, logger: Logger
    ) {
        handle = LoopBound(loop)
        configuration = PostgreSQLConfiguration(
            target: target, options: options, schema: schema, resolver: resolver, clock: clock, logger: logger,
            board: board, handle: handle)
    }

    var health: AccountHealth { board.health }

    func start() async throws(AccountError) {
        if !configuration.target.isVerified {
            configuration.logger.warning(
                "the account store's server does not have to prove who it is; sslmode=verify-full makes it",
                ("address", configuration.target.description))
        }
        let (handle, configuration) = (handle, configuration)
        let failure: AccountError? = await withCheckedContinuation { continuation in
            let accepted = handle.loop.execute {
                let pool = handle.value ?? PostgreSQLPool(configuration)
                handle.value = pool
                pool.start()
                pool.whenSettled { continuation.resume(returning: $0) }
            }
            if !accepted { continuation.resume(returning: .stopped) }
        }
        if let failure { throw failure }
    }

    func shutdown() async {
        board.stopped()
        let handle = handle
        await withCheckedContinuation { (continuation: CheckedContinuation<Void, Never>) in
            let accepted = handle.loop.execute {
                handle.value?.stop()
                handle.value = nil
                continuation.resume()
            }
            if !accepted { continuation.resume() }
        }
    }

    func read<Value>(_ reading: Reading<Value>) async throws(AccountError) -> Value {
        try await call { deadline, completion in PostgreSQLReading(reading, deadline: deadline, completion) }
    }

    func change<Value>(_ first: Step<Value>) async throws(AccountError) -> Value {
        try await call { deadline, completion in PostgreSQLChange(first, deadline: deadline, completion) }
    }

    private func call<Value: Sendable>(
        _ make: @escaping @Sendable (MonotonicTime, @escaping (Result<Value, AccountError>) -> Void) -> PostgreSQLWork
    ) async throws(AccountError) -> Value {
        let deadline = configuration.clock.monotonicTime + configuration.options.callTimeout
        let handle = handle
        let answer: Result<Value, AccountError> = await withCheckedContinuation { continuation in
            let accepted = handle.loop.execute {
                guard let pool = handle.value else { return continuation.resume(returning: .failure(.notStarted)) }
                pool.submit(make(deadline) { continuation.resume(returning: $0) })
            }
            if !accepted { continuation.resume(returning: .failure(.stopped)) }
        }
        switch answer {
        case .success(let value):
            board.count(nil)
            return value
        case .failure(let error):
            board.count(error)
            throw error
        }
    }
}
