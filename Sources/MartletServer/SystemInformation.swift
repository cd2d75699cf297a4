private import CLinux
private import CStart

/// Properties of the machine and the process.
package enum SystemInformation {
    /// The arguments of the process, its name included, whatever preloaded libraries do to its environment.
    package static var arguments: [String] {
        (0..<martlet_argument_count()).compactMap { index in
            unsafe martlet_argument(index).map { unsafe String(cString: $0) }
        }
    }

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

    /// The resident memory of this process; `nil` if unknown.
    static var residentBytes: Int? {
        let pages = text(of: "/proc/self/statm")?.split(separator: " ").dropFirst().first.flatMap { Int($0) }
        guard let bytes = pages?.multipliedReportingOverflow(by: Int(sysconf(Int32(_SC_PAGESIZE)))), !bytes.overflow
        else { return nil }
        return bytes.partialValue
    }

    /// The text of a small file of the kernel; `nil` if it cannot be read.
    static func text(of path: String) -> String? {
        let descriptor = unsafe martlet_open_read(path)
        guard descriptor >= 0 else { return nil }
        defer { close(descriptor) }
        var bytes = [UInt8](repeating: 0, count: 16_384)
        let count = unsafe bytes.withUnsafeMutableBytes { unsafe read(descriptor, $0.baseAddress, $0.count) }
        return count < 0 ? nil : String(decoding: bytes.prefix(count), as: UTF8.self)
    }

    /// The value of an environment variable.
    package static func environment(_ name: String) -> String? {
        guard let value = unsafe getenv(name) else { return nil }
        return unsafe String(cString: value)
    }
}
