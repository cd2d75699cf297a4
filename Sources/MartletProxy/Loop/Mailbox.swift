private import CLinux
internal import MartletAuthenticator
internal import MartletCore
package import MartletIO
internal import MartletResponder
private import Synchronization

/// A message from another thread to a loop.
enum LoopMessage: Sendable {
    /// The result of a verification that a request waits for.
    case verificationFinished(FinishedVerification)
    /// The store has decided about the limits that a request waits for.
    case limitsDecided(exchange: Handle<Exchange>, LimitWait)
    /// A local handler's response.
    case localResponse(exchange: Handle<Exchange>, LocalResponse)
    /// Starts or stops streaming finished requests to a watcher.
    case watch((any RequestWatching)?)
    /// A part of the body of such a response; an empty one is its end.
    case localPart(exchange: Handle<Exchange>, [UInt8])
    /// A finished step of a TLS handshake with a client.
    case handshake(downstream: Handle<DownstreamConnection>, HandshakeStep)
    /// A new configuration.
    case adopt(Snapshot, listeners: [ListenerSocket])
    /// New addresses of endpoints that are named by host.
    case resolved([ResolvedName])
    /// What health checks have found out.
    case health([EndpointHealth])
    /// The endpoints that the operator has taken out of use: all of them.
    case drained(Set<EndpointIdentity>)
    /// Cached decisions are void, or may be outdated.
    case invalidateCaches
    /// Sessions that have ended and subjects that have changed, by their revocation IDs.
    case revoked([UInt64], LoopAcknowledgement?)
    /// Sessions that have changed but go on.
    case sessionsChanged([UInt64], LoopAcknowledgement?)
    /// Whether sessions are rejected because the store is unavailable.
    case rejectSessions(Bool)
    /// The access log has changed its format.
    case logFormatChanged
    /// Access lines go elsewhere, or have other fields.
    case accessLog(AccessLogSettings?)
    /// A request of another loop waits for a connection to an upstream that has as many as it may have.
    case connectionWanted
    /// Report the counters.
    case report(withEndpoints: Bool, @Sendable (LoopReport) -> Void)
    /// Finish requests in progress and accept no more; what is left at the deadline is aborted.
    case drain(deadline: Int64, hasSuccessor: Bool)

    /// The loop has ended and caches nothing any more: acknowledges the message.
    fileprivate func drop() {
        switch self {
        case .revoked(_, let acknowledgement), .sessionsChanged(_, let acknowledgement): acknowledgement?.acknowledge()
        default: break
        }
    }
}

/// Messages for one loop, from any thread.
///
/// The loop drains it completely when its descriptor becomes readable.
package final class Mailbox: Sendable {
    let descriptor: Int32
    private struct State {
        var messages: [LoopMessage] = []
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

    /// Posts a message and wakes the loop.
    func post(_ message: LoopMessage) {
        let (isFirst, isClosed) = state.withLock { state in
            guard !state.isClosed else { return (false, true) }
            state.messages.append(message)
            return (state.messages.count == 1, false)
        }
        if isFirst { wake() }
        if isClosed { message.drop() }
    }

    /// Posts several messages and wakes the loop once.
    func post(_ several: [LoopMessage]) {
        guard !several.isEmpty else { return }
        let (isFirst, isClosed) = state.withLock { state in
            guard !state.isClosed else { return (false, true) }
            state.messages.append(contentsOf: several)
            return (state.messages.count == several.count, false)
        }
        if isFirst { wake() }
        if isClosed { for message in several { message.drop() } }
    }

    /// Closes the mailbox of a loop that ends.
    func close() {
        let left = state.withLock { state in
            state.isClosed = true
            defer { state.messages = [] }
            return state.messages
        }
        for message in left { message.drop() }
    }

    /// How often the loop has come by, which it does after ``wake()`` as long as it turns.
    package var turns: UInt64 { turn.load(ordering: .relaxed) }

    /// Has the loop come by, without a message.
    package func wake() {
        var one: UInt64 = 1
        _ = unsafe write(descriptor, &one, 8)
    }

    /// Removes and returns all messages.
    func drain() -> [LoopMessage] {
        turn.add(1, ordering: .relaxed)
        var count: UInt64 = 0
        _ = unsafe read(descriptor, &count, 8)
        return state.withLock { state in
            let taken = state.messages
            state.messages = []
            return taken
        }
    }
}
