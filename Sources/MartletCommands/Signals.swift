private import CLinux
internal import MartletCore
internal import MartletServer

/// The signals that control the process, as a stream.
package enum Signals {
    /// The meaning of a signal.
    package enum Signal: Sendable, Equatable {
        /// SIGTERM or SIGINT, with the signal number.
        case end(Int32)
        /// SIGHUP.
        case reload
        /// SIGUSR1: opens log files again.
        case reopen
        case takeOver
    }

    private static let controlSignals = [SIGTERM, SIGINT, SIGHUP, SIGUSR1, SIGUSR2]

    /// Blocks SIGPIPE and, if asked to, the control signals.
    ///
    /// To be called before any thread is started: threads inherit the signal mask.
    /// - Parameter controlSignals: whether ``stream()`` will wait for the control signals; otherwise they end the
    ///   process.
    package static func block(controlSignals isControlled: Bool) {
        var set = sigset_t()
        unsafe sigemptyset(&set)
        for number in (isControlled ? controlSignals : []) + [SIGPIPE] { unsafe sigaddset(&set, number) }
        unsafe pthread_sigmask(SIG_BLOCK, &set, nil)
    }

    /// Disables crash reports on standard error, unless `SWIFT_BACKTRACE` is set: registers and memory contain
    /// credentials.
    package static func disableBacktraces() {
        guard SystemInformation.environment("SWIFT_BACKTRACE") == nil else { return }
        // All zeros is the default action.
        var action = sigaction()
        for number in [SIGQUIT, SIGABRT, SIGBUS, SIGFPE, SIGILL, SIGSEGV, SIGTRAP] {
            _ = unsafe sigaction(number, &action, nil)
        }
    }

    /// Waits for signals on a separate thread.
    package static func stream() throws -> AsyncStream<Signal> {
        let (stream, continuation) = AsyncStream.makeStream(of: Signal.self)
        _ = try SystemThread(name: "martlet-signal") {
            var set = sigset_t()
            unsafe sigemptyset(&set)
            for number in controlSignals { unsafe sigaddset(&set, number) }
            while true {
                var number: Int32 = 0
                guard unsafe sigwait(&set, &number) == 0 else { continue }
                switch number {
                case SIGHUP: continuation.yield(.reload)
                case SIGUSR1: continuation.yield(.reopen)
                case SIGUSR2: continuation.yield(.takeOver)
                default: continuation.yield(.end(number))
                }
            }
        }
        return stream
    }
}
