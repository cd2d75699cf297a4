private import CLinux
internal import MartletCore
internal import MartletDecisions
internal import MartletIO
private import Synchronization

/// A new process of the program that takes over from this one and inherits its listening sockets.
final class Successor: Sendable {
    enum Outcome: Sendable, Equatable {
        case ready
        /// It exited before it was ready: `status 78` or `signal 9`.
        case ended(String)
        case timedOut
        case cancelled
    }

    let pid: Int32
    private let channel: Int32
    private let isCancelled = Atomic(false)

    /// How long an aborted successor may take to exit before it is killed.
    private static let terminationTimeout = Duration.seconds(10)

    private init(pid: Int32, channel: Int32) {
        self.pid = pid
        self.channel = channel
    }

    deinit { close(channel) }

    /// Starts the current program file, with the same arguments and environment as this process.
    ///
    /// - Parameters:
    ///   - arguments: the command line, beginning with the program; a name without a slash is searched in `PATH`.
    ///   - groups: the sockets that it inherits.
    ///   - others: other descriptors that it inherits under the same numbers.
    static func start(
        _ arguments: [String], groups: [InheritedSockets.Group], others: [Int32]
    ) throws(IOError) -> Successor {
        guard let program = arguments.first else { throw IOError("posix_spawn", errno: ENOENT) }
        var ends: [Int32] = [-1, -1]
        guard unsafe martlet_channel(&ends) == 0 else { throw IOError("socketpair") }
        defer { close(ends[1]) }
        let variable =
            ([InheritedSockets.variable + "=\(getpid()) \(ends[1])"] + groups.map(\.line)).joined(separator: "\n")
        let descriptors = groups.flatMap(\.descriptors) + others + [ends[1]]
        var pid = pid_t()
        let result = unsafe withCStrings(arguments) { arguments in
            unsafe withEnvironment(adding: variable) { environment in
                unsafe martlet_spawn(&pid, program, arguments, environment, descriptors, descriptors.count)
            }
        }
        guard result == 0 else {
            close(ends[0])
            throw IOError("posix_spawn", errno: result)
        }
        return Successor(pid: pid, channel: ends[0])
    }

    /// Waits until it is ready, has exited, or the timeout has passed.
    func waitUntilReady(timeout: Duration, clock: Clock) async -> Outcome {
        let deadline = clock.monotonicTime + timeout
        return await onThread { self.wait(until: deadline, clock) }
    }

    private func wait(until deadline: MonotonicTime, _ clock: Clock) -> Outcome {
        while !isCancelled.load(ordering: .relaxed) {
            guard clock.monotonicTime < deadline else { return .timedOut }
            var events = pollfd(fd: channel, events: Int16(POLLIN), revents: 0)
            guard unsafe martlet_poll(&events, 1, 50) > 0 else { continue }
            var message: UInt8 = 0
            let count = unsafe read(channel, &message, 1)
            if count == 1, Predecessor.Message(rawValue: message) == .ready { return .ready }
            // The channel closes while the process exits: give it time to finish.
            return .ended(reap(timeout: count == 0 ? .seconds(5) : .zero, clock))
        }
        return .cancelled
    }

    /// Passes the ownership of the sockets and their files to it.
    func confirm() { send(.confirmed) }

    /// Ends ``waitUntilReady(timeout:clock:)``.
    func cancel() { isCancelled.store(true, ordering: .relaxed) }

    /// Terminates it; this process keeps the ownership of the sockets and their files.
    /// - Returns: how it ended.
    @discardableResult
    func abort(clock: Clock) async -> String {
        send(.aborted)
        kill(pid, SIGTERM)
        return await onThread { self.reap(timeout: Successor.terminationTimeout, clock) }
    }

    private func send(_ message: Predecessor.Message) {
        var message = message.rawValue
        unsafe _ = CLinux.send(channel, &message, 1, Int32(MSG_NOSIGNAL))
    }

    /// Waits until it exits, and kills it after the timeout.
    private func reap(timeout: Duration, _ clock: Clock) -> String {
        let deadline = clock.monotonicTime + timeout
        var status: Int32 = 0
        while true {
            let found = unsafe waitpid(pid, &status, WNOHANG)
            if found == pid { break }
            if found < 0, martlet_errno() != EINTR { return "unknown" }
            if clock.monotonicTime >= deadline { kill(pid, SIGKILL) }
            usleep(20_000)
        }
        let signal = status & 0x7F
        return signal == 0 ? "status \(status >> 8 & 0xFF)" : "signal \(signal)"
    }

    private func onThread<Value: Sendable>(_ body: @escaping @Sendable () -> Value) async -> Value {
        await withCheckedContinuation { (done: CheckedContinuation<Value, Never>) in
            let thread = try? SystemThread(name: "martlet-upgrade") { done.resume(returning: body()) }
            // Without a thread the wait blocks here.
            if thread == nil { done.resume(returning: body()) }
        }
    }

    // MARK: Memory for C

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

    /// The environment of this process, byte for byte, with one more variable.
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
