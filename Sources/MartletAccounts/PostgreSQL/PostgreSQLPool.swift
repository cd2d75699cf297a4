internal import MartletCore
internal import MartletIO

/// The configuration of the pool.
struct PostgreSQLConfiguration: Sendable {
    var target: PostgreSQLTarget
    var options: PostgreSQLOptions
    var schema: Schema
    var resolver: Resolver
    var clock: Clock
    var logger: Logger
    var recorder: AccountHealthRecorder
    /// The pool itself, for callbacks from other threads.
    var handle: LoopBound<PostgreSQLPool>
}

/// The pool of connections to PostgreSQL and the queue of calls; used on its event loop only.
///
/// Calls start in order of arrival, those of different networks in turn. A transaction has exclusive use of a connection; reads are pipelined on the
/// connection with the fewest in flight.
final class PostgreSQLPool {
    private enum SchemaState {
        case unknown, inProgress, current
        /// Migrated for longer than calls wait.
        case migrating
    }

    private let configuration: PostgreSQLConfiguration
    private var slots: [PostgreSQLSlot] = []
    private var queue: FairQueue<PostgreSQLOperation>
    /// Calls whose turn it is already: one that waits for a connection of its kind, and those that are repeated.
    private var next: [PostgreSQLOperation] = []
    private var schema = SchemaState.unknown
    private var primary: PrimaryRule
    private let readSettings: Query
    private let writeSettings: Query
    private var connectWaiters: [@Sendable (AccountError?) -> Void] = []
    /// The last connection error; `nil` while a connection exists or the first attempts are in progress.
    private var outage: AccountError?
    private var isStopped = false
    /// Waits for servers to receive that a statement is to be cancelled.
    private let cancellations: ThreadPool

    init(_ configuration: PostgreSQLConfiguration) {
        self.configuration = configuration
        queue = FairQueue(
            FairQueue<PostgreSQLOperation>.Limits(.accountCalls, total: configuration.options.maximumWaiting))
        cancellations = ThreadPool(
            .accountCancellations, name: "martlet-cancel", threads: 1, niceness: 0, clock: configuration.clock)
        let options = configuration.options
        primary = PrimaryRule(acceptsReadOnly: options.isReadOnly)
        readSettings = options.settings(isReading: true)
        writeSettings = options.settings(isReading: false)
    }

    private var loop: ServiceLoop { configuration.handle.loop }
    private var clock: Clock { configuration.clock }
    private var recorder: AccountHealthRecorder { configuration.recorder }

    func slot(_ index: Int) -> PostgreSQLSlot? { slots.indices.contains(index) ? slots[index] : nil }

    /// Starts connecting, and reconnects until `stop()`.
    func start() {
        loop.preconditionInLoop()
        guard slots.isEmpty, !isStopped else { return }
        slots = (0..<configuration.options.connections).map { PostgreSQLSlot($0, configuration, pool: self) }
        for slot in slots { slot.connect() }
    }

    /// Closes all connections; waiting calls fail.
    func stop() {
        loop.preconditionInLoop()
        guard !isStopped else { return }
        isStopped = true
        recorder.stopped()
        for operation in takeWaiting() { operation.fail(.stopped) }
        for slot in slots { slot.stop() }
        slots = []
        cancellations.stop()
        resumeConnectWaiters(.stopped)
    }

    /// Calls back when connected, or with the error of the current attempt.
    func whenConnected(_ completion: @escaping @Sendable (AccountError?) -> Void) {
        loop.preconditionInLoop()
        if isStopped { return completion(.stopped) }
        if slots.contains(where: \.isOpen) { return completion(nil) }
        connectWaiters.append(completion)
    }

    /// Submits a call.
    func submit(_ operation: PostgreSQLOperation) {
        loop.preconditionInLoop()
        guard !isStopped else { return operation.fail(.stopped) }
        if let outage { return operation.fail(.notConnected(outage)) }
        if schema == .migrating { return operation.fail(.migrating) }
        switch queue.append(operation, of: operation.owner) {
        case .rejected: return operation.fail(.saturated)
        case .queued: break
        case .queuedInsteadOf(let other): other.fail(.saturated)
        }
        startTimer(operation)
        dispatch()
    }

    /// Removes all calls that wait.
    private func takeWaiting() -> [PostgreSQLOperation] {
        defer { next = [] }
        return next + queue.popAll()
    }

    private func startTimer(_ operation: PostgreSQLOperation) {
        let rest = max(operation.deadline.since(clock.monotonicTime), .zero)
        operation.timer = loop.schedule(after: rest) { [weak self, weak operation] in
            guard let self, let operation else { return }
            operation.timer = nil
            expire(operation)
        }
    }

    private func expire(_ operation: PostgreSQLOperation) {
        operation.fail(.timeout)
        next.removeAll { $0 === operation }
        queue.removeAll { $0 === operation }
        guard let connection = operation.connection, let slot = slots.first(where: { $0.connection === connection })
        else { return dispatch() }
        operation.isAbandoned = true
        slot.abandonBatch()
        abandon(slot, connection)
    }

    /// No call waits for a statement any longer. Its connection is used again when it has ended: a closed one would leave
    /// it running at the server, which would then have more of them than the pool has connections.
    private func abandon(_ slot: PostgreSQLSlot, _ connection: PostgreSQLConnection) {
        // By then the server's own timeout has ended the statement, if the server is there.
        slot.abandonment?.cancel()
        slot.abandonment = loop.schedule(after: configuration.options.callTimeout + Self.endOfStatement) {
            [weak slot, weak connection] in
            guard let slot, let connection, slot.connection === connection else { return }
            slot.reconnect(.timeout)
        }
        cancelAbandoned(slot)
    }

    /// Ends what no call waits for, one statement after the other: reads that wait for a lock would each do so as long as
    /// they may.
    private func cancelAbandoned(_ slot: PostgreSQLSlot) {
        guard let cancellation = slot.cancellation else { return }
        slot.startCancelling()
        let (handle, index) = (configuration.handle, slot.index)
        cancellations.submit(until: .never) { rejection in
            if rejection == nil { cancellation.send() }
            _ = handle.loop.execute { handle.value?.cancelled(index) }
        }
    }

    private func cancelled(_ index: Int) {
        if let slot = slot(index) {
            slot.isCancelling = false
            cancelAbandoned(slot)
        }
        dispatch()
    }

    /// A statement that was cancelled, or has timed out, ends within this time.
    private static let endOfStatement = Duration.seconds(2)

    private func resumeConnectWaiters(_ error: AccountError?) {
        let waiting = connectWaiters
        connectWaiters = []
        for completion in waiting { completion(error) }
    }
}

// MARK: - Connections come and go

extension PostgreSQLPool {
    /// Asks a new server what it is; the first one that may be used migrates the schema.
    func opened(_ slot: PostgreSQLSlot) {
        let timer = startReconnectTimer(slot, after: configuration.options.callTimeout)
        askRole(slot) { [weak self, weak slot] role in
            timer.cancel()
            guard let self, let slot else { return }
            guard let role else { return slot.reconnect(.roleUnknown) }
            if accept(role, of: slot) { prepared(slot) }
        }
    }

    /// - Parameter then: not called if the connection is lost; called with `nil` if the server does not tell.
    private func askRole(_ slot: PostgreSQLSlot, _ then: @escaping (ServerRole?) -> Void) {
        let isFirst = !slot.hidesTimeline
        slot.connection?.send([isFirst ? ServerRole.query : ServerRole.queryWithoutTimeline]) {
            [weak self, weak slot] result in
            switch result {
            case .success(let results): then(try? ServerRole.read(results[0]))
            case .failure(.connectionLost): break
            case .failure(_):
                guard isFirst, let self, let slot else { return then(nil) }
                slot.hidesTimeline = true
                configuration.logger.warning("PostgreSQL does not tell its timeline; an old primary is not recognized")
                askRole(slot, then)
            }
        }
    }

    /// Leaves the server unless it may be used, and other servers if it shows that they were replaced.
    private func accept(_ role: ServerRole, of slot: PostgreSQLSlot) -> Bool {
        if let reason = primary.reason(against: role) {
            slot.leave(reason)
            return false
        }
        slot.timeline = role.timeline
        for other in slots where other !== slot {
            if let timeline = other.timeline, timeline < primary.timeline { other.leave(.oldPrimary) }
        }
        return true
    }

    private func startReconnectTimer(_ slot: PostgreSQLSlot, after limit: Duration) -> LoopTimer {
        loop.schedule(after: limit) { [weak slot] in slot?.reconnect(.connectTimeout) }
    }

    private func prepared(_ slot: PostgreSQLSlot) {
        slot.isPrepared = true
        switch schema {
        case .current: activate(slot)
        case .inProgress, .migrating: break
        case .unknown:
            schema = .inProgress
            checkSchema(slot)
        }
    }

    /// Starts accepting calls on the connection.
    private func activate(_ slot: PostgreSQLSlot) {
        if slot.open() { recorder.reconnected() }
        outage = nil
        recorder.ready()
        resumeConnectWaiters(nil)
        scheduleHeartbeat(slot)
        dispatch()
    }

    /// A connection has ended.
    /// - Parameter error: `nil` if it is already being reconnected.
    func closed(_ slot: PostgreSQLSlot, _ error: AccountError?) {
        guard !isStopped else { return }
        guard let error, slots.allSatisfy(\.isFailing) else { return dispatch() }
        outage = error
        recorder.unavailable(error)
        for operation in takeWaiting() { operation.fail(.notConnected(error)) }
        resumeConnectWaiters(error)
    }

    /// Asks an idle server periodically what it is: the connection may be dead, and a pooler may have changed servers.
    private func scheduleHeartbeat(_ slot: PostgreSQLSlot) {
        slot.heartbeat?.cancel()
        slot.heartbeat = loop.schedule(after: configuration.options.heartbeatInterval) { [weak self, weak slot] in
            guard let self, let slot, let connection = slot.ready else { return }
            if connection.inFlight == 0, slot.owner == nil {
                let timer = loop.schedule(after: configuration.options.callTimeout) { [weak slot] in
                    slot?.reconnect(.timeout)
                }
                askRole(slot) { [weak self, weak slot] role in
                    timer.cancel()
                    guard let self, let slot, let role, slot.connection === connection else { return }
                    // A transaction that came meanwhile may be waiting for this connection.
                    if accept(role, of: slot) { dispatch() }
                }
            }
            scheduleHeartbeat(slot)
        }
    }
}

// MARK: - The schema

extension PostgreSQLPool {
    private func checkSchema(_ slot: PostgreSQLSlot) {
        guard !configuration.options.acceptsAnySchema else { return schemaIsCurrent() }
        let schema = configuration.schema
        query(schema.exists, slot) { [weak self] exists in
            guard exists else { return self?.upgrade(slot, from: .schemaMissing) ?? () }
            self?.query(schema.version, slot) { version in
                if version > schema.latestAccepted { return self?.schemaFailed(slot, .schemaNewer) ?? () }
                if version < schema.latest { return self?.upgrade(slot, from: .schemaOutdated) ?? () }
                self?.schemaIsCurrent()
            }
        }
    }

    /// - Parameter found: the error for a read-only store, which is not migrated.
    private func upgrade(_ slot: PostgreSQLSlot, from found: AccountError) {
        guard !configuration.options.isReadOnly else {
            guard found.code == .accountsSchemaMissing else { return schemaFailed(slot, found) }
            return query(Schema.mayCreate, slot) { [weak self] mayCreate in
                self?.schemaFailed(slot, mayCreate ? found : .schemaNotCreatable)
            }
        }
        guard let connection = slot.ready else { return schemaFailed(slot, .connectionLost) }
        let deadline = clock.monotonicTime + configuration.options.upgradeTimeout
        let grace = loop.schedule(after: configuration.options.upgradeGrace) { [weak self] in
            self?.migrationTakesLong()
        }
        let operation = PostgreSQLTransactionOperation(configuration.schema.upgrade, deadline: deadline) {
            [weak self] result in
            grace.cancel()
            switch result {
            case .success: self?.schemaIsCurrent()
            // Another instance is migrating, or a transaction uses the tables.
            case .failure(let error) where error.code == .accountsBusy: self?.schemaFailed(slot, .migrating)
            case .failure(let error): self?.schemaFailed(slot, error)
            }
        }
        operation.isUnrepeatable = true
        startTimer(operation)
        start(operation, on: slot, connection)
    }

    /// Stops making calls wait for the migration, so that the process can listen.
    private func migrationTakesLong() {
        guard schema == .inProgress, !isStopped else { return }
        schema = .migrating
        recorder.unavailable(.migrating, as: "account store schema migration takes long")
        for operation in takeWaiting() { operation.fail(.migrating) }
        resumeConnectWaiters(.migrating)
    }

    private func query<Value>(
        _ reading: ReadOperation<Value>, _ slot: PostgreSQLSlot, _ then: @escaping (Value) -> Void
    ) {
        guard let connection = slot.ready else { return schemaFailed(slot, .connectionLost) }
        let deadline = clock.monotonicTime + configuration.options.callTimeout
        let operation = PostgreSQLReadOperation(reading, deadline: deadline) { [weak self] result in
            switch result {
            case .success(let value): then(value)
            case .failure(let error): self?.schemaFailed(slot, error)
            }
        }
        operation.isUnrepeatable = true
        startTimer(operation)
        start(operation, on: slot, connection)
    }

    private func schemaIsCurrent() {
        schema = .current
        for slot in slots where slot.isPrepared && !slot.isOpen { activate(slot) }
    }

    /// Reconnects all slots; the next connection checks the schema again.
    private func schemaFailed(_ slot: PostgreSQLSlot, _ error: AccountError) {
        schema = .unknown
        for slot in slots { slot.reconnect(error) }
    }
}

// MARK: - Calls

extension PostgreSQLPool {
    private func dispatch() {
        guard schema == .current else { return }
        while true {
            if next.isEmpty, let operation = queue.popFirst() { next.append(operation) }
            guard let operation = next.first, let (slot, connection) = findConnection(for: operation) else { return }
            next.removeFirst()
            start(operation, on: slot, connection)
        }
    }

    /// Finds a connection on which a call can start now.
    private func findConnection(for operation: PostgreSQLOperation) -> (PostgreSQLSlot, PostgreSQLConnection)? {
        var best: (PostgreSQLSlot, PostgreSQLConnection)?
        for slot in slots {
            guard let connection = slot.free else { continue }
            let limit = operation.isReading ? configuration.options.maximumPipelined : 1
            guard connection.inFlight < limit else { continue }
            if let best, best.1.inFlight <= connection.inFlight { continue }
            best = (slot, connection)
        }
        return best
    }

    private func start(_ operation: PostgreSQLOperation, on slot: PostgreSQLSlot, _ connection: PostgreSQLConnection) {
        operation.attempts += 1
        operation.connection = connection
        if !operation.isReading { slot.owner = operation }
        perform(operation.begin(), of: operation, on: slot, connection, isFirst: true)
    }

    private func perform(
        _ action: PostgreSQLOperation.Action, of operation: PostgreSQLOperation, on slot: PostgreSQLSlot,
        _ connection: PostgreSQLConnection, isFirst: Bool
    ) {
        let opening = isFirst ? [Query(.plain("BEGIN ISOLATION LEVEL READ COMMITTED")), writeSettings] : []
        switch action {
        case .read(let queries):
            send([readSettings] + queries, before: 1, after: 0, of: operation, on: slot, connection)
        case .query(let queries):
            send(opening + queries, before: opening.count, after: 0, of: operation, on: slot, connection)
        case .commit(let queries):
            let closing = [Query(.plain("COMMIT"))]
            send(opening + queries + closing, before: opening.count, after: 1, of: operation, on: slot, connection)
        case .done: release(operation, slot, connection)
        case .rollBack: rollBack(slot, connection) { [weak self] in self?.release(operation, slot, connection) }
        }
    }

    /// - Parameters:
    ///   - before: the number of leading results that belong to BEGIN and the settings.
    ///   - after: the number of trailing results that belong to COMMIT.
    private func send(
        _ queries: [Query], before: Int, after: Int, of operation: PostgreSQLOperation, on slot: PostgreSQLSlot,
        _ connection: PostgreSQLConnection
    ) {
        connection.send(queries) { [weak self] result in
            if operation.isAbandoned { self?.ended(operation, on: slot, connection) }
            switch result {
            case .success(let results):
                let own = QueryResults(rows: Array(results.rows.dropFirst(before).dropLast(after)))
                self?.perform(operation.received(own), of: operation, on: slot, connection, isFirst: false)
            case .failure(let failure): self?.failed(operation, failure, on: slot, connection)
            }
        }
    }

    /// A batch that no call waits for has ended; the next one may be such a batch, too.
    private func ended(
        _ operation: PostgreSQLOperation, on slot: PostgreSQLSlot, _ connection: PostgreSQLConnection
    ) {
        operation.isAbandoned = false
        guard slot.connection === connection else { return }
        slot.abandonedBatchEnded()
        cancelAbandoned(slot)
    }

    private func failed(
        _ operation: PostgreSQLOperation, _ failure: PostgreSQLBatchError, on slot: PostgreSQLSlot,
        _ connection: PostgreSQLConnection
    ) {
        let recovery = failure.recovery
        if let message = failure.serverMessage { configuration.recorder.statementFailed(message) }
        if case .fail(let error) = recovery { operation.fail(error) }
        switch recovery {
        case .leave(let error):
            retry(operation, orFail: error)
            // The other idle connections lead to the same server; their next check finds out.
            for other in slots where other.owner == nil && other.ready?.inFlight == 0 { other.reconnect(error) }
            if slot.connection === connection { slot.reconnect(error) }
        case .reconnect:
            // A change that may have been made is never repeated.
            if operation.isCommitting, failure.leavesCommitUnknown { operation.fail(.connectionLost) }
            retry(operation, orFail: .connectionLost)
            // A lost connection is already being closed.
            if !failure.isConnectionLost, slot.connection === connection { slot.reconnect(.connectionLost) }
        case .retry, .fail:
            guard !operation.isReading else { return release(operation, slot, connection, isRetried: true) }
            rollBack(slot, connection) { [weak self] in self?.release(operation, slot, connection, isRetried: true) }
        }
    }

    /// Has a call wait before all others, unless it has used up its attempts.
    private func retry(_ operation: PostgreSQLOperation, isLost: Bool = true, orFail error: AccountError) {
        operation.connection = nil
        guard !operation.isCompleted else { return }
        if isStopped { return operation.fail(.stopped) }
        if let outage { return operation.fail(.notConnected(outage)) }
        // All connections may have ended together, as in a failover; the deadline bounds the attempts too.
        let limit = PostgreSQLOperation.maximumAttempts + (isLost ? slots.count : 0)
        guard !operation.isUnrepeatable, operation.attempts < limit else { return operation.fail(error) }
        next.insert(operation, at: 0)
    }

    private func rollBack(_ slot: PostgreSQLSlot, _ connection: PostgreSQLConnection, _ then: @escaping () -> Void) {
        let timer = startReconnectTimer(slot, after: configuration.options.callTimeout)
        connection.send([Query(.plain("ROLLBACK"))]) { [weak slot] result in
            timer.cancel()
            if case .failure(let failure) = result, !failure.isConnectionLost { slot?.reconnect(.connectionLost) }
            then()
        }
    }

    private func release(
        _ operation: PostgreSQLOperation, _ slot: PostgreSQLSlot, _ connection: PostgreSQLConnection,
        isRetried: Bool = false
    ) {
        operation.connection = nil
        // It was given up while the server rolled it back.
        if operation.isAbandoned { ended(operation, on: slot, connection) }
        if slot.owner === operation { slot.owner = nil }
        if connection.inFlight == 0, slot.connection === connection {
            slot.abandonment?.cancel()
            slot.abandonment = nil
        }
        if isRetried { retry(operation, isLost: false, orFail: .postgreSQLBusy) }
        dispatch()
    }
}
