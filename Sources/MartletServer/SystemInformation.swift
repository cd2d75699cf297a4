private import CLinux

/// Properties of the machine and the process.
package enum SystemInformation {
    /// Processors that this process may be scheduled on.
    static var usableProcessors: Int { Int(martlet_usable_processors()) }

    /// Raises the soft limit of open descriptors to the hard limit.
    ///
    /// - Returns: the new limit.
    static func raiseDescriptorLimit() -> Int { Int(martlet_raise_descriptor_limit()) }

    /// The value of an environment variable.
    package static func environment(_ name: String) -> String? {
        guard let value = unsafe getenv(name) else { return nil }
        return unsafe String(cString: value)
    }
}
