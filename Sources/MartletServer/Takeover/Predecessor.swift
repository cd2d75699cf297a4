private import CLinux
private import MartletCore

/// The process that this one takes over from.
package struct Predecessor: Sendable {
    /// The messages on the channel, one byte each.
    enum Message: UInt8, Sendable {
        /// From the successor: it serves.
        case ready = 0x52
        /// From the predecessor: the successor owns the sockets and their files.
        case confirmed = 0x43
        /// From the predecessor: it keeps serving, and the successor has to exit.
        case aborted = 0x4E
    }

    package let pid: Int32
    private let channel: Int32

    /// - Parameter channel: our end of the channel; `nil` is returned if it is not a valid descriptor.
    init?(_ pid: Int32, channel: Int32) {
        guard channel > 2, martlet_make_our_own(channel) == 0 else { return nil }
        self.pid = pid
        self.channel = channel
    }

    /// Reports that this process serves, and waits for the reply.
    ///
    /// - Returns: whether this process owns the sockets; also true if the predecessor has exited without a reply.
    package func sendReady() async -> Bool {
        var message = Message.ready.rawValue
        guard unsafe send(channel, &message, 1, Int32(MSG_NOSIGNAL)) == 1 else { return true }
        let channel = channel
        return await withCheckedContinuation { (replied: CheckedContinuation<Bool, Never>) in
            let waiter = try? SystemThread(name: "martlet-upgrade") {
                var events = pollfd(fd: channel, events: Int16(POLLIN), revents: 0)
                while unsafe martlet_poll(&events, 1, -1) == 0 {}
                var reply: UInt8 = 0
                let count = unsafe read(channel, &reply, 1)
                close(channel)
                replied.resume(returning: count != 1 || Message(rawValue: reply) != .aborted)
            }
            if waiter == nil { replied.resume(returning: true) }
        }
    }
}
