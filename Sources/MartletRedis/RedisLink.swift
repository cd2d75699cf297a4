internal import MartletCore
internal import MartletIO
internal import MartletTLS

/// The client's life on its loop: makes the connection, keeps its deadlines, and makes the next one when it ends.
///
/// It performs what `RedisConnectionState` decides. A command is written to one connection only, never again.
final class RedisLink {
    typealias Answer = Result<RedisAnswered, StoreError>

    /// A reply and how long it took.
    struct RedisAnswered: Sendable {
        var reply: RedisReply
        var latency: Duration
    }

    /// How long a connection must have stood to count as a success: a server that lets us in and then refuses its work
    /// is not to be asked without pause.
    private static let trial = Duration.seconds(2)

    private let loop: EventLoop
    private let configuration: RedisLinkConfiguration
    private let board: RedisBoard

    private var stream: ClientStream?
    private var state: RedisConnectionState?
    private var callers: [RedisConnectionState.Ticket: @Sendable (Answer) -> Void] = [:]
    private var lastTicket: RedisConnectionState.Ticket = 0
    /// Counts attempts, so that what comes late from an earlier one is known as such.
    private var attempt = 0
    private var attemptStart = MonotonicTime(nanoseconds: 0)
    private var endpoints: [SocketEndpoint] = []
    private var backoff = Backoff()
    /// Since when the connection stands.
    private var readySince: MonotonicTime?
    private var generator = SystemRandomNumberGenerator()
    private var retryTimer: LoopTimer?
    private var deadlineTimer: LoopTimer?
    private var heartbeatTimer: LoopTimer?
    private var settling: [@Sendable (StoreError?) -> Void] = []
    private var isStopped = false

    init(loop: EventLoop, configuration: RedisLinkConfiguration, board: RedisBoard) {
        self.loop = loop
        self.configuration = configuration
        self.board = board
    }

    private var clock: Clock { configuration.clock }

    /// Starts the first attempt.
    func start() {
        loop.preconditionInLoop()
        guard attempt == 0, !isStopped else { return }
        connect()
    }

    /// Ends everything; who waits is answered.
    func stop() {
        loop.preconditionInLoop()
        guard !isStopped else { return }
        isStopped = true
        attempt += 1
        retryTimer?.cancel()
        retryTimer = nil
        dropConnection(.stopped)
        board.stopped(at: clock.monotonicTime)
        settle(.stopped)
    }

    /// Writes a command; `completion` is called once.
    func submit(
        _ arguments: [[UInt8]], expecting expectation: RedisExpectation, deadline: MonotonicTime,
        _ completion: @escaping @Sendable (Answer) -> Void
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
            try state?.submit(lastTicket, arguments, expecting: expectation, at: now, deadline: deadline)
        } catch {
            return completion(.failure(error))
        }
        callers[lastTicket] = completion
        transmit()
        watchDeadline()
    }

    /// Calls back when the connection stands, or the attempt under way has failed.
    func whenSettled(_ completion: @escaping @Sendable (StoreError?) -> Void) {
        loop.preconditionInLoop()
        if isStopped { return completion(.stopped) }
        if state?.isReady == true { return completion(nil) }
        settling.append(completion)
    }
}

// MARK: - Connecting

extension RedisLink {
    private func connect() {
        attempt += 1
        attemptStart = clock.monotonicTime
        deadlineTimer = loop.schedule(after: configuration.connectTimeout) { [weak self] in
            self?.deadlineTimer = nil
            self?.failAttempt(.connectTimeout)
        }
        switch configuration.address {
        case .unix(let path):
            guard let endpoint = SocketEndpoint(path: path) else {
                return failAttempt(StoreError(code: .redisNameUnknown, message: "the socket's path is too long"))
            }
            open(endpoint)
        case .tcp(let host, let port):
            resolve(host, port)
        }
    }

    private func resolve(_ host: String, _ port: UInt16) {
        let handle = configuration.handle
        let attempt = self.attempt
        configuration.resolver.resolve(host: host, port: port) { answer in
            _ = handle.loop.execute { handle.value?.resolved(answer, attempt: attempt) }
        }
    }

    private func resolved(_ answer: Resolver.Answer, attempt: Int) {
        guard attempt == self.attempt, !isStopped, stream == nil, retryTimer == nil else { return }
        switch answer {
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
            if let security = configuration.security {
                let engine = try security.context.makeEngine(serverName: security.serverName)
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

    private func greet() {
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

    /// The attempt under way, or the connection, is over: says so and plans the next one.
    private func failAttempt(_ error: StoreError) {
        guard !isStopped else { return }
        dropConnection(error)
        let now = clock.monotonicTime
        if board.down(error, at: now) {
            configuration.logger.warning("redis is down", ("code", "\(error.code)"), ("reason", error.message))
        }
        settle(error)
        if let readySince, now.since(readySince) >= RedisLink.trial { backoff.reset() }
        readySince = nil
        // An attempt that took long has waited enough already.
        let pause = backoff.next(using: &generator)
        let rest = max((attemptStart + pause).since(now), .milliseconds(25))
        retryTimer?.cancel()
        retryTimer = loop.schedule(after: rest) { [weak self] in
            self?.retryTimer = nil
            self?.connect()
        }
    }

    private func settle(_ error: StoreError?) {
        let waiting = settling
        settling = []
        for completion in waiting { completion(error) }
    }

    /// Lets go of stream, state and timers; answers the callers that wait.
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
            if case .failed(let ticket, let error) = action { answer(ticket, .failure(error)) }
        }
    }
}

// MARK: - Connected

extension RedisLink {
    private func serve(_ event: ClientStream.Event, attempt: Int) {
        guard attempt == self.attempt, !isStopped else { return }
        switch event {
        case .opened: greet()
        case .received: receive()
        case .closed(let error):
            stream = nil
            if error.code == .streamLoopStopped { return stop() }
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
                answer(ticket, .success(RedisAnswered(reply: reply, latency: latency)))
            case .failed(let ticket, let error): answer(ticket, .failure(error))
            case .message(let payload): configuration.listener?.onMessage(payload)
            case .close(let error): return failAttempt(error)
            }
        }
        transmit()
    }

    private func becomeReady() {
        deadlineTimer?.cancel()
        deadlineTimer = nil
        endpoints = []
        let now = clock.monotonicTime
        readySince = now
        board.connected(at: now)
        configuration.logger.info("redis is connected", ("address", configuration.description))
        configuration.listener?.onGap()
        settle(nil)
        beat()
    }

    /// Asks for a sign of life now and then, so that a connection that is dead in silence is found out while idle.
    private func beat() {
        heartbeatTimer = loop.schedule(after: configuration.heartbeatInterval) { [weak self] in
            guard let self else { return }
            let now = clock.monotonicTime
            do throws(StoreError) {
                try state?.heartbeat(at: now, deadline: now + configuration.commandTimeout)
            } catch {
                return failAttempt(error)
            }
            transmit()
            watchDeadline()
            beat()
        }
    }

    private func answer(_ ticket: RedisConnectionState.Ticket, _ answer: Answer) {
        callers.removeValue(forKey: ticket)?(answer)
    }

    private func transmit() {
        guard let stream, let count = state?.output.count, count > 0 else { return }
        var output = ByteBuffer()
        state?.takeOutput(into: &output)
        unsafe stream.send(output.bytes)
    }

    /// One timer for the oldest command: the others' deadlines come after it.
    private func watchDeadline() {
        guard deadlineTimer == nil, let next = state?.nextDeadline else { return }
        deadlineTimer = loop.schedule(after: max(next.since(clock.monotonicTime), .zero)) { [weak self] in
            guard let self else { return }
            deadlineTimer = nil
            perform(state?.expire(at: clock.monotonicTime) ?? [])
            watchDeadline()
        }
    }
}
