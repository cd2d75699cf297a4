package import MartletCore
private import Synchronization

/// How the connection to Redis stands: for readiness and metrics.
package struct RedisStatus: Sendable {
    /// Where the connection is in its life.
    package enum State: String, Sendable {
        /// The first connection is being made.
        case connecting
        case connected
        /// The last attempt failed; another one follows.
        case down
        case stopped
    }

    package var state = State.connecting
    /// Since when.
    package var since: MonotonicTime
    /// Connections made after the first one.
    package var reconnects = 0
    /// Commands of callers, whatever came of them.
    package var commands = 0
    /// Commands that failed, by code.
    package var failures: [ErrorCode: Int] = [:]
    /// From writing the last answered command to its reply.
    package var lastLatency: Duration?
    /// Why the connection is down, or was last.
    package var lastError: StoreError?

    /// The status of a connection that is being made for the first time.
    package init(since: MonotonicTime) { self.since = since }
}

/// What the client's callers and its loop both see and count.
final class RedisBoard: Sendable {
    private struct Content {
        var status: RedisStatus
        var inFlight = 0
        var hasBeenConnected = false
    }

    private let content: Mutex<Content>
    private let maximumInFlight: Int

    init(maximumInFlight: Int, now: MonotonicTime) {
        self.maximumInFlight = maximumInFlight
        content = Mutex(Content(status: RedisStatus(since: now)))
    }

    var status: RedisStatus { content.withLock { $0.status } }

    /// Counts a command in; every one that is let in is counted out again.
    /// - Throws: at once while there is no connection, or when too many wait already.
    func admit() throws(StoreError) {
        let refusal: StoreError? = content.withLock { content in
            content.status.commands += 1
            let refusal: StoreError? =
                switch content.status.state {
                case .connected: content.inFlight < maximumInFlight ? nil : .overloaded
                case .stopped: .stopped
                case .connecting, .down: content.status.lastError.map(RedisBoard.down) ?? .notConnected
                }
            if let refusal {
                content.status.failures[refusal.code, default: 0] += 1
            } else {
                content.inFlight += 1
            }
            return refusal
        }
        if let refusal { throw refusal }
    }

    func leave(_ failure: StoreError?, latency: Duration?) {
        content.withLock { content in
            content.inFlight -= 1
            if let failure { content.status.failures[failure.code, default: 0] += 1 }
            if let latency { content.status.lastLatency = latency }
        }
    }

    func connected(at now: MonotonicTime) {
        content.withLock { content in
            guard content.status.state != .stopped else { return }
            if content.hasBeenConnected { content.status.reconnects += 1 }
            content.hasBeenConnected = true
            content.status.state = .connected
            content.status.since = now
        }
    }

    /// - Returns: whether this is news: another state or another reason.
    func down(_ error: StoreError, at now: MonotonicTime) -> Bool {
        content.withLock { content in
            guard content.status.state != .stopped else { return false }
            let isNews = content.status.state != .down || content.status.lastError?.code != error.code
            if content.status.state != .down { content.status.since = now }
            content.status.state = .down
            content.status.lastError = error
            return isNews
        }
    }

    func stopped(at now: MonotonicTime) {
        content.withLock { content in
            guard content.status.state != .stopped else { return }
            content.status.state = .stopped
            content.status.since = now
        }
    }

    /// The refusal of a command keeps the reason of the outage.
    private static func down(_ reason: StoreError) -> StoreError {
        StoreError(code: .redisNotConnected, message: "there is no connection to Redis: \(reason.message)")
    }
}
