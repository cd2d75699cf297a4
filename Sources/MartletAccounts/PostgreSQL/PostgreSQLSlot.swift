internal import MartletCore
internal import MartletIO

/// One slot of the pool: keeps one connection, and reconnects when it ends.
// lint:large-type the state of one connection: its attempts, timers and what is known of its server
final class PostgreSQLSlot {
    let index: Int
    private(set) var connection: PostgreSQLConnection?
    /// Whether it accepts calls.
    private(set) var isOpen = false
    /// Whether the server was found to be one that may be used.
    var isPrepared = false
    /// The timeline of the server.
    var timeline: UInt32?
    /// Whether a server did not tell its timeline; it is not asked again.
    var hidesTimeline = false
    /// The transaction that has exclusive use of the connection.
    var owner: PostgreSQLOperation?
    /// Whether all attempts since the last connection have failed.
    private(set) var isFailing = false
    var heartbeat: LoopTimer?
    /// Closes the connection if a statement that no call waits for does not end.
    var abandonment: LoopTimer?
    /// Whether the server is being asked to cancel a statement; the next one might be cancelled instead.
    var isCancelling = false
    /// How many batches on the connection no call waits for any longer.
    private(set) var abandoned = 0
    /// Whether the server was asked to end one of them, and none has ended since.
    private var awaitsEnd = false
    private let configuration: PostgreSQLConfiguration
    private unowned let pool: PostgreSQLPool
    /// Counts attempts, so that late events of earlier attempts are ignored.
    private var attempt = 0
    private var backoff = Backoff()
    /// The servers that were left; the next attempt starts behind them.
    private var skipped = 0
    /// How many of the addresses were left since the last connection or pause.
    private var tried = 0
    /// The number of addresses of the current attempt.
    private var candidates = 1
    private var hasBeenOpen = false
    private var deadline: LoopTimer?
    private var retryTimer: LoopTimer?
    private var generator = SystemRandomNumberGenerator()

    init(_ index: Int, _ configuration: PostgreSQLConfiguration, pool: PostgreSQLPool) {
        self.index = index
        self.configuration = configuration
        self.pool = pool
    }

    private var loop: ServiceLoop { configuration.handle.loop }

    /// The connection, if it can send.
    var ready: PostgreSQLConnection? {
        guard let connection, connection.isReady else { return nil }
        return connection
    }

    /// The connection, if a call can start on it: behind statements that no call waits for it would wait for their locks.
    var free: PostgreSQLConnection? { isOpen && owner == nil && !isCancelling && abandoned == 0 ? ready : nil }

    /// The request to cancel the statement that is running, if no call waits for any on the connection.
    var cancellation: PostgreSQLCancellation? {
        guard let connection, abandoned > 0, abandoned == connection.inFlight, !isCancelling, !awaitsEnd else {
            return nil
        }
        return connection.cancellation()
    }

    /// No call waits for a batch any longer.
    func abandonBatch() { abandoned += 1 }

    /// The server is asked to cancel a statement.
    func startCancelling() { (isCancelling, awaitsEnd) = (true, true) }

    /// A batch that no call waits for has ended.
    func abandonedBatchEnded() { (abandoned, awaitsEnd) = (abandoned - 1, false) }

    func connect() {
        attempt += 1
        let attempt = attempt
        deadline = loop.schedule(after: configuration.options.connectTimeout) { [weak self] in
            self?.deadline = nil
            self?.ended(.connectTimeout)
        }
        let lookup = HostLookup(
            configuration.target.hosts, startingAt: backoff.failures &+ skipped, configuration.resolver)
        let (handle, index) = (configuration.handle, index)
        lookup.run { result in
            _ = handle.loop.execute { handle.value?.slot(index)?.resolved(result, attempt: attempt) }
        }
    }

    /// Closes the connection; its pending batches fail as lost.
    func stop() {
        attempt += 1
        for timer in [deadline, retryTimer, heartbeat, abandonment] { timer?.cancel() }
        deadline = nil
        retryTimer = nil
        heartbeat = nil
        abandonment = nil
        isCancelling = false
        (abandoned, awaitsEnd) = (0, false)
        isOpen = false
        isPrepared = false
        timeline = nil
        owner = nil
        let closing = connection
        connection = nil
        closing?.close()
    }

    /// Closes the connection and opens another one.
    func reconnect(_ reason: AccountError) {
        guard connection != nil else { return }
        ended(reason)
    }

    /// Leaves a server that must not be used: tries the next address immediately, and pauses after all of them.
    func leave(_ reason: AccountError) {
        guard connection != nil else { return }
        skipped = (skipped + 1) % max(candidates, 1)
        tried += 1
        guard tried < candidates else {
            tried = 0
            isOpen = false
            return ended(reason)
        }
        stop()
        connect()
        pool.closed(self, nil)
    }

    private func resolved(_ result: Result<[PostgreSQLTarget.Host], AccountError>, attempt: Int) {
        guard attempt == self.attempt, connection == nil, deadline != nil else { return }
        switch result {
        case .failure(let error): ended(error)
        case .success(let servers):
            candidates = servers.count
            let connection = PostgreSQLConnection(
                configuration.target, servers: servers, on: loop,
                onReady: { [weak self] in self?.becameReady() },
                onLost: { [weak self] error in self?.lost(error, attempt: attempt) })
            self.connection = connection
            connection.start()
        }
    }

    private func becameReady() {
        deadline?.cancel()
        deadline = nil
        pool.opened(self)
    }

    /// Marks the connection as accepting calls.
    /// - Returns: whether it is a reconnection.
    func open() -> Bool {
        isOpen = true
        isFailing = false
        tried = 0
        backoff.reset()
        defer { hasBeenOpen = true }
        return hasBeenOpen
    }

    private func lost(_ error: AccountError, attempt: Int) {
        guard attempt == self.attempt else { return }
        ended(error)
    }

    /// Reconnects immediately after a connection that worked, and with a delay after a failed attempt.
    private func ended(_ error: AccountError) {
        let wasOpen = isOpen
        stop()
        guard error.code != .accountsStopped else { return pool.stop() }
        guard !wasOpen else {
            connect()
            return pool.closed(self, nil)
        }
        isFailing = true
        let delay = backoff.next(using: &generator)
        retryTimer = loop.schedule(after: delay) { [weak self] in
            self?.retryTimer = nil
            self?.connect()
        }
        pool.closed(self, error)
    }
}

/// Resolves the names of all servers, in the order in which they are tried.
final class HostLookup: Sendable {
    private let hosts: [PostgreSQLTarget.Host]
    private let first: Int
    private let resolver: Resolver

    /// - Parameter first: the address to try first, so that one that drops packets does not use up every attempt.
    init(_ hosts: [PostgreSQLTarget.Host], startingAt first: Int, _ resolver: Resolver) {
        self.hosts = hosts
        self.first = first
        self.resolver = resolver
    }

    /// Calls back once, on any thread.
    func run(_ completion: @escaping @Sendable (Result<[PostgreSQLTarget.Host], AccountError>) -> Void) {
        next(0, [], nil, completion)
    }

    private func next(
        _ index: Int, _ found: [PostgreSQLTarget.Host], _ failure: AccountError?,
        _ completion: @escaping @Sendable (Result<[PostgreSQLTarget.Host], AccountError>) -> Void
    ) {
        guard index < hosts.count else {
            let error = failure ?? .unavailable(.accountsNameUnknown, "the URL has no host")
            guard !found.isEmpty else { return completion(.failure(error)) }
            let start = first % found.count
            return completion(.success(Array(found[start...] + found[..<start])))
        }
        let host = hosts[index]
        guard host.address.isEmpty, !host.isSocket else {
            return next(index + 1, found + [host], failure, completion)
        }
        resolver.resolve(host: host.name, port: UInt16(host.port) ?? 5432) { [self] result in
            switch result {
            case .failure(let error):
                next(index + 1, found, .unavailable(.accountsNameUnknown, error.message), completion)
            case .success(let endpoints):
                let addresses = endpoints.map {
                    PostgreSQLTarget.Host(name: host.name, address: $0.addressText, port: host.port)
                }
                next(index + 1, found + addresses, failure, completion)
            }
        }
    }
}
