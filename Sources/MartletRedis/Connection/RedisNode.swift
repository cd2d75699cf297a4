internal import MartletCore
internal import MartletIO

/// The connections to one server, on the event loop.
///
/// One of them is for writes that wait for replicas and is used by nothing else.
final class RedisNode {
    enum Event {
        /// The first of the connections accepts commands.
        case ready
        /// None of them does, and an attempt has failed.
        case down(StoreError)
        /// The server is a replica.
        case demoted
        /// So many writes have been acknowledged without a replica.
        case unreplicated(Int)
        case stopped
    }

    private struct Write {
        let command: RedisCommand
        let deadline: MonotonicTime
        let isAsking: Bool
        let completion: (RedisConnection.CommandResult) -> Void
    }

    /// How old the known number of replicas may be.
    private static let roleInterval = Duration.seconds(1)

    let address: RedisURL.Address
    private let loop: ServiceLoop
    private let configuration: RedisNodeConfiguration
    private let onEvent: (Event) -> Void
    private var general: [RedisConnection] = []
    /// Opened with the first write that waits, or immediately where replicas are expected.
    private var writer: RedisConnection?
    private var writes: ReplicatedWrites<Write>
    /// A group whose writer is being connected.
    private var unsent: [Write] = []
    private var unsentTimer: LoopTimer?
    /// Why the last attempt to connect the writer failed.
    private var writerError: StoreError?
    /// How many replicas the server has; `nil` if it does not say.
    private var replicas: Int?
    private var roleKnownAt: MonotonicTime?
    private var isUp = false
    private var isClosed = false
    private var roleTimer: LoopTimer?

    init(
        _ address: RedisURL.Address, on loop: ServiceLoop, _ configuration: RedisNodeConfiguration,
        _ onEvent: @escaping (Event) -> Void
    ) {
        self.address = address
        self.loop = loop
        self.configuration = configuration
        self.onEvent = onEvent
        writes = ReplicatedWrites(limit: configuration.maximumWrites)
    }

    func start() {
        for _ in 0..<configuration.generalConnections {
            general.append(connection { [weak self] in self?.serve($0) })
        }
        for connection in general { connection.start() }
        guard configuration.expectsReplicas else { return }
        if configuration.waitsForReplicas { startWriter() }
        scheduleRole()
    }

    /// Closes all connections; pending commands fail.
    func close() {
        guard !isClosed else { return }
        isClosed = true
        roleTimer?.cancel()
        unsentTimer?.cancel()
        for connection in general { connection.stop() }
        writer?.stop()
        failUnsent(.stopped)
    }

    /// Sends a command; `completion` is called once. `redis.not_connected` means that it was not sent.
    func submit(
        _ command: RedisCommand, deadline: MonotonicTime, isAsking: Bool,
        _ completion: @escaping (RedisConnection.CommandResult) -> Void
    ) {
        if command.traits.contains(.waitsForReplicas), configuration.waitsForReplicas, !isClosed {
            let write = Write(command: command, deadline: deadline, isAsking: isAsking, completion: completion)
            do throws(StoreError) { if let group = try writes.add(write) { begin(group) } } catch {
                completion(.failure(error))
            }
            return
        }
        var best: RedisConnection?
        for connection in general where connection.isReady {
            if let found = best, found.inFlight <= connection.inFlight { continue }
            best = connection
        }
        guard let best else { return completion(.failure(isClosed ? .stopped : .notConnected)) }
        best.submit(
            command.arguments, expecting: command.expectation, deadline: deadline, isAsking: isAsking, completion)
    }

    private func connection(_ onEvent: @escaping (RedisConnection.Event) -> Void) -> RedisConnection {
        RedisConnection(to: address, on: loop, configuration.connection, onEvent)
    }

    private func serve(_ event: RedisConnection.Event) {
        guard !isClosed else { return }
        switch event {
        case .ready:
            guard !isUp else { return }
            isUp = true
            onEvent(.ready)
        case .down(let error):
            guard !general.contains(where: \.isReady) else { return }
            isUp = false
            onEvent(.down(error))
        case .message: break
        case .stopped: onEvent(.stopped)
        }
    }
}

// MARK: - Writes that wait for replicas

extension RedisNode {
    private func startWriter() {
        let writer = connection { [weak self] event in
            guard let self, !isClosed else { return }
            switch event {
            case .ready:
                writerError = nil
                let group = unsent
                unsent = []
                unsentTimer?.cancel()
                if !group.isEmpty { begin(group) }
            case .down(let error):
                writerError = error
                failUnsent(.noConnection(error))
            case .message: break
            case .stopped: onEvent(.stopped)
            }
        }
        self.writer = writer
        writer.start()
    }

    private func failUnsent(_ error: StoreError) {
        unsentTimer?.cancel()
        var group: [Write]? = unsent
        unsent = []
        while let failing = group, !failing.isEmpty {
            for write in failing { write.completion(.failure(error)) }
            group = writes.finished()
        }
    }

    /// Sends a group as soon as there is a connection and the number of replicas is known.
    private func begin(_ group: [Write]) {
        if writer == nil { startWriter() }
        let now = configuration.connection.clock.monotonicTime
        guard let writer, writer.isReady else {
            unsent = group
            if let writerError { return failUnsent(.noConnection(writerError)) }
            let earliest = group.map(\.deadline).min() ?? now
            unsentTimer?.cancel()
            unsentTimer = loop.schedule(after: max(earliest.since(now), .zero)) { [weak self] in
                self?.failUnsent(.notConnected)
            }
            return
        }
        if let roleKnownAt, now.since(roleKnownAt) < RedisNode.roleInterval { return send(group, writer) }
        readRole(on: writer) { [weak self] in
            guard let self, !isClosed else {
                for write in group { write.completion(.failure(.stopped)) }
                return
            }
            guard writer.isReady else {
                unsent = group
                return failUnsent(.notConnected)
            }
            send(group, writer)
        }
    }

    private func scheduleRole() {
        roleTimer?.cancel()
        roleTimer = loop.schedule(after: RedisNode.roleInterval) { [weak self] in
            guard let self, !isClosed else { return }
            guard let connection = general.first(where: \.isReady) else { return scheduleRole() }
            readRole(on: connection) { [weak self] in self?.scheduleRole() }
        }
    }

    private func readRole(on connection: RedisConnection, _ then: @escaping () -> Void) {
        let now = configuration.connection.clock.monotonicTime
        let deadline = now + configuration.connection.commandTimeout
        connection.submit([Array("ROLE".utf8)], expecting: .anything, deadline: deadline) { [weak self] result in
            defer { then() }
            guard let self, !isClosed else { return }
            roleKnownAt = configuration.connection.clock.monotonicTime
            guard case .success(let timed) = result, case .array(let parts) = timed.reply else { return }
            guard parts.first == .bytes(Array("master".utf8)) else { return onEvent(.demoted) }
            if parts.count == 3, case .array(let list) = parts[2] { replicas = list.count }
        }
    }

    /// Sends writes and one `WAIT`; their replies are held back until that has replied.
    private func send(_ group: [Write], _ writer: RedisConnection) {
        let now = configuration.connection.clock.monotonicTime
        let due = group.filter { $0.deadline > now }
        for write in group where write.deadline <= now { write.completion(.failure(.timeout)) }
        guard !due.isEmpty else { return beginNext() }
        // Without a replica WAIT would last as long as it may.
        let waits = replicas.map { $0 > 0 } ?? configuration.expectsReplicas
        let held = HeldReplies(count: due.count, waits: waits) { [weak self] in self?.finish(due, $0) }
        for (index, write) in due.enumerated() {
            writer.submit(
                write.command.arguments, expecting: write.command.expectation, deadline: write.deadline,
                isAsking: write.isAsking
            ) { held.received($0, index) }
        }
        guard waits else { return }
        let words = ["WAIT", String(configuration.waitReplicas), String(configuration.waitTimeout.wholeMilliseconds)]
        let latest = due.reduce(now) { max($0, $1.deadline) } + configuration.waitTimeout
        writer.submit(words.map { Array($0.utf8) }, expecting: .anything, deadline: latest) { held.received($0) }
    }

    private func finish(_ writes: [Write], _ held: HeldReplies) {
        var written = 0
        let results: [RedisConnection.CommandResult] = writes.indices.map { index in
            let result = held.results[index] ?? .failure(.connectionLost)
            guard case .success(let timed) = result else { return result }
            // With its connection the server, and the write, may be lost.
            if held.isLost { return .failure(.connectionLost) }
            if !timed.reply.isRejection { written += 1 }
            return result
        }
        let isExpected = held.waits || configuration.expectsReplicas
        // Counted before callers continue, who may look at the count.
        if isExpected, !held.isLost, held.replicas < configuration.waitReplicas, written > 0 {
            onEvent(.unreplicated(written))
        }
        for (write, result) in zip(writes, results) { write.completion(result) }
        beginNext()
    }

    private func beginNext() {
        guard let group = writes.finished() else { return }
        begin(group)
    }
}

/// The replies of a group of writes, and that of its `WAIT`.
private final class HeldReplies {
    private(set) var results: [RedisConnection.CommandResult?]
    let waits: Bool
    /// How many replicas have the writes.
    private(set) var replicas = 0
    /// Whether there was no reply to `WAIT`.
    private(set) var isLost = false
    private var missing: Int
    private let onComplete: (HeldReplies) -> Void

    init(count: Int, waits: Bool, _ onComplete: @escaping (HeldReplies) -> Void) {
        results = Array(repeating: nil, count: count)
        self.waits = waits
        missing = count + (waits ? 1 : 0)
        self.onComplete = onComplete
    }

    func received(_ result: RedisConnection.CommandResult, _ index: Int) {
        results[index] = result
        countDown()
    }

    /// The reply to `WAIT`.
    func received(_ result: RedisConnection.CommandResult) {
        switch result {
        case .success(let timed):
            if case .integer(let number) = timed.reply { replicas = Int(clamping: number) }
        // Not permitted: the writes are as safe as without a replica.
        case .failure(let error): isLost = !error.isAccessDenied
        }
        countDown()
    }

    private func countDown() {
        missing -= 1
        if missing == 0 { onComplete(self) }
    }
}

/// The configuration of the connections to one server.
struct RedisNodeConfiguration {
    var connection: RedisConnectionConfiguration
    var connections: Int
    /// How many replicas a write waits for; 0 for none.
    var waitReplicas: Int
    var waitTimeout: Duration
    /// Whether a master without a replica is worth a warning.
    var expectsReplicas: Bool
    /// The maximum number of writes that wait to be sent.
    var maximumWrites: Int

    var waitsForReplicas: Bool { waitReplicas > 0 }
    /// The number of connections for commands that do not wait for replicas.
    var generalConnections: Int { max(waitsForReplicas ? connections.advanced(by: -1) : connections, 1) }
}

extension RedisReply {
    /// Whether the command was not executed.
    fileprivate var isRejection: Bool {
        switch self {
        case .error, .redirect: true
        default: false
        }
    }
}

extension StoreError {
    /// Why there is no connection for writes. What a server says of itself says more than that there is none.
    fileprivate static func noConnection(_ reason: StoreError) -> StoreError {
        RedisErrorReply.saysState(reason) ? reason : .notConnected(reason)
    }
}
