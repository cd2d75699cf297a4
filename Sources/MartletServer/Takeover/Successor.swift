private import CLinux
internal import MartletCore
internal import MartletIO
private import Synchronization

/// The program started anew, which takes over from this process: it has our listening sockets from its first moment on.
final class Successor: Sendable {
    /// What became of it.
    enum Outcome: Sendable, Equatable {
        /// It serves.
        case ready
        /// It ended before it did: in the system's words.
        case ended(String)
        /// It neither serves nor ends.
        case late
        /// Nobody wants it any more.
        case cancelled
    }

    let pid: Int32
    private let channel: Int32
    private let isCancelled = Atomic(false)

    /// How long one that was given up may take to end in good order.
    private static let lastPatience = Duration.seconds(10)

    private init(pid: Int32, channel: Int32) {
        self.pid = pid
        self.channel = channel
    }

    deinit { close(channel) }

    /// Starts the program file that this process was started from, as it is now, with the same arguments and environment.
    ///
    /// - Parameters:
    ///   - arguments: the command line, the program first; one without a slash is looked for in `PATH`.
    ///   - groups: the sockets that it gets.
    ///   - others: descriptors that it finds under the same numbers.
    static func start(
        _ arguments: [String], groups: [Inheritance.Group], others: [Int32]
    ) throws(IOError) -> Successor {
        guard let program = arguments.first else { throw IOError("posix_spawn", errno: ENOENT) }
        var ends: [Int32] = [-1, -1]
        guard unsafe martlet_channel(&ends) == 0 else { throw IOError("socketpair") }
        defer { close(ends[1]) }
        let variable =
            ([Inheritance.variable + "=\(getpid()) \(ends[1])"] + groups.map(\.line)).joined(separator: "\n")
        let descriptors = groups.flatMap(\.descriptors) + others + [ends[1]]
        var pid = pid_t()
        let failure = unsafe withCStrings(arguments) { arguments in
            unsafe withEnvironment(adding: variable) { environment in
                unsafe martlet_spawn(&pid, program, arguments, environment, descriptors, descriptors.count)
            }
        }
        guard failure == 0 else {
            close(ends[0])
            throw IOError("posix_spawn", errno: failure)
        }
        return Successor(pid: pid, channel: ends[0])
    }

    /// Waits until it serves, ends, or has taken too long.
    func readiness(within patience: Duration, clock: Clock) async -> Outcome {
        let deadline = clock.monotonicTime + patience
        return await onThread { self.wait(until: deadline, clock) }
    }

    private func wait(until deadline: MonotonicTime, _ clock: Clock) -> Outcome {
        while !isCancelled.load(ordering: .relaxed) {
            guard clock.monotonicTime < deadline else { return .late }
            var events = pollfd(fd: channel, events: Int16(POLLIN), revents: 0)
            guard unsafe poll(&events, 1, 50) > 0 else { continue }
            var word: UInt8 = 0
            let count = unsafe read(channel, &word, 1)
            if count == 1, Predecessor.Word(rawValue: word) == .ready { return .ready }
            // A closed channel is what the last moment of a process brings about: that may not be quite over.
            return .ended(end(within: count == 0 ? .seconds(5) : .zero, clock))
        }
        return .cancelled
    }

    /// Leaves everything to it.
    func confirm() { say(.confirmed) }

    /// Ends a wait for it.
    func cancel() { isCancelled.store(true, ordering: .relaxed) }

    /// Takes everything back from one that is late: it ends without touching what is still ours.
    func giveUp(clock: Clock) async {
        say(.refused)
        kill(pid, SIGTERM)
        _ = await onThread { self.end(within: Successor.lastPatience, clock) }
    }

    private func say(_ word: Predecessor.Word) {
        var word = word.rawValue
        unsafe _ = send(channel, &word, 1, Int32(MSG_NOSIGNAL))
    }

    /// Waits for its end, which comes at the latest when the patience does.
    private func end(within patience: Duration, _ clock: Clock) -> String {
        let deadline = clock.monotonicTime + patience
        var status: Int32 = 0
        while true {
            let found = unsafe waitpid(pid, &status, WNOHANG)
            if found == pid { break }
            if found < 0, martlet_errno() != EINTR { return "unknown" }
            if clock.monotonicTime >= deadline { kill(pid, SIGKILL) }
            _ = poll(nil, 0, 20)
        }
        let signal = status & 0x7F
        return signal == 0 ? "status \(status >> 8 & 0xFF)" : "signal \(signal)"
    }

    private func onThread<Value: Sendable>(_ body: @escaping @Sendable () -> Value) async -> Value {
        await withCheckedContinuation { (done: CheckedContinuation<Value, Never>) in
            let thread = try? SystemThread(name: "martlet-heir") { done.resume(returning: body()) }
            // Without a thread left the wait is done here.
            if thread == nil { done.resume(returning: body()) }
        }
    }

    // MARK: Memory of the C side

    private static func withCStrings<Value>(
        _ texts: [String], _ body: (UnsafePointer<UnsafeMutablePointer<CChar>?>) -> Value
    ) -> Value {
        var copies = unsafe texts.map { unsafe strdup($0) }
        unsafe copies.append(nil)
        defer { for index in unsafe copies.indices { unsafe free(copies[index]) } }
        return unsafe copies.withUnsafeBufferPointer { buffer in
            var none: UnsafeMutablePointer<CChar>?
            guard let base = buffer.baseAddress else { return unsafe body(&none) }
            return unsafe body(base)
        }
    }

    /// Our environment as it is, byte by byte, and one variable more.
    private static func withEnvironment<Value>(
        adding variable: String, _ body: (UnsafePointer<UnsafeMutablePointer<CChar>?>) -> Value
    ) -> Value {
        var entries: [UnsafeMutablePointer<CChar>?] = unsafe []
        while let entry = unsafe martlet_environment_entry(entries.count) { unsafe entries.append(entry) }
        let added = unsafe strdup(variable)
        defer { unsafe free(added) }
        unsafe entries += [added, nil]
        return unsafe entries.withUnsafeBufferPointer { buffer in
            var none: UnsafeMutablePointer<CChar>?
            guard let base = buffer.baseAddress else { return unsafe body(&none) }
            return unsafe body(base)
        }
    }
}
