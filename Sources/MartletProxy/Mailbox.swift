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
    case revoked([UInt64])
    /// Whether sessions are refused because the store is down.
    case refuseSessions(Bool)
    /// Report the counters.
    case collect(@Sendable (LoopReport) -> Void)
    /// Finish what is under way and accept no more; what is left at the deadline is cut.
    case drain(deadline: Int64, hasHeir: Bool)
}

/// Messages for one loop, from any thread.
///
/// The loop drains it whole when its descriptor turns readable.
package final class Mailbox: Sendable {
    let descriptor: Int32
    private let content = Mutex(Content())

    private struct Content {
        var messages: [LoopMessage] = []
        /// The loop is awake, or will be, for what is here.
        var isAnnounced = false

        /// Whether the loop has to be woken.
        mutating func announce() -> Bool {
            guard !isAnnounced, !messages.isEmpty else { return false }
            isAnnounced = true
            return true
        }
    }

    package init() throws(IOError) {
        descriptor = eventfd(0, Int32(EFD_NONBLOCK | EFD_CLOEXEC))
        guard descriptor >= 0 else { throw IOError("eventfd") }
    }

    deinit { close(descriptor) }

    /// Leaves a message and wakes the loop.
    func post(_ message: LoopMessage) {
        let isNews = content.withLock { content in
            content.messages.append(message)
            return content.announce()
        }
        if isNews { wake() }
    }

    /// Leaves a message that whoever leaves it announces in a moment.
    func leave(_ message: LoopMessage) { content.withLock { $0.messages.append(message) } }

    /// Wakes the loop for what was left.
    func announce() {
        if content.withLock({ $0.announce() }) { wake() }
    }

    private func wake() {
        var one: UInt64 = 1
        _ = unsafe write(descriptor, &one, 8)
    }

    /// Takes everything that waits.
    func drain() -> [LoopMessage] {
        var count: UInt64 = 0
        _ = unsafe read(descriptor, &count, 8)
        return content.withLock { content in
            content.isAnnounced = false
            let taken = content.messages
            content.messages = []
            return taken
        }
    }
}
