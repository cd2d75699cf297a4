import Foundation
import MartletCore
import Testing

@testable import MartletConfig

private enum Mode: String, CaseIterable, ConfigurationValue { case off, optional, required }

private struct App: ConfigurationDecodable, Equatable {
    let id: String

    init(from reader: inout ConfigurationReader) throws(ConfigurationError) { id = try reader.required("app_id") }
}

/// A block with a grammar, so that unknown keys are reported even after an early throw.
private struct Strict: ConfigurationDecodable {
    static var grammar: ConfigurationGrammar? {
        .init([.required("audiences", .list(.text, nonEmpty: true), ""), .optional("leeway", .duration, "")])
    }

    init(from reader: inout ConfigurationReader) throws(ConfigurationError) {
        _ = try reader.required("audiences", as: NonEmpty<String>.self)
        _ = reader.optional("leeway", as: Duration.self)
    }
}

@Suite struct `A reader` {
    @Test func `reads typed values`() throws {
        let text = """
            audiences: [a, b]
            leeway: 30s
            nonce: required
            count: 7
            place: here
            """
        let (value, lines) = try readBlock(text) { reader throws(ConfigurationError) in
            (
                try reader.required("audiences", as: NonEmpty<String>.self).elements,
                reader.optional("leeway", default: Duration.zero, in: .zero ... .seconds(60)),
                reader.optional("nonce", default: Mode.optional), reader.optional("missing", default: Mode.optional),
                try reader.required("count", as: Int.self, in: 1...10),
                reader.optional("place", as: Located<String>.self)?.location
            )
        }
        #expect(lines == [])
        let read = try #require(value)
        #expect(
            read.0 == ["a", "b"] && read.1 == .seconds(30) && read.2 == .required && read.3 == .optional && read.4 == 7)
        #expect(read.5?.description == "test.yaml:5:8")
    }

    @Test func `records invalid optional values and continues`() throws {
        let (_, lines) = try readBlock("leeway: 2m\nnonce: requird\nlist: [1s, x, 2s, y]\nother: 1") {
            reader throws(ConfigurationError) in
            _ = reader.optional("leeway", default: Duration.zero, in: .zero ... .seconds(60))
            _ = reader.optional("nonce", default: Mode.off)
            _ = reader.optional("list", as: [Duration].self)
        }
        #expect(
            lines == [
                "test.yaml:1:9: error: leeway: must be between 0s and 1m, not 2m [config.bad_duration]",
                "test.yaml:2:8: error: nonce: must be off, optional or required, not 'requird' (did you mean 'required'?) [config.bad_value]",
                "test.yaml:3:12: error: list: 'x' is not a duration such as 250ms, 10s, 15m, 1h or 30d [config.bad_duration]",
                "test.yaml:3:19: error: list: 'y' is not a duration such as 250ms, 10s, 15m, 1h or 30d [config.bad_duration]",
                "test.yaml:4:1: error: unknown key 'other' in provider 'test' [config.unknown_key]",
            ])
    }

    @Test func `reports the misspelled key instead of the missing one`() throws {
        let (_, lines) = try readBlock("audience: [a]") { reader throws(ConfigurationError) in
            try reader.required("audiences", as: NonEmpty<String>.self)
        }
        #expect(
            lines == [
                "test.yaml:1:1: error: unknown key 'audience' in provider 'test' (did you mean 'audiences'?) [config.unknown_key]"
            ])
    }

    @Test func `reports unknown keys of a grammar even after a throw`() throws {
        let node = try #require(parse("leway: 1s\nleeway: 1s").node)
        var diagnostics = Diagnostics()
        #expect(node.decode(Strict.self, title: "provider 'p'", into: &diagnostics) == nil)
        #expect(diagnostics.sorted.map(\.code) == [.configMissingKey, .configUnknownKey])
    }

    @Test func `reads nested blocks`() throws {
        let (value, lines) = try readBlock(
            "apps:\n  ios: { app_id: x }\n  web: { app: y }\n  tv: 5\nlist: [{ app_id: z }, 3]"
        ) {
            reader throws(ConfigurationError) in
            let apps = reader.namedBlocks("apps", noun: "app", as: App.self)
            return (apps.map { "\($0.name.value)=\($0.block.id)" }, reader.blocks("list", as: App.self).map(\.value.id))
        }
        #expect(value?.0 == ["ios=x"] && value?.1 == ["z"])
        #expect(
            lines == [
                "test.yaml:3:10: error: unknown key 'app' in app 'web' of provider 'test' (did you mean 'app_id'?) [config.unknown_key]",
                "test.yaml:4:7: error: app 'tv' of provider 'test' must be a block of keys, not a single value [config.wrong_type]",
                "test.yaml:5:23: error: list[1] of provider 'test' must be a block of keys, not a single value [config.wrong_type]",
            ])
    }

    @Test func `rejects unsupported keys`() throws {
        let (_, lines) = try readBlock("team_id: x") { reader in reader.unsupported("team_id") }
        #expect(
            lines == ["test.yaml:1:1: error: 'team_id' in provider 'test' is not supported yet [config.not_supported]"])
    }

    @Test func `escapes control characters and truncates long texts`() throws {
        let (_, lines) = try readBlock("\"a\\nb\\e[31m\": 1\n\"\(String(repeating: "x", count: 500))\": 2") { _ in }
        #expect(
            lines[0]
                == "test.yaml:1:1: error: unknown key 'a\u{FFFD}b\u{FFFD}[31m' in provider 'test' [config.unknown_key]")
        #expect(lines[1].utf8.count < 150)
    }
}

@Suite struct `A secret` {
    /// A configuration file in a temporary folder, with other files next to it.
    private func secret(_ yaml: String, files: [String: String] = [:]) throws -> (text: String?, lines: [String]) {
        let folder = FileManager.default.temporaryDirectory.appending(path: "martlet-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }
        for (name, text) in files {
            try Data(text.utf8).write(to: folder.appending(path: name))
            try FileManager.default.setAttributes(
                [.posixPermissions: 0o600], ofItemAtPath: folder.appending(path: name).path)
        }
        let (value, lines) = try readBlock(yaml, file: folder.appending(path: "c.yaml").path) {
            reader throws(ConfigurationError) in try reader.secret("key")
        }
        let prefix = folder.path + "/"
        return (
            value?.value.withBytes { String(decoding: $0, as: UTF8.self) },
            lines.map { $0.replacingOccurrences(of: prefix, with: "") }
        )
    }

    @Test(arguments: [
        ("key: hunter2", "", "hunter2"), ("key: |\n  line 1\n  line 2", "", "line 1\nline 2"),
        ("key_file: s", "hunter2\n", "hunter2"),
        ("key_file: s", "hunter2\r\n", "hunter2"),
        ("key: 12345", "", "12345"),
    ])
    func `comes from the file or from another file`(_ yaml: String, _ file: String, _ expected: String) throws {
        let (text, lines) = try secret(yaml, files: ["s": file])
        #expect(text == expected)
        #expect(lines == [])
    }

    @Test(arguments: [
        (
            "key: a\nkey_file: s",
            "c.yaml:2:1: error: 'key_file' and 'key' are both given in provider 'test' [config.conflicting_keys]"
        ),
        ("{}", "c.yaml:1:1: error: missing key 'key' or 'key_file' in provider 'test' [config.missing_key]"),
        ("key: ''", "c.yaml:1:6: error: key: must not be empty [config.bad_value]"),
        ("key:", "c.yaml:1:5: error: key: has no value [config.wrong_type]"),
        ("key_file: empty", "c.yaml:1:11: error: key_file: 'empty' is empty [config.bad_value]"),
        (
            "key_file: none",
            "c.yaml:1:11: error: key_file: cannot read 'none': No such file or directory [config.file_unreadable]"
        ),
        (
            "key_file: /dev/zero",
            "c.yaml:1:11: error: key_file: cannot read '/dev/zero': not a regular file [config.file_unreadable]"
        ),
        (
            "key_file: .",
            "c.yaml:1:11: error: key_file: cannot read '.': not a regular file [config.file_unreadable]"
        ),
        (
            "key_file: large",
            "c.yaml:1:11: error: key_file: cannot read 'large': larger than 64KiB [config.file_unreadable]"
        ),
    ])
    func `is reported with a position`(_ yaml: String, _ expected: String) throws {
        let large = String(repeating: "x", count: 70_000)
        let (text, lines) = try secret(yaml, files: ["s": "x", "empty": "\n", "large": large])
        #expect(text == nil)
        #expect(lines == [expected])
    }

    @Test func `in the store URL is not shown in messages`() {
        let (_, diagnostics) = load(minimalSample + "\nstore: { url: \"redis://:hunter2@\u{E9}/\" }")
        #expect(diagnostics.all.map(\.code) == [.configBadURL])
        #expect(!diagnostics.description.contains("hunter2"))
    }
}

@Suite struct `Loading a file` {
    @Test func `reports why it cannot be read`() {
        let (configuration, diagnostics) = GatewayConfiguration.load(
            path: "/nonexistent/config.yaml", environment: { _ in nil }, knownKinds: [])
        #expect(configuration == nil)
        #expect(
            diagnostics.description
                == "/nonexistent/config.yaml:1:1: error: cannot read the configuration: No such file or directory; pass its path with --config FILE, or create one with 'martlet init' [config.file_unreadable]"
        )
    }

    @Test func `is bounded`() {
        let (configuration, diagnostics) = load(String(repeating: "#", count: 16 * 1_048_576 + 1))
        #expect(configuration == nil && diagnostics.all.map(\.code) == [.configTooLarge])
    }

    @Test func `accepts aliases of whole values`() {
        let text = """
            version: 1
            upstreams: { a: &u { endpoints: ["builtin:echo"] }, b: *u }
            routes:
              - { name: x, match: { path: /x }, auth: none, upstream: a }
              - { name: y, match: { path: /y }, auth: none, upstream: b }
            """
        #expect(load(text).configuration?.upstreams.map(\.name.value) == ["a", "b"])
    }

    @Test func `rejects an alias of the value that contains it`() {
        #expect(parse("a: &x [*x]").diagnostics.all.map(\.code) == [.configYAMLSyntax])
        #expect(parse("b: &x 1\na: &x [*x]").diagnostics.all.map(\.code) == [.configYAMLSyntax])
    }
}
