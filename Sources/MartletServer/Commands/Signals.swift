private import CLinux
internal import MartletCore

/// The signals that steer the process, as a stream.
package enum Signals {
    /// A signal as the gateway understands it.
    package enum Signal: Sendable, Equatable {
        /// SIGTERM or SIGINT; the number is what a second one adds to 128.
        case end(Int32)
        /// SIGHUP.
        case reload
        /// SIGUSR2: the program file is started anew, and takes over.
        case takeOver
    }

    private static let steering = [SIGTERM, SIGINT, SIGHUP, SIGUSR2]

    /// Blocks SIGPIPE for good.
    ///
    /// To be called before any thread is started: threads inherit it.
    /// - Parameter steering: whether ``stream()`` will wait for the steering signals; else they end the process as usual.
    package static func block(steering isSteered: Bool) {
        var set = sigset_t()
        unsafe sigemptyset(&set)
        for number in (isSteered ? steering : []) + [SIGPIPE] { unsafe sigaddset(&set, number) }
        unsafe pthread_sigmask(SIG_BLOCK, &set, nil)
    }

    /// Has a trap or a wild access end the process without an account of it on standard error, where the caller's environment
    /// does not ask for one by `SWIFT_BACKTRACE`: registers and memory around them hold credentials.
    package static func dieQuietly() {
        guard SystemInformation.environment("SWIFT_BACKTRACE") == nil else { return }
        // All zeros is the system's own action.
        var action = sigaction()
        for number in [SIGQUIT, SIGABRT, SIGBUS, SIGFPE, SIGILL, SIGSEGV, SIGTRAP] {
            _ = unsafe sigaction(number, &action, nil)
        }
    }

    /// Waits for signals on a thread of its own.
    package static func stream() throws -> AsyncStream<Signal> {
        let (stream, continuation) = AsyncStream.makeStream(of: Signal.self)
        _ = try SystemThread(name: "martlet-signal") {
            var set = sigset_t()
            unsafe sigemptyset(&set)
            for number in steering { unsafe sigaddset(&set, number) }
            while true {
                var number: Int32 = 0
                guard unsafe sigwait(&set, &number) == 0 else { continue }
                switch number {
                case SIGHUP: continuation.yield(.reload)
                case SIGUSR2: continuation.yield(.takeOver)
                default: continuation.yield(.end(number))
                }
            }
        }
        return stream
    }
}
