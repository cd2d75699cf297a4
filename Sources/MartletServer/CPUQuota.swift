/// How much of the processors the kernel gives to this process: containers are bounded by a quota of time, not by the
/// number of processors that they see.
struct CPUQuota {
    /// The control group of this process in each hierarchy: `/proc/self/cgroup`.
    let groups: String
    /// Where hierarchies are mounted: `/proc/self/mountinfo`.
    let mounts: String
    /// The content of a file; `nil` if it cannot be read.
    let read: (String) -> String?

    static var processors: Int? {
        guard let groups = SystemInformation.text(of: "/proc/self/cgroup"),
            let mounts = SystemInformation.text(of: "/proc/self/mountinfo")
        else { return nil }
        return CPUQuota(groups: groups, mounts: mounts, read: SystemInformation.text).processors
    }

    /// The smallest quota of the group and of those around it, as whole processors, rounded up; `nil` without one.
    var processors: Int? {
        let quotas = hierarchies.flatMap { hierarchy in
            Self.folders(hierarchy).compactMap { hierarchy.isUnified ? unified($0) : divided($0) }
        }
        return quotas.min()
    }

    private struct Hierarchy {
        let folder: String
        let group: Substring
        /// Whether it is of the second version, which has one hierarchy for everything.
        let isUnified: Bool
    }

    /// Those that may limit the processors.
    private var hierarchies: [Hierarchy] {
        groups.split(separator: "\n").compactMap { line in
            let parts = line.split(separator: ":", maxSplits: 2, omittingEmptySubsequences: false)
            guard parts.count == 3 else { return nil }
            let isUnified = parts[0] == "0" && parts[1].isEmpty
            guard isUnified || parts[1].split(separator: ",").contains("cpu") else { return nil }
            return mounted(parts[2], isUnified: isUnified)
        }
    }

    /// A mount is `36 35 98:0 /root /folder options [more] - type device options`.
    private func mounted(_ group: Substring, isUnified: Bool) -> Hierarchy? {
        for line in mounts.split(separator: "\n") {
            let words = line.split(separator: " ")
            guard words.count > 5, let dash = words.firstIndex(of: "-"), dash + 3 < words.count else { continue }
            let type = words[dash + 1]
            guard
                isUnified
                    ? type == "cgroup2" : type == "cgroup" && words[dash + 3].split(separator: ",").contains("cpu")
            else { continue }
            // A container sees its own group as the root of the mount, and may know its name outside.
            let root = words[3]
            let rest = root != "/" && group.hasPrefix(root) ? group.dropFirst(root.count) : group
            return Hierarchy(folder: String(words[4]), group: rest, isUnified: isUnified)
        }
        return nil
    }

    /// The folder of the group, and those around it up to the mount.
    private static func folders(_ hierarchy: Hierarchy) -> [String] {
        var parts = hierarchy.group.split(separator: "/")
        var folders: [String] = []
        while true {
            folders.append(([Substring(hierarchy.folder)] + parts).joined(separator: "/"))
            guard parts.popLast() != nil else { return folders }
        }
    }

    private func unified(_ folder: String) -> Int? {
        let words = read(folder + "/cpu.max")?.split { $0 == " " || $0 == "\n" } ?? []
        return words.count == 2 ? Self.whole(Int(words[0]), Int(words[1])) : nil
    }

    private func divided(_ folder: String) -> Int? {
        func number(_ name: String) -> Int? {
            read("\(folder)/\(name)")?.split(separator: "\n").first.flatMap { Int($0) }
        }
        return Self.whole(number("cpu.cfs_quota_us"), number("cpu.cfs_period_us"))
    }

    /// - Parameter quota: 0 or less, or no number (`max`), is none.
    private static func whole(_ quota: Int?, _ period: Int?) -> Int? {
        guard let quota, let period, quota > 0, period > 0 else { return nil }
        return max(quota / period + (quota % period > 0 ? 1 : 0), 1)
    }
}
