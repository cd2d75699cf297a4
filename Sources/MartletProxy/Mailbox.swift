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
    private let messages = Mutex<[LoopMessage]>([])

    package init() throws(IOError) {
        descriptor = eventfd(0, Int32(EFD_NONBLOCK | EFD_CLOEXEC))
        guard descriptor >= 0 else { throw IOError("eventfd") }
    }

    deinit { close(descriptor) }

    /// Leaves a message and wakes the loop.
    func post(_ message: LoopMessage) {
        let isFirst = messages.withLock { list in
            list.append(message)
            return list.count == 1
        }
        if isFirst { wake() }
    }

    /// Leaves several messages and wakes the loop once.
    func post(_ several: [LoopMessage]) {
        guard !several.isEmpty else { return }
        let isFirst = messages.withLock { list in
            list.append(contentsOf: several)
            return list.count == several.count
        }
        if isFirst { wake() }
    }

    private func wake() {
        var one: UInt64 = 1
        _ = unsafe write(descriptor, &one, 8)
    }

    /// Takes everything that waits.
    func drain() -> [LoopMessage] {
        var count: UInt64 = 0
        _ = unsafe read(descriptor, &count, 8)
        return messages.withLock { list in
            let taken = list
            list = []
            return taken
        }
    }
}
