internal import MartletCore
internal import MartletIO

/// Timeouts and limits of the PostgreSQL store.
struct PostgreSQLOptions: Sendable {
    var connections = 8
    /// The timeout of a connection attempt, from name resolution to the end of the handshake.
    var connectTimeout = Duration.seconds(2)
    /// The timeout of a call, including the wait for a connection; the server is asked to end its statement then.
    var callTimeout = Duration.seconds(2)
    /// How long a statement waits for locks.
    var lockTimeout = Duration.milliseconds(1500)
    /// After how long the server aborts an idle transaction.
    var idleTimeout = Duration.seconds(5)
    /// The timeout of the schema migration; each wait for locks in it is shorter, and is retried.
    var upgradeTimeout = Duration.seconds(610)
    /// After how long calls fail with `accounts.migrating` instead of waiting for a migration.
    var upgradeGrace = Duration.seconds(1)
    var heartbeatInterval = Duration.seconds(5)
    /// The maximum number of calls waiting for a connection; further ones fail with `accounts.saturated`.
    var maximumWaiting = 1024
    /// The maximum number of read calls pipelined on a connection.
    var maximumPipelined = 32
    /// Transactions are read-only, and the schema is not migrated.
    var isReadOnly = false
    /// Accepts calls with a schema of any version, and does not migrate it.
    var acceptsAnySchema = false
    /// The timeout of a call that writes, if it differs.
    var transactionTimeout: Duration?

    /// The settings of a transaction as one statement; they end with it, so that a pooler may share sessions.
    ///
    /// They also apply to statements up to a synchronization point without BEGIN: those are one transaction as well.
    func settings(isReading: Bool) -> Query {
        var settings = [
            ("statement_timeout", String(callTimeout.wholeMilliseconds)),
            ("lock_timeout", String(lockTimeout.wholeMilliseconds)),
        ]
        if !isReading {
            settings.append(("idle_in_transaction_session_timeout", String(idleTimeout.wholeMilliseconds)))
        }
        if isReadOnly { settings.append(("transaction_read_only", "on")) }
        let calls = settings.map { "set_config('\($0.0)', '\($0.1)', true)" }
        return Query(.plain("SELECT " + calls.joined(separator: ", ")))
    }
}

/// PostgreSQL through nonblocking libpq on the service loop.
final class PostgreSQLEngine: AccountEngine {
    let dialect = Dialect.postgresql
    private let configuration: PostgreSQLConfiguration
    private let handle: LoopBound<PostgreSQLPool>
    private let recorder: AccountHealthRecorder

    init(
        _ target: PostgreSQLTarget, options: PostgreSQLOptions, schema: Schema, loop: ServiceLoop, resolver: Resolver,
        clock: Clock, logger: Logger
    ) {
        handle = LoopBound(loop)
        recorder = AccountHealthRecorder(clock: clock, logger: logger)
        configuration = PostgreSQLConfiguration(
            target: target, options: options, schema: schema, resolver: resolver, clock: clock, logger: logger,
            recorder: recorder, handle: handle)
    }

    var health: AccountHealth { recorder.health }

    func start() async throws(AccountError) {
        if !configuration.target.isVerified {
            configuration.logger.warning(
                "account store server identity is not verified; set sslmode=verify-full",
                ("address", configuration.target.description))
        }
        let (handle, configuration) = (handle, configuration)
        let failure: AccountError? = await withCheckedContinuation { continuation in
            let accepted = handle.loop.execute {
                let pool = handle.value ?? PostgreSQLPool(configuration)
                handle.value = pool
                pool.start()
                pool.whenConnected { continuation.resume(returning: $0) }
            }
            if !accepted { continuation.resume(returning: .stopped) }
        }
        if let failure { throw failure }
    }

    func shutdown() async {
        recorder.stopped()
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

    func read<Value>(_ reading: ReadOperation<Value>) async throws(AccountError) -> Value {
        try await call(nil, reading.queries) { deadline, completion in
            PostgreSQLReadOperation(reading, deadline: deadline, completion)
        }
    }

    func transact<Value>(_ first: TransactionStep<Value>) async throws(AccountError) -> Value {
        try await call(configuration.options.transactionTimeout, first.queries) { deadline, completion in
            PostgreSQLTransactionOperation(first, deadline: deadline, completion)
        }
    }

    /// - Parameters:
    ///   - timeout: `nil` for that of all calls.
    ///   - queries: those that it begins with.
    private func call<Value: Sendable>(
        _ timeout: Duration?, _ queries: [Query],
        _ make:
            @escaping @Sendable (MonotonicTime, @escaping (Result<Value, AccountError>) -> Void) -> PostgreSQLOperation
    ) async throws(AccountError) -> Value {
        let start = recorder.now
        let deadline = start + (timeout ?? configuration.options.callTimeout)
        let handle = handle
        do throws(AccountError) {
            let value = try await AccountTrace.span(of: "postgresql") { () async throws(AccountError) in
                let result: Result<Value, AccountError> = await withCheckedContinuation { continuation in
                    let accepted = handle.loop.execute {
                        guard let pool = handle.value else {
                            return continuation.resume(returning: .failure(.notStarted))
                        }
                        pool.submit(make(deadline) { continuation.resume(returning: $0) })
                    }
                    if !accepted { continuation.resume(returning: .failure(.stopped)) }
                }
                return try result.get()
            }
            recorder.count(nil, of: queries.map(\.statement), since: start)
            return value
        } catch {
            recorder.count(error, of: queries.map(\.statement), since: start)
            throw error
        }
    }
}
