private import CLinux
private import Synchronization

/// A named thread for loops that block in the kernel, to be joined by its creator.
///
/// It starts with every signal blocked, so that signals are delivered to the thread that waits for them.
@safe package final class SystemThread: Sendable {
    private let identity: pthread_t
    private let start: ThreadStart
    private let isJoined = Atomic(false)

    /// Starts a thread that runs `body` once.
    /// - Parameters:
    ///   - name: as `top -H` shows it; truncated to 15 bytes.
    ///   - body: the thread ends when it returns.
    /// - Throws: `thread.not_started` when the system cannot create a thread.
    package init(name: String, _ body: @escaping @Sendable () -> Void) throws(SystemThreadError) {
        var everything = sigset_t()
        var before = sigset_t()
        _ = unsafe sigfillset(&everything)
        _ = unsafe pthread_sigmask(SIG_SETMASK, &everything, &before)
        defer { _ = unsafe pthread_sigmask(SIG_SETMASK, &before, nil) }

        start = ThreadStart(name: name, body: body)
        let context = unsafe Unmanaged.passRetained(start)
        var identity = pthread_t()
        let status = unsafe pthread_create(&identity, nil, runThread, context.toOpaque())
        guard status == 0 else {
            unsafe context.release()
            throw SystemThreadError(errno: status)
        }
        self.identity = identity
    }

    /// Whether the caller runs on this thread.
    package var isCurrent: Bool {
        // The system reuses the identity of a thread that has ended.
        !start.hasEnded.load(ordering: .acquiring) && pthread_equal(identity, pthread_self()) != 0
    }

    /// Waits until the thread has ended; a second call returns immediately.
    ///
    /// Must not be called on the thread itself.
    package func join() {
        precondition(!isCurrent, "a thread cannot join itself")
        guard !isJoined.exchange(true, ordering: .acquiringAndReleasing) else { return }
        _ = pthread_join(identity, nil)
    }

    deinit {
        if !isJoined.load(ordering: .acquiring) { pthread_detach(identity) }
    }
}

/// A thread could not be started.
@frozen package struct SystemThreadError: CodedError {
    package var code: ErrorCode { "thread.not_started" }
    package var message: String { "pthread_create: \(unsafe String(cString: strerror(errno)))" }
    package let errno: Int32

    package var description: String { message }
}

private final class ThreadStart: Sendable {
    let name: String
    let body: @Sendable () -> Void
    let hasEnded = Atomic(false)

    init(name: String, body: @escaping @Sendable () -> Void) {
        self.name = name
        self.body = body
    }
}

private func runThread(_ context: UnsafeMutableRawPointer?) -> UnsafeMutableRawPointer? {
    guard let context = unsafe context else { return nil }
    let start = unsafe Unmanaged<ThreadStart>.fromOpaque(context).takeRetainedValue()
    let name = String(decoding: start.name.utf8.prefix(15), as: UTF8.self)
    _ = unsafe pthread_setname_np(pthread_self(), name)
    start.body()
    start.hasEnded.store(true, ordering: .releasing)
    return nil
}
