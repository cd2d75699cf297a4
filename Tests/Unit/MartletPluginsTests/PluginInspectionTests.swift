import MartletCore
import MartletPlugins
import MartletTesting
import Testing

@Suite struct `Inspected libraries` {
    static let facts = PluginFacts(major: 1, minor: 3, stamp: "c3", compiler: "swift")
    static let host = PluginHost(facts: facts, earlier: [2: "b2"], user: 1000)

    /// A library with the entry and a note.
    static func bytes(
        major: Int = 1, minor: Int = 3, stamp: String = "c3", compiler: String = "swift"
    ) throws -> [UInt8] {
        try CompiledLibrary.bytes(
            """
            const void *martlet_plugin(void) { return 0; }
            __attribute__((section(".note.martlet"), used, aligned(4)))
            static const struct {
                unsigned a, b, c; char name[8]; unsigned major, minor; char stamp[68]; char compiler[160];
            } note = { 8, 236, 1, "Martlet", \(major), \(minor), "\(stamp)", "\(compiler)" };
            """)
    }

    static func codes(_ bytes: [UInt8], owner: UInt32 = 0, mode: UInt32 = 0o100755) -> [String] {
        PluginInspection(PluginFile(bytes: bytes, owner: owner, mode: mode), for: host).findings.map(\.code.rawValue)
    }

    @Test func `accept what was built for this version and earlier ones`() throws {
        #expect(Self.codes(try Self.bytes()).isEmpty)
        #expect(Self.codes(try Self.bytes(minor: 2, stamp: "b2")).isEmpty)
        #expect(Self.codes(try Self.bytes(), owner: 1000, mode: 0o100700).isEmpty)
    }

    struct Row: Sendable {
        var major = 1
        var minor = 3
        var stamp = "c3"
        var compiler = "swift"
        let codes: [String]
    }

    @Test(arguments: [
        Row(major: 2, codes: ["plugin.api_version"]), Row(major: 0, codes: ["plugin.api_version"]),
        Row(minor: 4, codes: ["plugin.api_version"]), Row(minor: 1, stamp: "a1", codes: ["plugin.stamp"]),
        Row(minor: 2, codes: ["plugin.stamp"]), Row(stamp: "b2", codes: ["plugin.stamp"]),
        Row(stamp: "", codes: ["plugin.stamp"]), Row(compiler: "other", codes: ["plugin.compiler"]),
        Row(stamp: "x", compiler: "other", codes: ["plugin.compiler", "plugin.stamp"]),
    ])
    func `reject other facts`(row: Row) throws {
        let bytes = try Self.bytes(major: row.major, minor: row.minor, stamp: row.stamp, compiler: row.compiler)
        #expect(Self.codes(bytes) == row.codes)
    }

    @Test(arguments: [
        (UInt32(1), UInt32(0o755), "plugin.owner"), (0, 0o775, "plugin.writable"), (1000, 0o757, "plugin.writable"),
        (0, 0o722, "plugin.writable"),
    ])
    func `reject files that others may change`(owner: UInt32, mode: UInt32, code: String) throws {
        #expect(Self.codes(try Self.bytes(), owner: owner, mode: mode) == [code])
    }

    @Test func `report every reason together, and warn of directories`() {
        let file = PluginFile(bytes: [1, 2, 3], owner: 5, mode: 0o666, openDirectory: "/tmp/x")
        let inspection = PluginInspection(file, for: Self.host)
        #expect(
            inspection.findings.map(\.code.rawValue) == [
                "plugin.owner", "plugin.writable", "plugin.directory_writable", "plugin.not_elf",
            ])
        #expect(inspection.findings.map(\.isWarning) == [false, false, true, false])
    }
}

@Suite struct `Reports of trials` {
    @Test func `are read as they were written`() {
        var report = PluginReport()
        report.loadError = "it\nis gone"
        report.undefined = ["a", "b c"]
        report.mismatch = "other"
        report.kinds = ["line"]
        var expected = report
        expected.loadError = "it is gone"
        expected.isComplete = true
        #expect(PluginReport(Array(report.text.utf8)) == expected)
    }

    @Test(arguments: ["", "kind line", "kind line\n", "nonsense\n\n\u{0}\n", "en", "kind\nen"])
    func `are incomplete without their end`(text: String) {
        #expect(!PluginReport(Array(text.utf8)).isComplete)
    }
}
