package import MartletCore

/// The status of the connection to Redis, for readiness and metrics.
package struct RedisStatus: Sendable {
    /// The state of the connection.
    package enum State: String, Sendable {
        /// The first attempt is in progress.
        case connecting
        case connected
        /// The last attempt failed; another one follows after a delay.
        case down
        case stopped
    }

    package var state = State.connecting
    /// The time of the last change of state.
    package var since: MonotonicTime
    /// The number of reconnections.
    package var reconnects = 0
    /// The number of commands, successful or not.
    package var commands = 0
    /// The number of failed commands, by error code.
    package var failures: [ErrorCode: Int] = [:]
    /// The commands that got a connection, and how long their replies took.
    package var calls = CallCounts()
    /// The latency of the last reply.
    package var lastLatency: Duration?
    /// The error of the current or last outage.
    package var lastError: StoreError?
    /// The nodes that accept commands.
    package var nodes: Set<RedisURL.Address> = []
    /// The number of masters, and of those that are connected.
    package var masters = 0
    package var connectedMasters = 0
    /// Masters that cannot be reached, and why.
    package var lostMasters: [RedisURL.Address: StoreError] = [:]
    /// The number of slots of a cluster that no node has.
    package var unassignedSlots = 0
    /// Why commands, or those of one kind, fail although a server is connected.
    package var commandFailure: StoreError?
    /// How long a reply may take that shared limits wait for, where the store takes longer: they do not use it.
    package var missedLimitWait: Duration?
    /// The number of writes that were acknowledged although no replica had them in time.
    package var unreplicated = 0
    /// How many stored values did not verify, by kind; `nil` without `store.seal`.
    package var badSeals: [SealedKind: Int]?
    /// The number of writes that were repeated at a new master.
    package var repeated = 0
    /// When keys had another master the last time, or their master was connected again.
    package var mastersChanged: MonotonicTime?

    /// The status of a new connection.
    package init(since: MonotonicTime) { self.since = since }
}

/// Records the status and the counters of a connection for its callers and its event loop.
final class RedisStatusRecorder: Sendable {
    private struct Content {
        var status: RedisStatus
        var inFlight = 0
        var hasBeenConnected = false
        var outage = OutageLog()
        var failing = CommandFailures()
    }

    private let content: Lock<Content>
    private let maximumInFlight: Int

    init(maximumInFlight: Int, now: MonotonicTime) {
        self.maximumInFlight = maximumInFlight
        content = Lock(Content(status: RedisStatus(since: now)))
    }

    var status: RedisStatus { content.withLock { $0.status } }

    /// Counts a command; each one that is accepted must be ended with `finishCommand`.
    /// - Throws: if there is no connection that it needs, or if too many commands are in flight.
    func beginCommand(needsMaster: Bool = true) throws(StoreError) {
        let rejection: StoreError? = content.withLock { content in
            content.status.commands += 1
            let rejection: StoreError? =
                switch content.status.state {
                case .connected: content.inFlight < maximumInFlight ? nil : .overloaded
                case .connecting where !needsMaster, .down where !needsMaster:
                    content.inFlight < maximumInFlight ? nil : .overloaded
                case .stopped: .stopped
                case .connecting, .down: content.status.lastError.map { .notConnected($0) } ?? .notConnected
                }
            if let rejection {
                content.status.failures[rejection.code, default: 0] += 1
                content.status.calls.count(nil, failed: true)
            } else {
                content.inFlight += 1
            }
            return rejection
        }
        if let rejection { throw rejection }
    }

    /// - Parameters:
    ///   - failure: what is counted.
    ///   - isExecuted: whether the server has executed the command, or rejected it for what it was asked to do.
    ///   - latency: of the reply; `nil` if there was none.
    /// - Returns: whether commands fail, or no longer fail, where that is to be logged.
    func finish(
        _ command: RedisCommand, _ failure: StoreError?, isExecuted: Bool, latency: Duration?, at now: MonotonicTime
    ) -> CommandFailures.Change? {
        content.withLock { content in
            content.inFlight -= 1
            if let failure { content.status.failures[failure.code, default: 0] += 1 }
            if let latency { content.status.lastLatency = latency }
            content.status.calls.count(latency, failed: failure != nil)
            return update(&content) { $0.ended(command.kind, isExecuted ? nil : failure, at: now) }
        }
    }

    private func update(
        _ content: inout Content, _ body: (inout CommandFailures) -> CommandFailures.Change?
    ) -> CommandFailures.Change? {
        let change = body(&content.failing)
        content.status.commandFailure = content.failing.failure
        return change
    }

    /// Keys have another master.
    func mastersMoved(at now: MonotonicTime) -> CommandFailures.Change? {
        content.withLock { content in update(&content) { $0.moved(at: now) } }
    }

    func opened(_ node: RedisURL.Address) { content.withLock { _ = $0.status.nodes.insert(node) } }

    func closed(_ node: RedisURL.Address) { content.withLock { _ = $0.status.nodes.remove(node) } }

    func masters(connected: Int, of count: Int, lost: [RedisURL.Address: StoreError], unassigned: Int) {
        content.withLock { content in
            (content.status.connectedMasters, content.status.masters) = (connected, count)
            (content.status.lostMasters, content.status.unassignedSlots) = (lost, unassigned)
        }
    }

    func repeated(_ count: Int) { content.withLock { $0.status.repeated += count } }

    func mastersChanged(at now: MonotonicTime) { content.withLock { $0.status.mastersChanged = now } }

    func unreplicated(_ count: Int) { content.withLock { $0.status.unreplicated += count } }

    /// - Returns: whether commands no longer fail, where that is to be logged.
    func connected(at now: MonotonicTime) -> CommandFailures.Change? {
        content.withLock { content in
            guard content.status.state != .stopped, content.status.state != .connected else { return nil }
            if content.hasBeenConnected { content.status.reconnects += 1 }
            content.hasBeenConnected = true
            _ = content.outage.succeeded(at: now)
            content.status.state = .connected
            content.status.since = now
            return update(&content) { $0.connected(at: now) }
        }
    }

    /// - Returns: `nil` if it is not logged.
    func down(_ error: StoreError, at now: MonotonicTime) -> OutageLog.Line? {
        content.withLock { content in
            guard content.status.state != .stopped else { return nil }
            if content.status.state != .down { content.status.since = now }
            content.status.state = .down
            content.status.lastError = error
            return content.outage.failed("\(error.code) \(error.message)", at: now)
        }
    }

    func stopped(at now: MonotonicTime) {
        content.withLock { content in
            guard content.status.state != .stopped else { return }
            content.status.state = .stopped
            content.status.since = now
        }
    }
}
