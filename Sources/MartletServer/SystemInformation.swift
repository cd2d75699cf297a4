private import CLinux

/// Properties of the machine and the process.
package enum SystemInformation {
    /// Processors that this process may be scheduled on.
    static var usableProcessors: Int { Int(martlet_usable_processors()) }

    /// Raises the soft limit of open descriptors to the hard limit.
    ///
    /// - Returns: the new limit.
    static func raiseDescriptorLimit() -> Int { Int(martlet_raise_descriptor_limit()) }

    /// The name of this host; empty if the system does not tell it.
    package static var hostName: String {
        var name = [CChar](repeating: 0, count: 256)
        // The last byte stays 0, also if the name does not fit.
        guard unsafe gethostname(&name, name.count - 1) == 0 else { return "" }
        return String(decoding: name.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
    }

    /// The value of an environment variable.
    package static func environment(_ name: String) -> String? {
        guard let value = unsafe getenv(name) else { return nil }
        return unsafe String(cString: value)
    }
}
