internal import MartletCore
internal import MartletIO

/// What the pool is made of; immutable.
struct PostgreSQLConfiguration: Sendable {
    var target: PostgreSQLTarget
    var options: PostgreSQLOptions
    var schema: Schema
    var resolver: Resolver
    var clock: Clock
    var logger: Logger
    var board: AccountBoard
    /// The pool itself, for what comes from other threads.
    var handle: LoopBound<PostgreSQLPool>
}

/// The connections to PostgreSQL and the calls that wait for one; on its loop only.
///
/// Calls begin in the order in which they came. A change has a connection to itself; calls that read are sent behind
/// each other on the connection that has the fewest.
final class PostgreSQLPool {
    private enum SchemaState { case unknown, underWay, current }

    private let configuration: PostgreSQLConfiguration
    private var slots: [PostgreSQLSlot] = []
    private var queue: [PostgreSQLWork] = []
    private var schema = SchemaState.unknown
    private var settling: [@Sendable (AccountError?) -> Void] = []
    /// Why the last attempt to connect failed; `nil` while there is a connection or hope for one.
    private var outage: AccountError?
    private var isStopped = false

    init(_ configuration: PostgreSQLConfiguration) { self.configuration = configuration }

    private var loop: EventLoop { configuration.handle.loop }
    private var clock: Clock { configuration.clock }
    private var board: AccountBoard { configuration.board }

    func slot(_ index: Int) -> PostgreSQLSlot? { slots.indices.contains(index) ? slots[index] : nil }

    /// Starts to connect, and to reconnect for ever.
    func start() {
        loop.preconditionInLoop()
        guard slots.isEmpty, !isStopped else { return }
        slots = (0..<configuration.options.connections).map { PostgreSQLSlot($0, configuration, pool: self) }
        for slot in slots { slot.connect() }
    }

    /// Ends everything; who waits is answered.
    func stop() {
        loop.preconditionInLoop()
        guard !isStopped else { return }
        isStopped = true
        board.stopped()
        let waiting = queue
        queue = []
        for work in waiting { work.fail(.stopped) }
        for slot in slots { slot.stop() }
        slots = []
        settle(.stopped)
    }

    /// Calls back when the store can be asked, or the attempt under way has failed.
    func whenSettled(_ completion: @escaping @Sendable (AccountError?) -> Void) {
        loop.preconditionInLoop()
        if isStopped { return completion(.stopped) }
        if slots.contains(where: \.isOpen) { return completion(nil) }
        settling.append(completion)
    }

    /// Takes a call in.
    func submit(_ work: PostgreSQLWork) {
        loop.preconditionInLoop()
        guard !isStopped else { return work.fail(.stopped) }
        if let outage { return work.fail(.notConnected(outage)) }
        guard queue.count < configuration.options.maximumWaiting else { return work.fail(.overloaded) }
        watch(work)
        queue.append(work)
        dispatch()
    }

    private func watch(_ work: PostgreSQLWork) {
        let rest = max(work.deadline.since(clock.monotonicTime), .zero)
        work.timer = loop.schedule(after: rest) { [weak self, weak work] in
            guard let self, let work else { return }
            work.timer = nil
            expire(work)
        }
    }

    /// What is under way cannot be taken back but with its connection.
    private func expire(_ work: PostgreSQLWork) {
        work.fail(.timeout)
        queue.removeAll { $0 === work }
        guard let connection = work.connection else { return dispatch() }
        slots.first { $0.connection === connection }?.reconnect(.timeout)
    }

    private func settle(_ error: AccountError?) {
        let waiting = settling
        settling = []
        for completion in waiting { completion(error) }
    }
}

// MARK: - Connections come and go

extension PostgreSQLPool {
    /// A new connection is told how long it may wait; the first one brings the schema up to date.
    func opened(_ slot: PostgreSQLSlot) {
        let options = configuration.options
        let settings = [
            ("statement_timeout", options.callTimeout), ("lock_timeout", options.lockTimeout),
            ("idle_in_transaction_session_timeout", options.idleTimeout),
        ]
        var queries = settings.map { Query(.plain("SET \($0.0) = \($0.1.wholeMilliseconds)")) }
        if options.isReadOnly { queries.append(Query(.plain("SET default_transaction_read_only = on"))) }
        let timer = guardBirth(slot, within: options.callTimeout)
        slot.connection?.send(queries) { [weak self, weak slot] answer in
            timer.cancel()
            guard let self, let slot else { return }
            switch answer {
            case .success: settled(slot)
            case .failure(.lost): break
            case .failure: slot.reconnect(.settingsRefused)
            }
        }
    }

    private func guardBirth(_ slot: PostgreSQLSlot, within limit: Duration) -> LoopTimer {
        loop.schedule(after: limit) { [weak slot] in slot?.reconnect(.connectTimeout) }
    }

    private func settled(_ slot: PostgreSQLSlot) {
        slot.isPrepared = true
        switch schema {
        case .current: begin(slot)
        case .underWay: break
        case .unknown:
            schema = .underWay
            checkSchema(slot)
        }
    }

    /// The connection takes calls from now on.
    private func begin(_ slot: PostgreSQLSlot) {
        if slot.open() { board.reconnected() }
        if outage != nil { configuration.logger.info("the account store is back") }
        outage = nil
        board.ready()
        settle(nil)
        beat(slot)
        dispatch()
    }

    /// A connection has ended.
    /// - Parameter error: `nil` when another one is being made already.
    func closed(_ slot: PostgreSQLSlot, _ error: AccountError?) {
        guard !isStopped else { return }
        guard let error, slots.allSatisfy(\.isFailing) else { return dispatch() }
        outage = error
        if board.unavailable(error) {
            configuration.logger.warning(
                "the account store is unavailable", ("code", "\(error.code)"), ("reason", error.message))
        }
        let waiting = queue
        queue = []
        for work in waiting { work.fail(.notConnected(error)) }
        settle(error)
    }

    /// Asks for a sign of life now and then, so that a connection that is dead in silence is found out while idle.
    private func beat(_ slot: PostgreSQLSlot) {
        slot.heartbeat?.cancel()
        slot.heartbeat = loop.schedule(after: configuration.options.heartbeatInterval) { [weak self, weak slot] in
            guard let self, let slot, let connection = slot.ready else { return }
            if connection.inFlight == 0, slot.owner == nil {
                let probe = Reading(queries: [Query(.plain("SELECT 1"))]) { _ in () }
                let work = PostgreSQLReading(probe, deadline: clock.monotonicTime + configuration.options.callTimeout) {
                    _ in
                }
                work.attempts = PostgreSQLWork.maximumAttempts
                watch(work)
                start(work, on: slot, connection)
            }
            beat(slot)
        }
    }
}

// MARK: - The schema

extension PostgreSQLPool {
    private func checkSchema(_ slot: PostgreSQLSlot) {
        let wanted = configuration.schema
        ask(wanted.isThere, slot) { [weak self] isThere in
            guard isThere else { return self?.upgrade(slot, from: .schemaMissing) ?? () }
            self?.ask(wanted.version, slot) { version in
                if version > wanted.latest { return self?.schemaFailed(slot, .schemaNewer) ?? () }
                if version < wanted.latest { return self?.upgrade(slot, from: .schemaOutdated) ?? () }
                self?.schemaIsCurrent()
            }
        }
    }

    /// - Parameter found: why, for a store that is only read and has to leave it so.
    private func upgrade(_ slot: PostgreSQLSlot, from found: AccountError) {
        guard !configuration.options.isReadOnly else { return schemaFailed(slot, found) }
        guard let connection = slot.ready else { return schemaFailed(slot, .connectionLost) }
        let deadline = clock.monotonicTime + configuration.options.upgradeTimeout
        let work = PostgreSQLChange(configuration.schema.upgrade, deadline: deadline) { [weak self] result in
            switch result {
            case .success: self?.schemaIsCurrent()
            case .failure(let error): self?.schemaFailed(slot, error)
            }
        }
        work.attempts = PostgreSQLWork.maximumAttempts
        watch(work)
        start(work, on: slot, connection)
    }

    private func ask<Value>(_ reading: Reading<Value>, _ slot: PostgreSQLSlot, _ then: @escaping (Value) -> Void) {
        guard let connection = slot.ready else { return schemaFailed(slot, .connectionLost) }
        let deadline = clock.monotonicTime + configuration.options.callTimeout
        let work = PostgreSQLReading(reading, deadline: deadline) { [weak self] result in
            switch result {
            case .success(let value): then(value)
            case .failure(let error): self?.schemaFailed(slot, error)
            }
        }
        work.attempts = PostgreSQLWork.maximumAttempts
        watch(work)
        start(work, on: slot, connection)
    }

    private func schemaIsCurrent() {
        schema = .current
        for slot in slots where slot.isPrepared && !slot.isOpen { begin(slot) }
    }

    /// Tries again with the next connection.
    private func schemaFailed(_ slot: PostgreSQLSlot, _ error: AccountError) {
        schema = .unknown
        for slot in slots { slot.reconnect(error) }
    }
}

// MARK: - Calls

extension PostgreSQLPool {
    private func dispatch() {
        guard schema == .current else { return }
        while let work = queue.first {
            guard let (slot, connection) = place(for: work) else { return }
            queue.removeFirst()
            start(work, on: slot, connection)
        }
    }

    /// Where a call can begin now.
    private func place(for work: PostgreSQLWork) -> (PostgreSQLSlot, PostgreSQLConnection)? {
        var best: (PostgreSQLSlot, PostgreSQLConnection)?
        for slot in slots {
            guard let connection = slot.free else { continue }
            let limit = work.isReading ? configuration.options.maximumPipelined : 1
            guard connection.inFlight < limit else { continue }
            if let best, best.1.inFlight <= connection.inFlight { continue }
            best = (slot, connection)
        }
        return best
    }

    private func start(_ work: PostgreSQLWork, on slot: PostgreSQLSlot, _ connection: PostgreSQLConnection) {
        work.attempts += 1
        work.connection = connection
        if !work.isReading { slot.owner = work }
        perform(work.begin(), of: work, on: slot, connection, isFirst: true)
    }

    private func perform(
        _ move: PostgreSQLWork.Move, of work: PostgreSQLWork, on slot: PostgreSQLSlot,
        _ connection: PostgreSQLConnection, isFirst: Bool
    ) {
        let opening = isFirst ? [Query(.plain("BEGIN ISOLATION LEVEL READ COMMITTED"))] : []
        switch move {
        case .read(let queries): send(queries, before: 0, after: 0, of: work, on: slot, connection)
        case .ask(let queries):
            send(opening + queries, before: opening.count, after: 0, of: work, on: slot, connection)
        case .commit(let queries):
            let closing = [Query(.plain("COMMIT"))]
            send(opening + queries + closing, before: opening.count, after: 1, of: work, on: slot, connection)
        case .done: release(work, slot, connection)
        case .takeBack: rollBack(slot, connection) { [weak self] in self?.release(work, slot, connection) }
        }
    }

    /// - Parameters:
    ///   - before: how many of the answers belong to the transaction's beginning,
    ///   - after: and how many to its end.
    private func send(
        _ queries: [Query], before: Int, after: Int, of work: PostgreSQLWork, on slot: PostgreSQLSlot,
        _ connection: PostgreSQLConnection
    ) {
        connection.send(queries) { [weak self] answer in
            switch answer {
            case .success(let answers):
                let own = Answers(rows: Array(answers.rows.dropFirst(before).dropLast(after)))
                self?.perform(work.received(own), of: work, on: slot, connection, isFirst: false)
            case .failure(let failure): self?.failed(work, failure, on: slot, connection)
            }
        }
    }

    private func failed(
        _ work: PostgreSQLWork, _ failure: PostgreSQLFailure, on slot: PostgreSQLSlot,
        _ connection: PostgreSQLConnection
    ) {
        let remedy = failure.remedy
        if case .fail(let error) = remedy { work.fail(error) }
        if case .failAndReconnect(let error) = remedy { work.fail(error) }
        switch remedy {
        case .reconnect, .failAndReconnect:
            if work.isCommitting, failure.isLoss { work.fail(.connectionLost) }
            retry(work, orFail: .connectionLost)
            // The end of a connection that is lost is on its way already.
            if !failure.isLoss, slot.connection === connection { slot.reconnect(.connectionLost) }
        case .retry, .fail:
            guard !work.isReading else { return release(work, slot, connection, isRetried: true) }
            rollBack(slot, connection) { [weak self] in self?.release(work, slot, connection, isRetried: true) }
        }
    }

    /// Puts a call back to the front of the queue, as often as it may begin.
    private func retry(_ work: PostgreSQLWork, orFail error: AccountError) {
        work.connection = nil
        guard !work.isSettled else { return }
        if isStopped { return work.fail(.stopped) }
        if let outage { return work.fail(.notConnected(outage)) }
        guard work.attempts < PostgreSQLWork.maximumAttempts else { return work.fail(error) }
        queue.insert(work, at: 0)
    }

    private func rollBack(
        _ slot: PostgreSQLSlot, _ connection: PostgreSQLConnection, _ then: @escaping () -> Void
    ) {
        let timer = guardBirth(slot, within: configuration.options.callTimeout)
        connection.send([Query(.plain("ROLLBACK"))]) { [weak slot] answer in
            timer.cancel()
            if case .failure(let failure) = answer, !failure.isLoss { slot?.reconnect(.connectionLost) }
            then()
        }
    }

    private func release(
        _ work: PostgreSQLWork, _ slot: PostgreSQLSlot, _ connection: PostgreSQLConnection, isRetried: Bool = false
    ) {
        work.connection = nil
        if slot.owner === work { slot.owner = nil }
        if isRetried { retry(work, orFail: .postgreSQLBusy) }
        dispatch()
    }
}
