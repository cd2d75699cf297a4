private import CLinux
internal import MartletCore
package import MartletIO
private import Synchronization

/// What other threads tell a loop.
enum LoopMessage: Sendable {
    /// The verdict on the credential of a request that waits for it.
    case verdict(exchange: Int32, generation: UInt32, epoch: Int, Verdict)
    /// A local handler's answer.
    case answer(exchange: Int32, generation: UInt32, LocalResponse)
    /// A step of a client's TLS handshake is done.
    case handshake(client: Int32, generation: UInt32, HandshakeStep)
    /// A new configuration.
    case adopt(Snapshot, listeners: [ListenerSocket])
    /// New addresses of endpoints that are named by host.
    case resolved([ResolvedName])
    /// Cached verdicts are void, or may be out of date.
    case forget
    /// Sessions that have ended and subjects who have changed, by their numbers.
    case revoked([UInt64], LoopAcknowledgement?)
    /// Whether sessions are refused because the store is down.
    case refuseSessions(Bool)
    /// Access lines are to be written in another format.
    case logFormatChanged
    /// Report the counters.
    case collect(@Sendable (LoopReport) -> Void)
    /// Finish what is under way and accept no more; what is left at the deadline is cut.
    case drain(deadline: Int64, hasHeir: Bool)

    /// The loop has ended: it keeps no copies any more, and whoever waits for that is told.
    fileprivate func drop() {
        if case .revoked(_, let acknowledgement?) = self { acknowledgement.acknowledge() }
    }
}

/// Messages for one loop, from any thread.
///
/// The loop drains it whole when its descriptor turns readable.
package final class Mailbox: Sendable {
    let descriptor: Int32
    private struct State {
        var messages: [LoopMessage] = []
        /// The loop has ended.
        var isClosed = false
    }

    private let state = Mutex(State())

    package init() throws(IOError) {
        descriptor = eventfd(0, Int32(EFD_NONBLOCK | EFD_CLOEXEC))
        guard descriptor >= 0 else { throw IOError("eventfd") }
    }

    deinit { CLinux.close(descriptor) }

    /// Leaves a message and wakes the loop.
    func post(_ message: LoopMessage) {
        let (isFirst, isClosed) = state.withLock { state in
            guard !state.isClosed else { return (false, true) }
            state.messages.append(message)
            return (state.messages.count == 1, false)
        }
        if isFirst { wake() }
        if isClosed { message.drop() }
    }

    /// Leaves several messages and wakes the loop once.
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

    /// The loop ends and reads no more.
    func close() {
        let left = state.withLock { state in
            state.isClosed = true
            defer { state.messages = [] }
            return state.messages
        }
        for message in left { message.drop() }
    }

    private func wake() {
        var one: UInt64 = 1
        _ = unsafe write(descriptor, &one, 8)
    }

    /// Takes everything that waits.
    func drain() -> [LoopMessage] {
        var count: UInt64 = 0
        _ = unsafe read(descriptor, &count, 8)
        return state.withLock { state in
            let taken = state.messages
            state.messages = []
            return taken
        }
    }
}
