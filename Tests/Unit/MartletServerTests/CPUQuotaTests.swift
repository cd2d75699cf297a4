import Testing

@testable import MartletServer

@Suite struct CPUQuotaTests {
    private static let unified = "29 23 0:26 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw,nsdelegate\n"
    private static let divided = """
        30 29 0:27 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory
        31 29 0:28 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct

        """

    private func processors(_ groups: String, _ mounts: String, _ files: [String: String]) -> Int? {
        CPUQuota(groups: groups, mounts: mounts) { files["/sys/fs/cgroup" + $0.dropFirst("/sys/fs/cgroup".count)] }
            .processors
    }

    @Test(arguments: [
        ("50000 100000\n", 1), ("100000 100000\n", 1), ("100001 100000\n", 2), ("250000 100000", 3),
        ("max 100000\n", nil),
        ("", nil), ("0 100000", nil), ("5 0", nil), ("99999999999999999999 1", nil),
    ])
    func `a quota of the second version is rounded up to whole processors`(text: String, count: Int?) {
        #expect(processors("0::/\n", Self.unified, ["/sys/fs/cgroup/cpu.max": text]) == count)
        #expect(processors("0::/a/b\n", Self.unified, ["/sys/fs/cgroup/a/b/cpu.max": text]) == count)
    }

    @Test func `the smallest quota of the groups around it counts`() {
        let files = ["/sys/fs/cgroup/a/cpu.max": "200000 100000", "/sys/fs/cgroup/a/b/cpu.max": "900000 100000"]
        #expect(processors("0::/a/b\n", Self.unified, files) == 2)
        #expect(processors("0::/c\n", Self.unified, files) == nil)
    }

    @Test func `the first version is read where it is mounted, by the name that the group has there`() {
        func files(_ folder: String, _ quota: String) -> [String: String] {
            ["\(folder)/cpu.cfs_quota_us": quota, "\(folder)/cpu.cfs_period_us": "100000\n"]
        }
        let groups = "7:memory:/m\n4:cpu,cpuacct:/t\n0::/x\n"
        let own = "/sys/fs/cgroup/cpu,cpuacct"
        #expect(processors(groups, Self.divided, files(own + "/t", "150000\n")) == 2)
        #expect(processors(groups, Self.divided, files(own + "/t", "-1\n")) == nil)
        // In a container the mount begins at the group, whose name is that of the machine.
        let inside = Self.divided.replacing(" / /sys/fs/cgroup/cpu", with: " /t /sys/fs/cgroup/cpu")
        #expect(processors(groups, inside, files(own, "50000\n")) == 1)
        #expect(processors(groups, Self.divided, files(own, "50000\n")) == 1)
        #expect(processors("", "", [:]) == nil && processors("x", "y z", [:]) == nil)
    }
}
