internal import MartletCore
internal import MartletIO
internal import MartletTLS

/// What a connection needs besides its address; the same for all connections of a client.
struct RedisConnectionConfiguration: Sendable {
    var settings: RedisConnectionState.Settings
    /// `nil` for plaintext.
    var security: TLSClientContext?
    /// The name in the server's certificate; `nil` for the host of the address.
    var serverName: String?
    var commandTimeout: Duration
    var connectTimeout: Duration
    var heartbeatInterval: Duration
    var resolver: Resolver
    var clock: Clock
}

/// A Redis connection on its event loop: connects, enforces timeouts and reconnects.
///
/// It performs the actions of `RedisConnectionState`. A command is written to one connection only and never resent.
final class RedisConnection {
    typealias CommandResult = Result<TimedReply, StoreError>

    /// A reply with its latency.
    struct TimedReply: Sendable {
        var reply: RedisReply
        var latency: Duration
    }

    /// A change that concerns the owner of the connection.
    enum Event {
        /// Commands are accepted, or the subscription exists.
        case ready
        /// An attempt or a connection has ended; another attempt follows.
        case down(StoreError)
        case message([UInt8])
        /// The loop has stopped.
        case stopped
    }

    /// The minimum lifetime of a connection that resets the backoff, so that a server that accepts connections and then
    /// rejects commands is not retried without delay.
    private static let stableAfter = Duration.seconds(2)

    private let loop: ServiceLoop
    private let address: RedisURL.Address
    private var configuration: RedisConnectionConfiguration
    private let onEvent: (Event) -> Void
    /// This connection, for callbacks from other threads.
    private let handle: LoopBound<RedisConnection>

    private var stream: ClientStream?
    private var state: RedisConnectionState?
    private var completions: [RedisConnectionState.Ticket: (CommandResult) -> Void] = [:]
    private var lastTicket: RedisConnectionState.Ticket = 0
    /// Counts attempts, so that late events of earlier attempts are ignored.
    private var attempt = 0
    private var attemptStart = MonotonicTime(nanoseconds: 0)
    private var endpoints: [SocketEndpoint] = []
    private var backoff = Backoff()
    /// When the connection became ready.
    private var readySince: MonotonicTime?
    private var generator = SystemRandomNumberGenerator()
    private var retryTimer: LoopTimer?
    private var deadlineTimer: LoopTimer?
    private var heartbeatTimer: LoopTimer?
    private var isStopped = false

    /// - Parameter onEvent: called on the loop, from within `start` too if the first attempt fails; not from `stop`.
    init(
        to address: RedisURL.Address, on loop: ServiceLoop, _ configuration: RedisConnectionConfiguration,
        _ onEvent: @escaping (Event) -> Void
    ) {
        self.address = address
        self.loop = loop
        self.configuration = configuration
        self.onEvent = onEvent
        handle = LoopBound(loop)
    }

    /// Whether commands are accepted.
    var isReady: Bool { state?.isReady == true }
    /// The number of commands without a reply.
    var inFlight: Int { completions.count }

    private var clock: Clock { configuration.clock }

    /// Starts the first attempt.
    func start() {
        loop.preconditionInLoop()
        guard attempt == 0, !isStopped else { return }
        handle.value = self
        connect()
    }

    /// Closes the connection for good; pending commands fail.
    func stop() {
        loop.preconditionInLoop()
        guard !isStopped else { return }
        isStopped = true
        attempt += 1
        retryTimer?.cancel()
        retryTimer = nil
        handle.value = nil
        dropConnection(.stopped)
    }

    /// Writes a command; `completion` is called exactly once.
    func submit(
        _ arguments: [[UInt8]], expecting expectation: RedisExpectation, deadline: MonotonicTime,
        isAsking: Bool = false,
        _ completion: @escaping (CommandResult) -> Void
    ) {
        loop.preconditionInLoop()
        guard let stream, state?.isReady == true else {
            return completion(.failure(isStopped ? .stopped : .notConnected))
        }
        guard stream.unsentBytes < configuration.settings.maximumUnsent else {
            return completion(.failure(.overloaded))
        }
        lastTicket &+= 1
        let now = clock.monotonicTime
        do {
            try state?.submit(
                lastTicket, arguments, expecting: expectation, at: now, deadline: deadline, isAsking: isAsking)
        } catch {
            return completion(.failure(error))
        }
        completions[lastTicket] = completion
        transmit()
        scheduleDeadline()
    }
}

// MARK: - Connecting

extension RedisConnection {
    private func connect() {
        attempt += 1
        attemptStart = clock.monotonicTime
        deadlineTimer = loop.schedule(after: configuration.connectTimeout) { [weak self] in
            self?.deadlineTimer = nil
            self?.failAttempt(.connectTimeout)
        }
        guard let readAgain = configuration.settings.credentials?.readAgain else { return findServer() }
        let (handle, attempt) = (handle, attempt)
        // A file may be on a disk that does not respond, so it is not read on the loop.
        Task {
            let password = readAgain()
            _ = handle.loop.execute { handle.value?.hasRead(password, attempt: attempt) }
        }
    }

    /// - Parameter password: `nil` to keep the one that was read before.
    private func hasRead(_ password: Secret?, attempt: Int) {
        guard attempt == self.attempt, !isStopped, stream == nil, retryTimer == nil else { return }
        if let password { configuration.settings.credentials?.password = password }
        findServer()
    }

    private func findServer() {
        switch address {
        case .unix(let path):
            guard let endpoint = SocketEndpoint(path: path) else {
                return failAttempt(StoreError(code: .redisNameUnknown, message: "socket path too long"))
            }
            open(endpoint)
        case .tcp(let host, let port):
            resolve(host, port)
        }
    }

    private func resolve(_ host: String, _ port: UInt16) {
        let (handle, attempt) = (handle, attempt)
        configuration.resolver.resolve(host: host, port: port) { result in
            _ = handle.loop.execute { handle.value?.resolved(result, attempt: attempt) }
        }
    }

    private func resolved(_ result: Resolver.Response, attempt: Int) {
        guard attempt == self.attempt, !isStopped, stream == nil, retryTimer == nil else { return }
        switch result {
        case .success(let found):
            endpoints = found
            openNext()
        case .failure(let error):
            failAttempt(StoreError(code: .redisNameUnknown, message: error.message))
        }
    }

    private func openNext() {
        guard !endpoints.isEmpty else { return failAttempt(.notConnected) }
        open(endpoints.removeFirst())
    }

    private func open(_ endpoint: SocketEndpoint) {
        let attempt = self.attempt
        do {
            let stream: ClientStream
            if let security = configuration.security, case .tcp(let host, _) = address {
                let engine = try security.makeEngine(serverName: configuration.serverName ?? host)
                stream = try ClientStream(to: endpoint, on: loop, engine: engine) { [weak self] event in
                    self?.serve(event, attempt: attempt)
                }
            } else {
                stream = try ClientStream(to: endpoint, on: loop, engine: nil) { [weak self] event in
                    self?.serve(event, attempt: attempt)
                }
            }
            self.stream = stream
        } catch let error as StreamError {
            tryNext(after: StoreError(code: error.code, message: error.message))
        } catch let error as TLSError {
            failAttempt(StoreError(code: error.code, message: error.message))
        } catch {
            failAttempt(.notConnected)
        }
    }

    private func tryNext(after error: StoreError) {
        if endpoints.isEmpty { failAttempt(error) } else { openNext() }
    }

    private func sendHello() {
        let now = clock.monotonicTime
        do {
            var fresh = try RedisConnectionState(configuration.settings)
            try fresh.begin(at: now, deadline: attemptStart + configuration.connectTimeout)
            state = consume fresh
        } catch {
            return failAttempt(error)
        }
        transmit()
    }

    /// Ends the current attempt or connection, and schedules the next attempt.
    private func failAttempt(_ error: StoreError) {
        guard !isStopped else { return }
        dropConnection(error)
        let now = clock.monotonicTime
        if let readySince, now.since(readySince) >= RedisConnection.stableAfter { backoff.reset() }
        readySince = nil
        // The time that the attempt took counts towards the delay.
        let delay = backoff.next(using: &generator)
        let rest = max((attemptStart + delay).since(now), .milliseconds(25))
        retryTimer?.cancel()
        retryTimer = loop.schedule(after: rest) { [weak self] in
            self?.retryTimer = nil
            self?.connect()
        }
        onEvent(.down(error))
    }

    /// Releases the stream, the state and the timers; pending commands fail.
    private func dropConnection(_ error: StoreError) {
        deadlineTimer?.cancel()
        deadlineTimer = nil
        heartbeatTimer?.cancel()
        heartbeatTimer = nil
        endpoints = []
        stream?.close()
        stream = nil
        let actions = state?.lost(error) ?? []
        state = nil
        for action in actions {
            if case .failed(let ticket, let error) = action { complete(ticket, .failure(error)) }
        }
    }
}

// MARK: - Connected

extension RedisConnection {
    private func serve(_ event: ClientStream.Event, attempt: Int) {
        guard attempt == self.attempt, !isStopped else { return }
        switch event {
        case .opened: sendHello()
        case .received: receive()
        case .closed(let error):
            stream = nil
            if error.code == .streamLoopStopped {
                stop()
                return onEvent(.stopped)
            }
            let reason = StoreError(code: error.code, message: error.message)
            guard state == nil else { return perform(state?.lost(reason) ?? []) }
            tryNext(after: reason)
        }
    }

    private func receive() {
        guard let stream else { return }
        let now = clock.monotonicTime
        let actions = unsafe state?.received(stream.input.bytes, at: now) ?? []
        stream.input.removeAll()
        perform(actions)
    }

    private func perform(_ actions: [RedisConnectionState.Action]) {
        for action in actions {
            switch action {
            case .ready: becomeReady()
            case .reply(let ticket, let reply, let latency):
                complete(ticket, .success(TimedReply(reply: reply, latency: latency)))
            case .failed(let ticket, let error): complete(ticket, .failure(error))
            case .message(let payload): onEvent(.message(payload))
            case .close(let error): return failAttempt(error)
            }
        }
        transmit()
    }

    private func becomeReady() {
        deadlineTimer?.cancel()
        deadlineTimer = nil
        endpoints = []
        readySince = clock.monotonicTime
        scheduleHeartbeat()
        onEvent(.ready)
    }

    /// Sends PINGs periodically to detect a dead connection while it is idle.
    private func scheduleHeartbeat() {
        heartbeatTimer = loop.schedule(after: configuration.heartbeatInterval) { [weak self] in
            guard let self else { return }
            let now = clock.monotonicTime
            do throws(StoreError) {
                try state?.heartbeat(at: now, deadline: now + configuration.commandTimeout)
            } catch {
                return failAttempt(error)
            }
            transmit()
            scheduleDeadline()
            scheduleHeartbeat()
        }
    }

    private func complete(_ ticket: RedisConnectionState.Ticket, _ result: CommandResult) {
        completions.removeValue(forKey: ticket)?(result)
    }

    private func transmit() {
        guard let stream, let count = state?.output.count, count > 0 else { return }
        var output = ByteBuffer()
        state?.takeOutput(into: &output)
        unsafe stream.send(output.bytes)
    }

    /// Sets one timer for the oldest command, whose deadline is the earliest.
    private func scheduleDeadline() {
        guard deadlineTimer == nil, let next = state?.nextDeadline else { return }
        deadlineTimer = loop.schedule(after: max(next.since(clock.monotonicTime), .zero)) { [weak self] in
            guard let self else { return }
            deadlineTimer = nil
            perform(state?.expire(at: clock.monotonicTime) ?? [])
            scheduleDeadline()
        }
    }
}
