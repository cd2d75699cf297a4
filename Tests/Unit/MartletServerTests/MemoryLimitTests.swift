import Testing

@testable import MartletServer

@Suite struct MemoryLimitTests {
    private static let machine = "MemTotal:       16000000 kB\nMemFree:        1 kB\n"
    private static let gibibyte = 1 << 30

    private func limit(_ files: [String: String]) -> Int? { MemoryLimit.current { files[$0] } }

    @Test func `version 2: the least limit of the cgroup and of those above it`() {
        var files = [
            "/proc/self/cgroup": "0::/system.slice/martlet.service\n", "/proc/meminfo": Self.machine,
            "/sys/fs/cgroup/system.slice/martlet.service/memory.max": "max\n",
            "/sys/fs/cgroup/system.slice/memory.max": "1073741824\n",
        ]
        #expect(limit(files) == Self.gibibyte)
        files["/sys/fs/cgroup/system.slice/martlet.service/memory.max"] = "536870912\n"
        #expect(limit(files) == Self.gibibyte / 2)
        // In a container the path is often not visible, and its root is the container's group.
        #expect(
            limit([
                "/proc/self/cgroup": "0::/../other\n0::/\n", "/proc/meminfo": Self.machine,
                "/sys/fs/cgroup/memory.max": "1073741824",
            ]) == Self.gibibyte)
    }

    @Test func `version 1: the group of the controller for memory`() {
        #expect(
            limit([
                "/proc/self/cgroup": "12:cpu,cpuacct:/x\n5:memory:/docker/abc\n1:name=systemd:/x\n",
                "/proc/meminfo": Self.machine,
                "/sys/fs/cgroup/memory/docker/abc/memory.limit_in_bytes": "1073741824\n",
                "/sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712\n",
            ]) == Self.gibibyte)
    }

    @Test func `without a limit the machine's memory, without anything none`() {
        #expect(limit(["/proc/self/cgroup": "0::/\n", "/proc/meminfo": Self.machine]) == 16_000_000 * 1024)
        #expect(limit(["/proc/self/cgroup": "nonsense\n0:\n::\n"]) == nil)
        #expect(limit([:]) == nil)
    }

    @Test func `this process has a size, and a limit`() throws {
        let resident = try #require(SystemInformation.residentBytes)
        let limit = try #require(MemoryLimit.current { SystemInformation.text(of: $0) })
        #expect(resident > 1 << 20 && resident < limit)
    }
}
