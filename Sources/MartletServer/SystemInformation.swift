private import CLinux

/// What the machine and the process say about themselves.
enum SystemInformation {
    /// Processors that the scheduler lets this process use.
    static var usableProcessors: Int { Int(martlet_usable_processors()) }

    /// The value of an environment variable.
    static func environment(_ name: String) -> String? {
        guard let value = unsafe getenv(name) else { return nil }
        return unsafe String(cString: value)
    }
}
