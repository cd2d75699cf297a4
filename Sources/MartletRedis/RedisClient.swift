package import MartletCore
package import MartletIO
internal import MartletTracing

/// Timeouts and limits of a Redis client.
package struct RedisOptions: Sendable {
    /// The timeout of a command, from the call to the reply; when it expires the connection is closed.
    package var commandTimeout = Duration.milliseconds(500)
    /// The timeout of a connection attempt, from name resolution to the end of the handshake.
    package var connectTimeout = Duration.seconds(1)
    /// The interval of PINGs on an idle connection.
    package var heartbeatInterval = Duration.seconds(5)
    /// The maximum number of commands in flight; further ones fail with `redis.overloaded`.
    package var maximumInFlight = 1024
    /// The number of connections to each node, at least 2: one of them is for writes that wait for replicas.
    package var connections = 2
    /// How many replicas a rotation or a revocation waits for, where there are any; 0 for none.
    package var waitReplicas = 1
    /// How long it waits for them.
    package var waitTimeout = Duration.milliseconds(100)
    /// Whether replicas serve reads that ask for it.
    package var readsReplicas = false
    /// Whether servers are asked how they evict keys, and a warning is logged of one that does.
    package var warnsOfEviction = false
    /// The name shown by `CLIENT LIST`.
    package var clientName = "martlet"

    package init() {}
}

/// A Redis client: pipelined connections to one server, to the master that Sentinel names, or to the nodes of a cluster,
/// with automatic reconnection.
///
/// While disconnected, every command fails immediately. If a connection ends before the reply, the outcome is unknown: a
/// command is sent again only if its traits allow that, and fails with `redis.connection_lost` or `redis.timeout`
/// otherwise.
package final class RedisClient: Sendable {
    /// Which data it reads and writes.
    private struct Location: Equatable {
        let layout: RedisURL.Layout
        let database: Int
    }

    private let location: Location
    let recorder: RedisStatusRecorder
    let handle: LoopBound<RedisRouter>
    let clock: Clock
    /// What this instance's clients have written: Redis itself has no limit for them.
    let meter: StoreMeter
    /// What cannot be read.
    package let failures: SealFailures
    private let options: RedisOptions
    private let logger: Logger
    private let make: @Sendable (LoopBound<RedisRouter>) -> RedisRouter

    /// Creates a client, which connects after `start()`.
    /// - Throws: a `tls.` code if a TLS file of the URL is unusable.
    package init(
        _ url: RedisURL, options: RedisOptions, loop: ServiceLoop, resolver: Resolver, clock: Clock, logger: Logger
    ) throws(StoreError) {
        let configuration = RedisRouterConfiguration(
            url: url, options: options, security: try url.security?.makeContext(), resolver: resolver, clock: clock,
            logger: logger)
        let recorder = RedisStatusRecorder(maximumInFlight: options.maximumInFlight, now: clock.monotonicTime)
        self.recorder = recorder
        location = Location(layout: url.layout, database: url.database)
        self.options = options
        self.clock = clock
        meter = StoreMeter(clock: clock)
        failures = SealFailures(clock: clock, logger: logger)
        self.logger = logger
        handle = LoopBound(loop)
        make = { RedisRouter($0, configuration, recorder) }
    }

    /// Whether replicas serve reads that ask for it.
    var readsReplicas: Bool { options.readsReplicas }

    /// The status of the connections.
    package var status: RedisStatus { recorder.status }

    /// Starts connecting, and reconnects until `shutdown()`.
    package func start() {
        let (handle, recorder, make) = (handle, recorder, make)
        _ = handle.loop.execute {
            guard handle.value == nil, recorder.status.state != .stopped else { return }
            let router = make(handle)
            handle.value = router
            router.start()
        }
    }

    /// Closes the connections without waiting; pending commands fail with `redis.stopped` or `redis.connection_lost`.
    package func shutdown() {
        recorder.stopped(at: clock.monotonicTime)
        let handle = handle
        _ = handle.loop.execute {
            handle.value?.stop()
            handle.value = nil
        }
    }

    /// Waits until the client is connected.
    /// - Throws: the error of the current connection attempt if it fails; `redis.connect_timeout` if none ends in time.
    package func waitUntilConnected() async throws(StoreError) {
        try await handle.waitUntilConnected { $0.whenConnected($1) }
    }

    /// Executes one command.
    /// - Returns: the reply; `.error` only for errors of this command, not of the server.
    /// - Throws: a `redis.`, `io.` or `tls.` code for every kind of outage.
    package func execute(_ command: RedisCommand) async throws(StoreError) -> RedisReply {
        guard TraceScope.isSampled else { return try await send(command) }
        let name = String(decoding: command.arguments.first ?? [], as: UTF8.self)
        return try await TraceScope.span(
            "redis \(name)", .client,
            [SpanAttribute("db.system.name", "redis"), SpanAttribute("db.operation.name", name)]
        ) { () async throws(StoreError) in try await send(command) }
    }

    private func send(_ command: RedisCommand) async throws(StoreError) -> RedisReply {
        // Replicas may respond while no master does.
        try recorder.beginCommand(needsMaster: !command.traits.contains(.acceptsReplicas))
        let deadline = clock.monotonicTime + options.commandTimeout
        let handle = handle
        let result: RedisConnection.CommandResult = await withCheckedContinuation { continuation in
            let accepted = handle.loop.execute {
                guard let router = handle.value else { return continuation.resume(returning: .failure(.stopped)) }
                router.submit(command, deadline: deadline) { continuation.resume(returning: $0) }
            }
            if !accepted { continuation.resume(returning: .failure(.stopped)) }
        }
        switch result {
        case .success(let timed):
            let rejection = command.rejection(in: timed.reply)
            let isExecuted = rejection == nil || timed.reply.isUnreadable
            logger.log(
                recorder.finish(
                    command, rejection, isExecuted: isExecuted, latency: timed.latency, at: clock.monotonicTime))
            return timed.reply
        case .failure(let error):
            logger.log(recorder.finish(command, error, isExecuted: false, latency: nil, at: clock.monotonicTime))
            throw error
        }
    }

    /// Records an acknowledged write, which is repeated at a master that may not have it.
    package func record(_ replays: [RedisReplay]) {
        guard !replays.isEmpty else { return }
        let handle = handle
        _ = handle.loop.execute {
            for replay in replays { handle.value?.record(replay) }
        }
    }

    /// Passes acknowledged writes on to a client of the same servers that takes over, until this one is shut down.
    ///
    /// What is repeated at a new master would otherwise be forgotten with this client, ends of sessions included.
    package func handOver(to successor: RedisClient) {
        guard location == successor.location else { return }
        let handle = handle
        _ = handle.loop.execute { handle.value?.handOver(to: successor) }
    }

    func adopt(_ entries: [RecentWrites.Entry]) {
        let handle = handle
        _ = handle.loop.execute { handle.value?.adopt(entries) }
    }

    /// Whether its keys are divided among nodes, which fail one by one.
    var isCluster: Bool { if case .cluster = location.layout { true } else { false } }

    /// Whether a master may lack what another instance has acknowledged, and may still get it: for a while after a
    /// change.
    package var mayMissWrites: Bool {
        guard let changed = status.mastersChanged else { return false }
        return clock.monotonicTime.since(changed) < RecentWrites.endLifetime
    }

    /// Executes now what would be repeated at a new master.
    package func repeatNow(_ replay: RedisReplay) async throws(StoreError) {
        try await execute(replay.command).accepted()
    }

    /// Sessions have ended, also at other instances: writes to them are no longer repeated.
    package func forget(_ numbers: [UInt64]) {
        let handle = handle
        _ = handle.loop.execute { handle.value?.forget(numbers) }
    }

    /// Executes one command, at most once.
    /// - Parameter key: one of its keys, which determines the node; `nil` if any node can execute it.
    package func command(
        _ arguments: [[UInt8]], on key: [UInt8]? = nil, expecting expectation: RedisExpectation = .anything
    ) async throws(StoreError) -> RedisReply {
        try await execute(RedisCommand(arguments, expecting: expectation, key: key))
    }
}

extension Logger {
    /// Logs that commands fail, or no longer do.
    func log(_ change: CommandFailures.Change?) {
        switch change {
        case .failing(let error, let line):
            warning("redis commands fail", [("code", "\(error.code)"), ("reason", error.message)] + line.fields)
        case .succeeding: info("redis commands succeed")
        case nil: break
        }
    }
}
