internal import MartletCore
internal import MartletIO
internal import MartletTLS

/// The configuration of a client.
struct RedisRouterConfiguration: Sendable {
    var url: RedisURL
    var options: RedisOptions
    /// `nil` for plaintext.
    var security: TLSClientContext?
    var resolver: Resolver
    var clock: Clock
    var logger: Logger

    /// Whether servers that are replicas are rejected, and others found instead.
    var isDistributed: Bool { if case .single = url.layout { false } else { true } }

    var topology: any RedisTopology {
        switch url.layout {
        case .single(let address): SingleTopology(address)
        case .sentinel(let sentinels, _): SentinelTopology(sentinels: sentinels)
        case .cluster(let nodes): ClusterTopology(seeds: nodes)
        }
    }

    /// The configuration of connections to nodes, or of a subscription.
    func connection(_ options: RedisOptions, channel: String? = nil) -> RedisConnectionConfiguration {
        var settings = RedisConnectionState.Settings()
        settings.credentials = url.credentials
        settings.database = url.database
        settings.clientName = options.clientName
        settings.maximumInFlight = options.maximumInFlight
        settings.channel = channel
        if case .sentinel = url.layout { settings.requiresMaster = true }
        return connection(options, settings)
    }

    /// The configuration of connections to replicas.
    var replica: RedisConnectionConfiguration {
        var configuration = connection(options)
        configuration.settings.requiresMaster = false
        if case .cluster = url.layout { configuration.settings.readsReplica = true }
        return configuration
    }

    /// The configuration of connections to sentinels.
    func sentinel(channel: String? = nil) -> RedisConnectionConfiguration {
        var options = RedisOptions.listening
        options.connectTimeout = self.options.connectTimeout
        var settings = RedisConnectionState.Settings()
        settings.credentials = url.sentinelCredentials
        settings.clientName = options.clientName
        settings.channel = channel
        return connection(options, settings)
    }

    private func connection(
        _ options: RedisOptions, _ settings: RedisConnectionState.Settings
    ) -> RedisConnectionConfiguration {
        RedisConnectionConfiguration(
            settings: settings, security: security, serverName: url.security?.serverName,
            commandTimeout: options.commandTimeout, connectTimeout: options.connectTimeout,
            heartbeatInterval: options.heartbeatInterval, resolver: resolver, clock: clock)
    }

    var node: RedisNodeConfiguration {
        RedisNodeConfiguration(
            connection: connection(options), connections: max(options.connections, 2),
            waitReplicas: options.waitReplicas, waitTimeout: options.waitTimeout, expectsReplicas: isDistributed,
            maximumWrites: options.maximumInFlight)
    }
}

/// Performs the actions of `RedisRouting` on the event loop: connections, commands, timers.
final class RedisRouter {
    typealias Address = RedisURL.Address

    private struct Pending {
        let command: RedisCommand
        let deadline: MonotonicTime
        let completion: (RedisConnection.CommandResult) -> Void
        /// Whether it writes again what was acknowledged before.
        let isRepeated: Bool
        var result: RedisConnection.CommandResult?
    }

    private let handle: LoopBound<RedisRouter>
    let configuration: RedisRouterConfiguration
    private let recorder: RedisStatusRecorder
    private var routing: RedisRouting
    private var nodes: [Address: RedisNode] = [:]
    private var sentinels: [Address: SentinelConnections] = [:]
    private var failedSentinels: Set<Address> = []
    private var questionFailures = QuestionFailures()
    private var lostMasters = LostMasters()
    private var subscriptions: [RedisSubscription] = []
    private var pending: [RedisRouting.Ticket: Pending] = [:]
    private var lastTicket: RedisRouting.Ticket = 0
    private let waiters: ConnectWaiters
    private var timer: LoopTimer?
    private var isStopped = false
    private var repeats = RepeatedWrites()
    private var replicationWarnings = LogInterval(.seconds(10))
    /// The nodes that have said whether they evict keys.
    private var askedForEviction: Set<Address> = []
    /// `nil` where replicas serve no reads.
    private var replicas: ReplicaConnections?

    init(
        _ handle: LoopBound<RedisRouter>, _ configuration: RedisRouterConfiguration, _ recorder: RedisStatusRecorder
    ) {
        self.handle = handle
        self.configuration = configuration
        self.recorder = recorder
        routing = RedisRouting(configuration.topology)
        waiters = ConnectWaiters(on: handle.loop, connectTimeout: configuration.options.connectTimeout)
    }

    private var loop: ServiceLoop { handle.loop }
    private var now: MonotonicTime { configuration.clock.monotonicTime }

    func start() {
        loop.preconditionInLoop()
        if configuration.options.readsReplicas { replicas = makeReplicas() }
        perform(routing.start(at: now))
    }

    /// Closes all connections for good; pending commands and waiters fail.
    func stop() {
        loop.preconditionInLoop()
        guard !isStopped else { return }
        isStopped = true
        timer?.cancel()
        repeats.timer?.cancel()
        recorder.stopped(at: now)
        for node in nodes.values { node.close() }
        for sentinel in sentinels.values { sentinel.close() }
        for subscription in subscriptions { subscription.stop() }
        replicas?.close()
        nodes = [:]
        sentinels = [:]
        subscriptions = []
        repeats.held = []
        let rest = pending.values
        pending = [:]
        for command in rest { command.completion(.failure(.stopped)) }
        waiters.resume(.stopped)
    }

    /// Executes a command; `completion` is called once.
    func submit(
        _ command: RedisCommand, deadline: MonotonicTime,
        _ completion: @escaping (RedisConnection.CommandResult) -> Void
    ) {
        loop.preconditionInLoop()
        guard !isStopped else { return completion(.failure(.stopped)) }
        guard command.traits.contains(.acceptsReplicas), let replicas, let slot = command.slot,
            let master = routing.node(of: slot)
        else { return submitToMaster(command, deadline: deadline, completion) }
        let isReady = routing.isReady(master)
        replicas.read(command, of: master, isMasterReady: isReady, deadline: deadline, completion) { [weak self] in
            guard let self else { return completion(.failure(.stopped)) }
            submitToMaster(command, deadline: deadline, completion)
        }
    }

    private func submitToMaster(
        _ command: RedisCommand, deadline: MonotonicTime, isRepeated: Bool = false,
        _ completion: @escaping (RedisConnection.CommandResult) -> Void
    ) {
        guard !isStopped else { return completion(.failure(.stopped)) }
        lastTicket &+= 1
        pending[lastTicket] = Pending(
            command: command, deadline: deadline, completion: completion, isRepeated: isRepeated)
        let request = RedisRouting.Request(slot: command.slot, deadline: deadline, traits: command.traits)
        perform(routing.submit(lastTicket, request, at: now))
    }

    /// Calls back when connected, with the error of the current attempt, or after a time without either.
    func whenConnected(_ completion: @escaping ConnectWaiters.Completion) {
        loop.preconditionInLoop()
        if isStopped { return completion(.stopped) }
        if routing.isAvailable { return completion(nil) }
        waiters.add(completion)
    }

    /// Adds a subscription, which is moved to another node when its own is lost.
    func add(_ subscription: RedisSubscription) {
        loop.preconditionInLoop()
        guard !isStopped else { return subscription.stop() }
        subscriptions.append(subscription)
        subscription.move(to: subscriptionNode)
    }

    func remove(_ subscription: RedisSubscription) {
        subscription.stop()
        subscriptions.removeAll { $0 === subscription }
    }

    private var subscriptionNode: Address? { routing.anyNode }

    private func perform(_ actions: [RedisRouting.Action]) {
        for action in actions {
            guard !isStopped else { return }
            switch action {
            case .send(let ticket, let node, let isAsking): send(ticket, node, isAsking)
            case .finish(let ticket, let error): finish(ticket, error)
            case .topology(let action): perform(action)
            }
        }
        schedule()
    }

    private func send(_ ticket: RedisRouting.Ticket, _ address: Address, _ isAsking: Bool) {
        guard let command = pending[ticket] else { return }
        if !command.isRepeated, repeats.holding.contains(address) {
            guard repeats.held.count < configuration.options.maximumInFlight else {
                return ended(ticket, .failure(.overloaded))
            }
            return repeats.held.append(.init(ticket: ticket, address: address, isAsking: isAsking))
        }
        guard let node = nodes[address] else { return ended(ticket, .failure(.notConnected)) }
        node.submit(command.command, deadline: command.deadline, isAsking: isAsking) { [weak self] result in
            self?.ended(ticket, result)
        }
    }

    private func ended(_ ticket: RedisRouting.Ticket, _ result: RedisConnection.CommandResult) {
        guard !isStopped else { return }
        pending[ticket]?.result = result
        let outcome: RedisRouting.Outcome
        switch result {
        case .success(let timed):
            if case .redirect(let redirect) = timed.reply { outcome = .redirected(redirect) } else { outcome = .reply }
        case .failure(let error): outcome = .failed(error)
        }
        perform(routing.ended(ticket, outcome, at: now))
    }

    private func finish(_ ticket: RedisRouting.Ticket, _ error: StoreError?) {
        guard let command = pending.removeValue(forKey: ticket) else { return }
        command.completion(error.map { .failure($0) } ?? command.result ?? .failure(.notConnected))
    }

    private func schedule() {
        guard !isStopped, let next = routing.nextTick else { return }
        if let timer, timer.deadline <= next { return }
        timer?.cancel()
        timer = loop.schedule(after: max(next.since(now), .milliseconds(1))) { [weak self] in
            guard let self, !isStopped else { return }
            timer = nil
            perform(routing.tick(at: now))
        }
    }
}

// MARK: - Nodes, sentinels and subscriptions

extension RedisRouter {
    private func perform(_ action: TopologyAction) {
        switch action {
        case .open(let address):
            guard nodes[address] == nil else { return }
            let node = RedisNode(address, on: loop, configuration.node) { [weak self] in self?.serve($0, address) }
            nodes[address] = node
            node.start()
        case .close(let address):
            nodes.removeValue(forKey: address)?.close()
            questionFailures.remove(address)
            recorder.closed(address)
        case .openSentinel(let address):
            let connections = SentinelConnections(address, on: loop, configuration) { [weak self] in
                self?.serve($0, ofSentinel: address)
            }
            sentinels[address] = connections
            connections.start()
        case .closeSentinel(let address):
            failedSentinels.remove(address)
            questionFailures.remove(address)
            sentinels.removeValue(forKey: address)?.close()
        case .ask(let question, let address): ask(question, address)
        case .moved(let slots):
            replicas?.mastersChanged(routing.masters)
            repeats.changes.moved(slots)
            configuration.logger.log(recorder.mastersMoved(at: now))
            repeats.holding.formUnion(routing.masters)
            masterChanged()
            writeAgain()
            sendHeld()
        case .epochLowered(let old, let new):
            configuration.logger.warning(
                "redis sentinels agree on an older epoch", ("epoch", String(new)), ("before", String(old)),
                ("masters", routing.masters.map(\.description).joined(separator: ",")))
        }
    }

    private func serve(_ event: RedisNode.Event, _ address: Address) {
        guard !isStopped else { return }
        switch event {
        case .ready:
            recorder.opened(address)
            configuration.logger.info("redis connected", ("address", "\(address)"), ("purpose", "store"))
            askForEviction(address)
            repeats.holding.insert(address)
            perform(routing.nodeReady(address, at: now))
            availabilityChanged(nil)
            repeats.changes.connected(address)
            writeAgain()
            sendHeld()
        case .down(let error):
            recorder.closed(address)
            if routing.masters.contains(address) { repeats.changes.lost(at: now) }
            perform(routing.nodeDown(address, error, at: now))
            availabilityChanged(error)
            repeats.holding.remove(address)
            sendHeld()
        case .demoted: perform(routing.suspect(at: now))
        case .unreplicated(let count):
            recorder.unreplicated(count)
            if replicationWarnings.isDue(at: now) {
                configuration.logger.warning(
                    "redis write acknowledged without a replica", ("code", "store.unreplicated"),
                    ("address", "\(address)"))
            }
        case .stopped: stop()
        }
    }

    /// Warns of a node that may evict what is stored. A user without the right to ask is not warned.
    private func askForEviction(_ address: Address) {
        guard configuration.options.warnsOfEviction, askedForEviction.insert(address).inserted else { return }
        let deadline = now + configuration.options.commandTimeout
        nodes[address]?.submit(EvictionPolicy.question, deadline: deadline, isAsking: false) { [weak self] result in
            guard let self, case .success(let timed) = result, let policy = EvictionPolicy(timed.reply) else { return }
            configuration.logger.warning(
                "redis may evict sessions", ("code", "store.evicting"), ("address", "\(address)"),
                ("reason", policy.warning))
        }
    }

    private func availabilityChanged(_ error: StoreError?) {
        guard !isStopped else { return }
        reportMasters()
        if routing.isAvailable {
            configuration.logger.log(recorder.connected(at: now))
            waiters.resume(nil)
        } else if let error, routing.isCutOff {
            outage(error)
        }
        moveSubscriptions()
    }

    /// Reports masters that cannot be reached, and those that can be again. A single one is the outage of the store.
    private func reportMasters() {
        let masters = routing.masters
        let connected = Set(masters.filter { routing.isReady($0) })
        var lost: [Address: StoreError] = [:]
        for master in masters { lost[master] = routing.failure(of: master) }
        recorder.masters(connected: connected.count, of: masters.count, lost: lost, unassigned: routing.unassigned)
        lostMasters.keep(masters)
        guard masters.count > 1 else { return }
        let changes = lostMasters.update(lost: lost.keys, connected: connected)
        for master in changes.lost {
            configuration.logger.warning(
                "redis master lost", ("address", "\(master)"), ("code", "\(lost[master]?.code ?? .redisNotConnected)"),
                ("reason", lost[master]?.message ?? ""))
        }
        for master in changes.back { configuration.logger.info("redis master back", ("address", "\(master)")) }
    }

    private func outage(_ error: StoreError) {
        if let line = recorder.down(error, at: now) {
            configuration.logger.warning(
                "redis unavailable",
                [("code", "\(error.code)"), ("reason", error.message), ("purpose", "store")] + line.fields)
        }
        waiters.resume(error)
    }

    private func masterChanged() {
        configuration.logger.info(
            "redis master changed",
            ("masters", routing.masters.map(\.description).sorted().joined(separator: ",")))
        availabilityChanged(nil)
    }

    private func moveSubscriptions() {
        for subscription in subscriptions { subscription.move(to: subscriptionNode) }
    }

    private func ask(_ question: TopologyQuestion, _ address: Address) {
        var words = question.words
        if case .sentinel(_, let name) = configuration.url.layout { words.append(name) }
        let arguments = words.map { Array($0.utf8) }
        let completion: (RedisConnection.CommandResult) -> Void = { [weak self] result in
            guard let self, !isStopped else { return }
            var reply: RedisReply?
            if case .success(let timed) = result { reply = timed.reply }
            questionFailures.answered(question, by: address, result)
            if questionFailures.contains(address), !routing.isAvailable, let reason = questionReason { outage(reason) }
            perform(routing.answered(question, by: address, reply, at: now))
            if question == .slots, let replicas, let reply {
                replicas.learnt(ReplicaLists.ofSlots(reply, from: address), masters: routing.masters)
            }
        }
        if let sentinel = sentinels[address] {
            sentinel.ask(arguments, deadline: now + configuration.options.commandTimeout, completion)
        } else if let node = nodes[address] {
            let command = RedisCommand(arguments, key: nil)
            node.submit(command, deadline: now + configuration.options.commandTimeout, isAsking: false, completion)
        } else {
            completion(.failure(.notConnected))
        }
    }

    /// Why no server says where keys are.
    private var questionReason: StoreError? {
        if case .sentinel = configuration.url.layout {
            return questionFailures.reason(of: sentinels.keys) { failedSentinels.contains($0) }
        }
        return questionFailures.reason(of: routing.known) { routing.failure(of: $0) != nil }
    }

    private func serve(_ event: SentinelConnections.Event, ofSentinel address: Address) {
        guard !isStopped else { return }
        switch event {
        case .ready:
            failedSentinels.remove(address)
            perform(routing.sentinelReady(address, at: now))
        case .down(let error):
            routing.sentinelDown(address)
            failedSentinels.insert(address)
            if routing.masters.isEmpty, failedSentinels.count >= sentinels.count { outage(error) }
        case .masterAnnounced: perform(routing.suspect(at: now))
        case .stopped: stop()
        }
    }
}

// MARK: - Replicas

extension RedisRouter {
    private func makeReplicas() -> ReplicaConnections {
        var asks = true
        // The maps of a cluster list replicas.
        if case .cluster = configuration.url.layout { asks = false }
        return ReplicaConnections(
            on: loop, configuration.replica, logger: configuration.logger, asks: asks
        ) { [weak self] in self?.askForReplicas() }
    }

    /// Asks a sentinel, or the only master.
    private func askForReplicas() {
        guard let master = routing.masters.first else { return }
        let deadline = now + configuration.options.commandTimeout
        let isSentinel = !sentinels.isEmpty
        let completion: (RedisConnection.CommandResult) -> Void = { [weak self] result in
            guard let self, case .success(let timed) = result else { return }
            let list = isSentinel ? ReplicaLists.ofSentinel(timed.reply) : ReplicaLists.ofMaster(timed.reply)
            guard let list, routing.masters.contains(master) else { return }
            replicas?.learnt([master: list], masters: routing.masters)
        }
        switch configuration.url.layout {
        case .single:
            let command = RedisCommand([Array("ROLE".utf8)], key: nil)
            nodes[master]?.submit(command, deadline: deadline, isAsking: false, completion)
        case .sentinel(_, let name):
            let words = ["SENTINEL", "REPLICAS", name].map { Array($0.utf8) }
            sentinels.values.first(where: \.isReady)?.ask(words, deadline: deadline, completion)
        case .cluster: break
        }
    }
}

// MARK: - What a new master may not have

extension RedisRouter {
    /// Records an acknowledged write.
    func record(_ replay: RedisReplay) {
        loop.preconditionInLoop()
        let isDue = repeats.record(replay, at: now, lateness: lateness) { routing.node(of: $0) }
        repeats.successor?.record([replay])
        guard isDue, !isStopped else { return }
        repeats.queue.add(
            writes: replay.kind == .write ? [replay.command] : [], ends: replay.kind == .write ? [] : [replay.command])
        sendReplays()
    }

    /// How long after a change of masters what a former one has acknowledged may be recorded.
    private var lateness: Duration { configuration.options.commandTimeout + .seconds(2) }

    /// Passes acknowledged writes on to the client that takes over: recent ones now, and others when they are recorded.
    func handOver(to successor: RedisClient) {
        loop.preconditionInLoop()
        repeats.successor = successor
        successor.adopt(repeats.recent.entries)
    }

    /// Takes over the recent writes of another client.
    func adopt(_ entries: [RecentWrites.Entry]) {
        loop.preconditionInLoop()
        for entry in entries { repeats.recent.add(entry.replay, at: entry.time) }
    }

    /// Sessions have ended, here or at another instance.
    func forget(_ numbers: [UInt64]) {
        loop.preconditionInLoop()
        repeats.recent.forget(numbers)
    }

    /// Repeats recent writes where another server serves their keys now, or the same one again.
    private func writeAgain() {
        guard !isStopped else { return }
        recorder.mastersChanged(at: now)
        let lostAt = repeats.changes.lostAt ?? now
        let (routing, changes) = (routing, repeats.changes)
        let commands = repeats.recent.commands(at: now, lostAt: lostAt) { slot in
            guard let master = routing.node(of: slot), routing.isReady(master) else { return false }
            return changes.contains(slot, of: master)
        }
        if !changes.isEmpty, repeats.recent.count > 0 { repeats.wroteAgain(changes, at: now, lateness: lateness) }
        let isComplete = routing.unassigned == 0 && routing.masters.allSatisfy { routing.isReady($0) }
        repeats.changes.written(at: now) { keys in
            switch keys {
            case .slot(let slot): isComplete || routing.node(of: slot).map { routing.isReady($0) } ?? false
            case .node(let node): routing.isReady(node) || !routing.masters.contains(node)
            case .all: routing.masters.allSatisfy { routing.isReady($0) }
            }
        }
        guard !commands.writes.isEmpty || !commands.ends.isEmpty else { return }
        configuration.logger.info(
            "redis writes repeated", ("writes", String(commands.writes.count)), ("ends", String(commands.ends.count)))
        repeats.queue.add(writes: commands.writes, ends: commands.ends)
        sendReplays()
    }

    private func sendReplays() {
        let due = repeats.queue.next()
        recorder.repeated(due.count)
        for command in due {
            // Fails from within this call if there is no connection; succeeds later.
            let deadline = now + configuration.options.commandTimeout
            submitToMaster(command, deadline: deadline, isRepeated: true) { [weak self] result in
                guard let self, !isStopped else { return }
                repeats.queue.finished(command.slot)
                switch result {
                case .success: sendReplays()
                case .failure: retryReplays()
                }
                sendHeld()
            }
        }
    }

    /// Sends what was held for nothing any more.
    private func sendHeld() {
        for command in repeats.released() { send(command.ticket, command.address, command.isAsking) }
    }

    /// Begins anew after a failure: what has been repeated already changes nothing.
    private func retryReplays() {
        repeats.queue.removeAll()
        repeats.changes.failed()
        guard repeats.timer == nil else { return }
        repeats.timer = loop.schedule(after: .seconds(1)) { [weak self] in
            self?.repeats.timer = nil
            self?.writeAgain()
        }
    }
}
