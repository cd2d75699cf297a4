private import CLinux
private import MartletCore

/// The process that this one takes over from, as seen from here.
struct Predecessor: Sendable {
    /// What goes over the channel, one byte each.
    enum Word: UInt8, Sendable {
        /// The successor serves.
        case ready = 0x52
        /// The predecessor leaves everything to it.
        case confirmed = 0x43
        /// The predecessor has given it up, and goes on itself.
        case refused = 0x4E
    }

    let pid: Int32
    private let channel: Int32

    /// - Parameter channel: our end of it; `nil` is the answer where it is none.
    init?(_ pid: Int32, channel: Int32) {
        guard channel > 2, martlet_make_our_own(channel) == 0 else { return nil }
        self.pid = pid
        self.channel = channel
    }

    /// Says that this process serves, and waits for the answer.
    ///
    /// - Returns: whether everything is ours. A predecessor that is gone has nothing left to say: it is.
    func tellReady() async -> Bool {
        var word = Word.ready.rawValue
        guard unsafe send(channel, &word, 1, Int32(MSG_NOSIGNAL)) == 1 else { return true }
        let channel = channel
        return await withCheckedContinuation { (answered: CheckedContinuation<Bool, Never>) in
            let waiter = try? SystemThread(name: "martlet-heir") {
                var events = pollfd(fd: channel, events: Int16(POLLIN), revents: 0)
                while unsafe poll(&events, 1, -1) < 0, martlet_errno() == EINTR {}
                var answer: UInt8 = 0
                let count = unsafe read(channel, &answer, 1)
                close(channel)
                answered.resume(returning: count != 1 || Word(rawValue: answer) != .refused)
            }
            if waiter == nil { answered.resume(returning: true) }
        }
    }
}
