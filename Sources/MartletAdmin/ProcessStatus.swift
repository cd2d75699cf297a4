private import CLinux
private import Glibc

/// The kernel's statistics of this process; `nil` if unavailable.
package struct ProcessStatus: Sendable {
    var residentBytes: Int?
    var threads: Int?
    var openDescriptors: Int?
    var descriptorLimit: Int?
    var processorSeconds: Double?

    /// Reads `/proc/self`.
    package static func current() -> ProcessStatus {
        var status = ProcessStatus(
            memoryAndThreads: text(of: "/proc/self/status"), limits: text(of: "/proc/self/limits"))
        status.openDescriptors = countDescriptors()
        // In microseconds, whatever the resolution (POSIX).
        let ticks = clock()
        if ticks >= 0 { status.processorSeconds = Double(ticks) / 1e6 }
        return status
    }

    /// Parses the texts of `proc_pid_status(5)` and `proc_pid_limits(5)`.
    init(memoryAndThreads: String, limits: String) {
        for line in memoryAndThreads.split(separator: "\n") {
            let words = line.split(whereSeparator: { $0 == " " || $0 == "\t" })
            guard words.count >= 2, let number = Int(words[1]) else { continue }
            switch words[0] {
            case "VmRSS:": residentBytes = number.multipliedReportingOverflow(by: 1024).partialValue
            case "Threads:": threads = number
            default: break
            }
        }
        let files = limits.split(separator: "\n").first { $0.hasPrefix("Max open files") }
        descriptorLimit = files?.dropFirst("Max open files".count).split(separator: " ").first.flatMap { Int($0) }
    }

    private static func text(of path: String) -> String {
        let descriptor = unsafe martlet_open_read(path)
        guard descriptor >= 0 else { return "" }
        defer { close(descriptor) }
        var bytes: [UInt8] = []
        var chunk = [UInt8](repeating: 0, count: 8192)
        while bytes.count < 64 * 1024 {
            let count = unsafe chunk.withUnsafeMutableBytes { unsafe read(descriptor, $0.baseAddress, $0.count) }
            guard count > 0 else { break }
            bytes += chunk.prefix(count)
        }
        return String(decoding: bytes, as: UTF8.self)
    }

    private static func countDescriptors() -> Int? {
        guard let folder = unsafe opendir("/proc/self/fd") else { return nil }
        defer { unsafe closedir(folder) }
        var count = 0
        while unsafe readdir(folder) != nil { count += 1 }
        // Without `.`, `..` and the descriptor that reads the folder.
        return max(count - 3, 0)
    }
}
