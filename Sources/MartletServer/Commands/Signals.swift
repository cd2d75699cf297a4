private import CLinux
internal import MartletCore

/// The signals that steer the process, as a stream.
package enum Signals {
    package enum Signal: Sendable, Equatable {
        /// SIGTERM or SIGINT; the number is what a second one adds to 128.
        case end(Int32)
        /// SIGHUP.
        case reload
    }

    /// Blocks the steering signals, and SIGPIPE for good. To be called before any thread is started: threads inherit it.
    package static func block() {
        var set = sigset_t()
        unsafe sigemptyset(&set)
        for number in [SIGTERM, SIGINT, SIGHUP, SIGPIPE] { unsafe sigaddset(&set, number) }
        unsafe pthread_sigmask(SIG_BLOCK, &set, nil)
    }

    /// Waits for signals on a thread of its own.
    package static func stream() throws -> AsyncStream<Signal> {
        let (stream, continuation) = AsyncStream.makeStream(of: Signal.self)
        _ = try SystemThread(name: "martlet-signal") {
            var set = sigset_t()
            unsafe sigemptyset(&set)
            for number in [SIGTERM, SIGINT, SIGHUP] { unsafe sigaddset(&set, number) }
            while true {
                var number: Int32 = 0
                guard unsafe sigwait(&set, &number) == 0 else { continue }
                continuation.yield(number == SIGHUP ? .reload : .end(number))
            }
        }
        return stream
    }
}
