private import CLinux

/// `sd_notify(3)`: reports the state of the process to the service manager.
package enum ServiceManager {
    /// Connected to `$NOTIFY_SOCKET` once, so that it is notified also while no descriptor is left; −1 without one.
    private static let socket: Int32 = {
        guard let path = SystemInformation.environment("NOTIFY_SOCKET"), path.utf8.count > 1 else { return -1 }
        return unsafe martlet_notify_socket(path)
    }()

    /// Sends a state such as `READY=1` to `$NOTIFY_SOCKET`; does nothing without it.
    package static func notify(_ state: String) {
        guard socket >= 0 else { return }
        _ = unsafe state.utf8CString.withUnsafeBufferPointer { bytes in
            unsafe send(socket, bytes.baseAddress, bytes.count - 1, Int32(MSG_NOSIGNAL))
        }
    }

    /// How often it wants to hear `WATCHDOG=1`, in milliseconds, or it restarts the process; `nil` if it does not.
    static var watchdogInterval: Int64? {
        guard socket >= 0, let text = SystemInformation.environment("WATCHDOG_USEC"), let interval = Int64(text),
            interval > 0
        else { return nil }
        let process = SystemInformation.environment("WATCHDOG_PID")
        return process == nil || process == String(getpid()) ? interval / 1000 : nil
    }
}
