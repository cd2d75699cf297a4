/// How much memory a process may use: the least of the limits of its cgroups (version 1 or 2) and the machine's memory.
enum MemoryLimit {
    /// - Parameter read: the text of a file; `nil` if it cannot be read.
    static func current(_ read: (String) -> String?) -> Int? {
        var limits = groups(in: read("/proc/self/cgroup") ?? "").flatMap { Self.limits(of: $0, read) }
        if let total = machine(read("/proc/meminfo") ?? "") { limits.append(total) }
        return limits.min()
    }

    /// Where the limits of one cgroup and of those above it are.
    private struct Group {
        let root: String
        let path: String
        let file: String
    }

    /// The groups of a process, as `cgroups(7)` describes the file.
    private static func groups(in text: String) -> [Group] {
        text.split(separator: "\n").compactMap { line in
            let parts = line.split(separator: ":", maxSplits: 2, omittingEmptySubsequences: false)
            guard parts.count == 3, parts[2].hasPrefix("/"), !parts[2].contains("..") else { return nil }
            if parts[0] == "0", parts[1].isEmpty {
                return Group(root: "/sys/fs/cgroup", path: String(parts[2]), file: "memory.max")
            }
            guard parts[1].split(separator: ",").contains("memory") else { return nil }
            return Group(root: "/sys/fs/cgroup/memory", path: String(parts[2]), file: "memory.limit_in_bytes")
        }
    }

    private static func limits(of group: Group, _ read: (String) -> String?) -> [Int] {
        var limits: [Int] = []
        var path = group.path == "/" ? "" : group.path
        while true {
            // `max` is no limit, and neither is the largest number of version 1.
            if let text = read("\(group.root)\(path)/\(group.file)"),
                let limit = Int(text.prefix { $0 != "\n" }), limit > 0
            {
                limits.append(limit)
            }
            guard let slash = path.lastIndex(of: "/") else { return limits }
            path = String(path[..<slash])
        }
    }

    private static func machine(_ text: String) -> Int? {
        let line = text.split(separator: "\n").first { $0.hasPrefix("MemTotal:") }
        guard let kibibytes = line?.split(separator: " ").dropFirst().first.flatMap({ Int($0) }) else { return nil }
        let bytes = kibibytes.multipliedReportingOverflow(by: 1024)
        return bytes.overflow ? nil : bytes.partialValue
    }
}
