private import CLinux
internal import MartletCore
package import MartletIO

/// Blocks a thread until work on another thread completes.
///
/// It blocks in a read(2), so that profilers that trace a process by its threads can trace this one.
package final class Completion: Sendable {
    private let code = Lock<ExitCode>(.internalFault)
    private let signal: Int32

    package init() throws(IOError) {
        signal = eventfd(0, Int32(EFD_CLOEXEC))
        guard signal >= 0 else { throw IOError("eventfd") }
    }

    deinit { close(signal) }

    /// Completes the work and resumes the waiting thread.
    package func finish(_ code: ExitCode) {
        self.code.withLock { $0 = code }
        var one: UInt64 = 1
        _ = unsafe write(signal, &one, 8)
    }

    /// Waits until the work is complete.
    package func wait() -> ExitCode {
        var count: UInt64 = 0
        while unsafe read(signal, &count, 8) < 0, martlet_errno() == EINTR {}
        return code.withLock { $0 }
    }
}
