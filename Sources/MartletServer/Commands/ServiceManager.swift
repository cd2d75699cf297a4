private import CLinux

/// `sd_notify(3)`: tells the service manager how the process is, where there is one.
enum ServiceManager {
    /// Sends a state such as `READY=1` to `$NOTIFY_SOCKET`; without one, nothing happens.
    static func notify(_ state: String) {
        guard let path = SystemInformation.environment("NOTIFY_SOCKET"), path.utf8.count > 1 else { return }
        _ = unsafe martlet_notify(path, state)
    }
}
