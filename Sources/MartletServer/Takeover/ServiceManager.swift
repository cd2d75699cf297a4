private import CLinux

/// `sd_notify(3)`: reports the state of the process to the service manager.
package enum ServiceManager {
    /// Sends a state such as `READY=1` to `$NOTIFY_SOCKET`; does nothing without it.
    package static func notify(_ state: String) {
        guard let path = SystemInformation.environment("NOTIFY_SOCKET"), path.utf8.count > 1 else { return }
        _ = unsafe martlet_notify(path, state)
    }
}
