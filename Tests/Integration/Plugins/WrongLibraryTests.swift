import Foundation
import MartletTesting
import Testing

/// Libraries that must not be used: each is a configuration error at its path, exit 78, and never a crash.
@Suite struct `Wrong libraries` {
    struct Row: Sendable, CustomTestStringConvertible {
        let testDescription: String
        let code: String
        let text: String
        /// C code; `nil` if ``prepare`` makes the file.
        var source: String? = PluginStage.entry
        var options: [String] = []
        var prepare: @Sendable (TemporaryFolder) throws -> Void = { _ in }
    }

    static let rows = [
        Row(
            testDescription: "missing", code: "plugin.file_unreadable", text: "No such file or directory", source: nil),
        Row(
            testDescription: "a directory", code: "plugin.file_unreadable", text: "not a regular file", source: nil,
            prepare: { try PluginStage.command(["mkdir", $0.file("lib.so")]) }),
        Row(
            testDescription: "not ELF", code: "plugin.not_elf", text: "does not begin like an ELF file", source: nil,
            prepare: { try $0.write("#!/bin/sh\n", to: "lib.so") }),
        Row(
            testDescription: "cut off", code: "plugin.not_elf", text: "the file ends within",
            prepare: { try PluginStage.command(["truncate", "-s", "200", $0.file("lib.so")]) }),
        Row(
            testDescription: "for another machine", code: "plugin.wrong_architecture", text: "it is for machine 8",
            prepare: { try patch($0, offset: 18, byte: 8) }),
        Row(
            testDescription: "for 32 bits", code: "plugin.wrong_architecture", text: "not a 64-bit file",
            prepare: { try patch($0, offset: 4, byte: 1) }),
        Row(
            testDescription: "no entry", code: "plugin.no_entry", text: "exports no martlet_plugin",
            source: "int other(void) { return 1; }"),
        Row(
            testDescription: "no note", code: "plugin.no_entry", text: "has no note .note.martlet",
            options: ["-DMARTLET_PLUGIN_NO_NOTE"]),
        Row(
            testDescription: "another major version", code: "plugin.api_version",
            text: "was built for version 2.0 of the plugin API; this gateway has 1.", options: ["-DMARTLET_API_MAJOR=2"]
        ),
        Row(
            testDescription: "a later minor version", code: "plugin.api_version", text: "was built for version 1.99",
            options: ["-DMARTLET_API_MINOR=99"]),
        Row(
            testDescription: "another compiler", code: "plugin.compiler", text: "built by another compiler ('another')",
            options: ["-DMARTLET_COMPILER=\"another\""]),
        Row(
            testDescription: "another stamp", code: "plugin.stamp", text: "other public symbols (stamp '0123')",
            options: ["-DMARTLET_API_STAMP=\"0123\""]),
        Row(
            testDescription: "writable by its group", code: "plugin.writable",
            text: "writable by its group (mode 0664)",
            prepare: { try PluginStage.command(["chmod", "664", $0.file("lib.so")]) }),
        Row(
            testDescription: "writable by everyone, behind a link", code: "plugin.writable",
            text: "by everyone (mode 0646)",
            prepare: {
                try PluginStage.command(["mv", $0.file("lib.so"), $0.file("target.so")])
                try PluginStage.command(["ln", "-s", "target.so", $0.file("lib.so")])
                try PluginStage.command(["chmod", "646", $0.file("target.so")])
            }),
        Row(
            testDescription: "undefined symbols", code: "plugin.undefined_symbols",
            text: "does not have: 'lost_",
            source: PluginStage.entry + """
                void lost_1(void); void lost_2(void); void lost_3(void); void lost_4(void);
                void use(void) { lost_1(); lost_2(); lost_3(); lost_4(); }
                """),
        Row(
            testDescription: "a library that it needs is missing", code: "plugin.load_failed", text: "libgone.so",
            source: PluginStage.entry,
            prepare: {
                try PluginStage.compile(
                    "int gone(void) { return 1; }", ["-Wl,-soname,libgone.so"], to: "gone.so", in: $0)
                try PluginStage.compile(
                    PluginStage.entry, ["-Wl,--no-as-needed", $0.file("gone.so")], to: "lib.so", in: $0)
            }),
        Row(
            testDescription: "Swift's library of its own", code: "plugin.own_runtime", text: "libswiftCore.so",
            prepare: {
                try PluginStage.compile("int a;", ["-Wl,-soname,libswiftCore.so"], to: "core.so", in: $0)
                try PluginStage.compile(
                    PluginStage.entry, ["-Wl,--no-as-needed", $0.file("core.so")], to: "lib.so", in: $0)
            }),
        Row(
            testDescription: "a constructor that crashes", code: "plugin.load_failed", text: "by signal 11",
            source: constructor("*(volatile int *)0 = 1;")),
        Row(
            testDescription: "a constructor that exits", code: "plugin.load_failed", text: "with status 3",
            source: constructor("_exit(3);")),
        Row(
            testDescription: "a constructor that exits as if all were well", code: "plugin.load_failed",
            text: "with status 0", source: constructor("_exit(0);")),
        Row(
            testDescription: "a constructor that hangs", code: "plugin.load_failed", text: "did not finish within 5 s",
            source: constructor("for (;;) pause();")),
        Row(
            testDescription: "an entry that returns nothing", code: "plugin.load_failed", text: "no description",
            source:
                "#include \"martlet_plugin.h\"\nconst struct martlet_plugin_info *martlet_plugin(void) { return 0; }"),
        Row(testDescription: "no provider", code: "plugin.load_failed", text: "registers no provider"),
    ]

    static func constructor(_ body: String) -> String {
        "#include <unistd.h>\n" + PluginStage.entry + "__attribute__((constructor)) static void begin(void) { \(body) }"
    }

    static func patch(_ folder: TemporaryFolder, offset: Int, byte: UInt8) throws {
        var bytes = [UInt8](try Data(contentsOf: URL(filePath: folder.file("lib.so"))))
        bytes[offset] = byte
        try folder.write(bytes: bytes, to: "lib.so")
    }

    static func check(_ folder: TemporaryFolder, _ command: String...) throws -> CommandResult {
        let config = GatewayConfig(endpoints: ["http://127.0.0.1:9"]).text + "plugins:\n  - path: lib.so\n"
        let path = try folder.write(config, to: "config.yaml")
        return try run(try Executable.martlet(), command + ["--config", path], within: .seconds(60))
    }

    /// The line of the path in what ``check(_:_:)`` writes.
    static let line = GatewayConfig(endpoints: ["http://127.0.0.1:9"]).text.split(separator: "\n").count + 2

    @Test(arguments: rows)
    func `are rejected at their path`(row: Row) throws {
        let folder = try TemporaryFolder()
        if let source = row.source { try PluginStage.compile(source, row.options, to: "lib.so", in: folder) }
        try row.prepare(folder)
        let result = try Self.check(folder, "check")
        #expect(result.ending == .exited(78), "\(result)")
        let found = result.errorOutput.split(separator: "\n").filter { $0.contains(": error: ") }
        #expect(found.count == 1, "\(result)")
        #expect(
            found.first?.hasPrefix("\(folder.path)/config.yaml:\(Self.line):11: error: plugin '\(folder.path)/lib.so' ")
                == true, "\(result)")
        #expect(found.first?.hasSuffix("[\(row.code)]") == true && found.first?.contains(row.text) == true, "\(result)")
    }

    @Test func `that lack symbols name the first three`() throws {
        let folder = try TemporaryFolder()
        let row = try #require(Self.rows.first { $0.code == "plugin.undefined_symbols" })
        try PluginStage.compile(try #require(row.source), to: "lib.so", in: folder)
        let result = try Self.check(folder, "check")
        let named = (1...4).filter { result.errorOutput.contains("'lost_\($0)'") }
        #expect(named.count == 3 && result.errorOutput.contains(" and 1 more [plugin.undefined_symbols]"), "\(result)")
    }

    @Test(.enabled(if: geteuid() == 0)) func `are rejected where another user owns them`() throws {
        let folder = try TemporaryFolder()
        try PluginStage.compile(PluginStage.entry, to: "lib.so", in: folder)
        try PluginStage.command(["chown", "12345", folder.file("lib.so")])
        let result = try Self.check(folder, "check")
        #expect(result.ending == .exited(78) && result.errorOutput.contains("belongs to user 12345"), "\(result)")
        #expect(result.errorOutput.contains("[plugin.owner]"), "\(result)")
    }

    @Test func `keep a gateway from starting`() throws {
        let folder = try TemporaryFolder()
        try PluginStage.compile(
            Self.constructor("raise(9);").replacing("unistd", with: "signal"), to: "lib.so", in: folder)
        let result = try Self.check(folder, "run")
        #expect(result.ending == .exited(78) && result.errorOutput.contains("by signal 9"), "\(result)")
    }
}
