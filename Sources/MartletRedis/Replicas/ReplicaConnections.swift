internal import MartletCore
internal import MartletIO

/// The connections to replicas, on the event loop: performs the actions of `ReplicaReads`.
final class ReplicaConnections {
    typealias Address = RedisURL.Address
    typealias Completion = (RedisConnection.CommandResult) -> Void

    private let loop: ServiceLoop
    private let configuration: RedisConnectionConfiguration
    private let logger: Logger
    private let ask: () -> Void
    private var reads: ReplicaReads
    private var connections: [Address: RedisConnection] = [:]
    private var timer: LoopTimer?
    private var isClosed = false
    private var warnings = LogInterval(.seconds(10))

    /// - Parameters:
    ///   - asks: whether the list of replicas has to be asked for.
    ///   - ask: asks for it; the reply is passed to `learnt`.
    init(
        on loop: ServiceLoop, _ configuration: RedisConnectionConfiguration, logger: Logger, asks: Bool,
        _ ask: @escaping () -> Void
    ) {
        self.loop = loop
        self.configuration = configuration
        self.logger = logger
        self.ask = ask
        reads = ReplicaReads(asks: asks)
    }

    private var now: MonotonicTime { configuration.clock.monotonicTime }
    /// The part of a command's time that a replica may take, so that enough is left for the master.
    private var share: Duration { configuration.commandTimeout * 2 / 5 }

    /// Closes all connections; their reads go on without a replica.
    func close() {
        guard !isClosed else { return }
        isClosed = true
        timer?.cancel()
        let closing = connections.values
        connections = [:]
        for connection in closing { connection.stop() }
    }

    /// Reads a value from a replica.
    /// - Parameters:
    ///   - isMasterReady: whether the master can be asked instead.
    ///   - completion: called once if a replica has the value.
    ///   - otherwise: called once if none has it, or none responds in its part of the time.
    func read(
        _ command: RedisCommand, of master: Address, isMasterReady: Bool, deadline: MonotonicTime,
        _ completion: @escaping Completion, otherwise: @escaping () -> Void
    ) {
        guard !isClosed else { return otherwise() }
        let (chosen, actions) = reads.choose(of: master, isMasterReady: isMasterReady, at: now)
        perform(actions)
        guard let chosen, let connection = connections[chosen] else { return otherwise() }
        let limit = min(deadline, now + share)
        connection.submit(command.arguments, expecting: command.expectation, deadline: limit) { result in
            guard case .success(let timed) = result, case .bytes = timed.reply else { return otherwise() }
            completion(result)
        }
    }

    /// Servers have listed the replicas of some masters.
    func learnt(_ lists: [Address: [Address]], masters: [Address]) {
        guard !isClosed else { return }
        perform(reads.learnt(lists, masters: masters))
    }

    func mastersChanged(_ masters: [Address]) {
        guard !isClosed else { return }
        perform(reads.mastersChanged(masters, at: now))
    }

    private func perform(_ actions: [ReplicaReads.Action]) {
        for action in actions {
            guard !isClosed else { return }
            switch action {
            case .open(let address): open(address)
            case .close(let address): connections.removeValue(forKey: address)?.stop()
            case .check(let address): check(address)
            case .ask: ask()
            }
        }
        schedule()
    }

    private func open(_ address: Address) {
        guard connections[address] == nil else { return }
        let connection = RedisConnection(to: address, on: loop, configuration) { [weak self] event in
            guard let self, !isClosed, connections[address] != nil else { return }
            switch event {
            case .ready:
                logger.info("redis connected", ("address", "\(address)"), ("purpose", "replica"))
                perform(reads.ready(address))
            case .down(let error):
                reads.down(address)
                guard warnings.isDue(at: now) else { return }
                logger.warning(
                    "redis unavailable", ("code", "\(error.code)"), ("reason", error.message),
                    ("address", "\(address)"), ("purpose", "replica"))
            case .message, .stopped: break
            }
        }
        connections[address] = connection
        connection.start()
    }

    private func check(_ address: Address) {
        guard let connection = connections[address] else { return }
        connection.submit([Array("ROLE".utf8)], expecting: .anything, deadline: now + share) { [weak self] result in
            guard let self, !isClosed, case .success(let timed) = result else { return }
            reads.checked(address, isLinked: ReplicaLists.isLinked(timed.reply))
        }
    }

    private func schedule() {
        guard !isClosed, let next = reads.nextTick else { return }
        if let timer, timer.deadline <= next { return }
        timer?.cancel()
        timer = loop.schedule(after: max(next.since(now), .milliseconds(1))) { [weak self] in
            guard let self, !isClosed else { return }
            timer = nil
            perform(reads.tick(at: now))
        }
    }
}
