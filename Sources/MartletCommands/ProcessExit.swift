private import CLinux
internal import MartletCore
package import MartletServer

/// Exits the process without the handlers that libraries have registered with `atexit(3)`.
///
/// Our threads are still running then. `exit(3)` frees OpenSSL's global state, and the process would crash or hang.
/// Outputs are not buffered and log lines are flushed here, so no handler is needed.
package enum ProcessExit {
    /// Flushes the log and exits.
    ///
    /// - Parameter flushTimeout: how long to wait for a log reader that does not read.
    package static func exit(_ status: Int32, flushTimeout: Duration = .seconds(1)) -> Never {
        LogSink.flushAll(timeout: flushTimeout)
        _exit(status)
    }

    /// Writes an error to standard error and exits, where there is no log yet.
    package static func fail(_ message: String, _ code: ExitCode) -> Never {
        let line = "martlet: error: \(message)\n"
        _ = unsafe line.utf8CString.withUnsafeBufferPointer {
            unsafe write(STDERR_FILENO, $0.baseAddress, $0.count - 1)
        }
        exit(code.rawValue)
    }
}
