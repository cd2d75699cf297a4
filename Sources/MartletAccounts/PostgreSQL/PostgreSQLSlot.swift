internal import MartletCore
internal import MartletIO

/// One place of the pool: makes a connection, and the next one when it ends.
final class PostgreSQLSlot {
    private static let shortestPause = 50
    private static let longestPause = 1800

    let index: Int
    private(set) var connection: PostgreSQLConnection?
    /// Whether it takes calls.
    private(set) var isOpen = false
    /// Whether the session has its settings.
    var isPrepared = false
    /// The change that has the connection to itself.
    var owner: PostgreSQLWork?
    /// Whether no attempt has come to anything since the last connection.
    private(set) var isFailing = false
    var heartbeat: LoopTimer?
    private let configuration: PostgreSQLConfiguration
    private unowned let pool: PostgreSQLPool
    /// Counts attempts, so that what comes late from an earlier one is known as such.
    private var attempt = 0
    private var failures = 0
    private var hasBeenOpen = false
    private var deadline: LoopTimer?
    private var pause: LoopTimer?
    private var generator = SystemRandomNumberGenerator()

    init(_ index: Int, _ configuration: PostgreSQLConfiguration, pool: PostgreSQLPool) {
        self.index = index
        self.configuration = configuration
        self.pool = pool
    }

    private var loop: EventLoop { configuration.handle.loop }

    /// The connection, if something can be sent on it.
    var ready: PostgreSQLConnection? {
        guard let connection, connection.isReady else { return nil }
        return connection
    }

    /// The connection, if a call may begin on it.
    var free: PostgreSQLConnection? { isOpen && owner == nil ? ready : nil }

    func connect() {
        attempt += 1
        let attempt = attempt
        deadline = loop.schedule(after: configuration.options.connectTimeout) { [weak self] in
            self?.deadline = nil
            self?.ended(.connectTimeout)
        }
        let lookUp = HostLookUp(configuration.target.hosts, startingAt: failures, configuration.resolver)
        let (handle, index) = (configuration.handle, index)
        lookUp.run { answer in
            _ = handle.loop.execute { handle.value?.slot(index)?.resolved(answer, attempt: attempt) }
        }
    }

    /// Lets go of everything; what waits on the connection fails as lost.
    func stop() {
        attempt += 1
        for timer in [deadline, pause, heartbeat] { timer?.cancel() }
        deadline = nil
        pause = nil
        heartbeat = nil
        isOpen = false
        isPrepared = false
        owner = nil
        let ending = connection
        connection = nil
        ending?.close()
    }

    /// Gives the connection up and makes another one.
    func reconnect(_ reason: AccountError) {
        guard connection != nil else { return }
        ended(reason)
    }

    private func resolved(_ answer: Result<[PostgreSQLTarget.Host], AccountError>, attempt: Int) {
        guard attempt == self.attempt, connection == nil, deadline != nil else { return }
        switch answer {
        case .failure(let error): ended(error)
        case .success(let servers):
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

    /// Calls may begin on the connection.
    /// - Returns: whether it takes the place of an earlier one.
    func open() -> Bool {
        isOpen = true
        isFailing = false
        failures = 0
        defer { hasBeenOpen = true }
        return hasBeenOpen
    }

    private func lost(_ error: AccountError, attempt: Int) {
        guard attempt == self.attempt else { return }
        ended(error)
    }

    /// A connection that worked is made anew at once; an attempt that failed waits before the next one.
    private func ended(_ error: AccountError) {
        let wasOpen = isOpen
        stop()
        guard error.code != .accountsStopped else { return pool.stop() }
        guard !wasOpen else {
            connect()
            return pool.closed(self, nil)
        }
        isFailing = true
        failures += 1
        let ceiling = min(PostgreSQLSlot.shortestPause << min(failures, 10), PostgreSQLSlot.longestPause)
        let wait = Duration.milliseconds(Int.random(in: ceiling / 2...ceiling, using: &generator))
        pause = loop.schedule(after: wait) { [weak self] in
            self?.pause = nil
            self?.connect()
        }
        pool.closed(self, error)
    }
}

/// Looks up the names of all servers, and puts them in the order in which they are tried.
final class HostLookUp: Sendable {
    private let hosts: [PostgreSQLTarget.Host]
    private let resolver: Resolver

    /// - Parameter first: which server to begin with: one that swallows packets must not use up every attempt.
    init(_ hosts: [PostgreSQLTarget.Host], startingAt first: Int, _ resolver: Resolver) {
        let start = hosts.isEmpty ? 0 : first % hosts.count
        self.hosts = Array(hosts[start...] + hosts[..<start])
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
            let error = failure ?? .unavailable(.accountsNameUnknown, "the URL names no host")
            return completion(found.isEmpty ? .failure(error) : .success(found))
        }
        let host = hosts[index]
        guard host.address.isEmpty, !host.isSocket else {
            return next(index + 1, found + [host], failure, completion)
        }
        resolver.resolve(host: host.name, port: UInt16(host.port) ?? 5432) { [self] answer in
            switch answer {
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
