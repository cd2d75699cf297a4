private import CLinux
package import MartletAuthenticator
package import MartletCore
package import MartletDecisions
package import MartletIO
package import MartletResponder
private import Synchronization

/// A message from the rest of the process to a loop, which carries it out in `drainMailbox()`.
package enum LoopMessage: Sendable {
    /// A new configuration; a socket of −1 is one that the loop already owns.
    case adopt(Snapshot, listeners: [ListenerSocket])
    /// New addresses of endpoints that are named by host.
    case resolved([ResolvedName])
    /// What health checks have found out; the loop keeps the last state of each endpoint.
    case health([EndpointHealth])
    /// The endpoints that the operator has taken out of use, without a resolved address: all of them.
    case drained(Set<EndpointIdentity>)
    /// Cached decisions and principals are void, or may be outdated.
    case invalidateCaches
    /// What was cached of sessions or subjects is void.
    ///
    /// Acknowledged when that is removed and what it admitted has ended, or the loop has.
    case credentials(CredentialChange, LoopAcknowledgement? = nil)
    /// Whether session tokens, cached ones included, are rejected because the store is unavailable.
    case rejectSessions(Bool)
    /// Starts or stops streaming finished requests to a watcher.
    case watch((any RequestWatching)?)
    /// The access log has changed its format.
    case logFormatChanged
    /// Access lines go elsewhere, or have other fields: for a loop that adopts no configuration.
    case accessLog(AccessPlan)
    /// Report the counters, with the state of every endpoint if that is wanted.
    case report(withEndpoints: Bool, @Sendable (LoopReport) -> Void)
    /// Finish requests in progress and accept no more; what is left at the deadline is aborted.
    case drain(until: MonotonicTime, hasSuccessor: Bool)

    /// The loop has ended and caches nothing any more: acknowledges the message.
    fileprivate func drop() {
        if case .credentials(_, let acknowledgement?) = self { acknowledgement.acknowledge() }
    }
}

/// Messages for one loop, from any thread.
///
/// The loop drains it completely when its descriptor becomes readable.
package final class Mailbox: Sendable {
    /// Messages, and what comes of work that the loop has begun, or that other loops need of it.
    enum Entry: Sendable {
        case message(LoopMessage)
        /// The result of a verification that a request waits for.
        case verificationFinished(FinishedVerification)
        /// The store has decided about the limits that a request waits for.
        case limitsDecided(exchange: Handle<Exchange>, LimitWait)
        /// A local handler's response.
        case localResponse(exchange: Handle<Exchange>, LocalResponse)
        /// A part of the body of such a response; an empty one is its end.
        case localPart(exchange: Handle<Exchange>, [UInt8])
        /// A finished step of a TLS handshake with a client.
        case handshake(downstream: Handle<DownstreamConnection>, HandshakeStep)
        /// Requests of another loop wait for connections to upstreams that have as many as they may have.
        case connectionsWanted(upstreams: [String], by: Mailbox)
        /// An idle connection that another loop does not need.
        case connection(HandedConnection)
        /// Another loop finds no descriptor for a connection.
        case descriptorsWanted

        fileprivate func drop() {
            if case .message(let message) = self { message.drop() }
        }
    }

    let descriptor: Int32
    private struct State {
        var entries: [Entry] = []
        /// The loop has ended.
        var isClosed = false
    }

    private let state = Lock(State())
    private let turn = Atomic<UInt64>(0)

    package init() throws(IOError) {
        descriptor = eventfd(0, Int32(EFD_NONBLOCK | EFD_CLOEXEC))
        guard descriptor >= 0 else { throw IOError("eventfd") }
    }

    deinit { CLinux.close(descriptor) }

    /// Posts messages, which the loop carries out one after the other, and wakes it.
    package func post(_ messages: LoopMessage...) { add(messages.map { .message($0) }) }

    /// Posts what has come of work, and wakes the loop.
    func post(_ entry: Entry) { add(CollectionOfOne(entry)) }

    /// Posts several entries and wakes the loop once.
    private func add(_ entries: some Collection<Entry> & Sendable) {
        guard !entries.isEmpty else { return }
        let (isFirst, isClosed) = state.withLock { state in
            guard !state.isClosed else { return (false, true) }
            state.entries.append(contentsOf: entries)
            return (state.entries.count == entries.count, false)
        }
        if isFirst { wake() }
        if isClosed { for entry in entries { entry.drop() } }
    }

    /// Closes the mailbox of a loop that ends.
    func close() {
        let left = state.withLock { state in
            state.isClosed = true
            defer { state.entries = [] }
            return state.entries
        }
        for entry in left { entry.drop() }
    }

    /// How often the loop has come by, which it does after ``wake()`` as long as it turns.
    package var turns: UInt64 { turn.load(ordering: .relaxed) }

    /// Has the loop come by, without a message.
    package func wake() {
        var one: UInt64 = 1
        _ = unsafe write(descriptor, &one, 8)
    }

    /// Removes and returns everything.
    func drain() -> [Entry] {
        turn.add(1, ordering: .relaxed)
        var count: UInt64 = 0
        _ = unsafe read(descriptor, &count, 8)
        return state.withLock { state in
            let taken = state.entries
            state.entries = []
            return taken
        }
    }
}

extension Mailbox: VerificationResultSink {
    /// Posts results of verifications.
    package func receive(_ results: [FinishedVerification]) {
        add(results.map { Entry.verificationFinished($0) })
    }
}
