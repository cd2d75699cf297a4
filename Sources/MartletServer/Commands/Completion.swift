private import CLinux
private import Synchronization

/// Lets a thread wait for work that runs elsewhere.
///
/// It sleeps in a plain read, so that tools which follow a process by its threads can follow this one.
package final class Completion: Sendable {
    private let code = Mutex<ExitCode>(.internalFault)
    private let signal: Int32

    package init() { signal = eventfd(0, Int32(EFD_CLOEXEC)) }

    deinit { close(signal) }

    /// The work is done.
    package func finish(_ code: ExitCode) {
        self.code.withLock { $0 = code }
        var one: UInt64 = 1
        _ = unsafe write(signal, &one, 8)
    }

    /// Waits until it is.
    package func wait() -> ExitCode {
        var count: UInt64 = 0
        while unsafe read(signal, &count, 8) < 0, martlet_errno() == EINTR {}
        return code.withLock { $0 }
    }
}
