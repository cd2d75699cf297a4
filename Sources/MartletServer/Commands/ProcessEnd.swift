private import CLinux
internal import MartletCore

/// The end of the process, without what libraries have registered to run at `exit(3)`.
///
/// Threads of ours are still at work then. `exit` frees OpenSSL's global state under them, and the process would end by a
/// signal or never, whatever its exit code was to be. Outputs are not buffered and log lines are written here, so nothing
/// that `exit` runs is missed.
package enum ProcessEnd {
    /// Writes the log lines that wait, and ends the process.
    ///
    /// - Parameter patience: how long a reader that takes no lines is waited for.
    package static func leave(_ status: Int32, waitingForLog patience: Duration = .seconds(1)) -> Never {
        LogSink.flushAll(within: patience)
        _exit(status)
    }
}
