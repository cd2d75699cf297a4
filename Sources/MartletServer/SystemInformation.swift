private import CLinux

/// What the machine and the process say about themselves.
enum SystemInformation {
    /// Processors that the scheduler lets this process use.
    static var usableProcessors: Int { Int(martlet_usable_processors()) }

    /// Raises the limit of open descriptors as far as the process may.
    ///
    /// - Returns: how many it may have now.
    static func raiseDescriptorLimit() -> Int { Int(martlet_raise_descriptor_limit()) }

    /// The value of an environment variable.
    static func environment(_ name: String) -> String? {
        guard let value = unsafe getenv(name) else { return nil }
        return unsafe String(cString: value)
    }
}
