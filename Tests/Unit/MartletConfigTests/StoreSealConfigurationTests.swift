import Foundation
import MartletConfig
import MartletCore
import MartletTesting
import Testing

@Suite struct `The seal of the store` {
    private static let key = Data(repeating: 7, count: 32).base64EncodedString()

    private struct Result {
        let seal: StoreSealConfiguration?
        let lines: [String]
    }

    /// Decodes a `seal:` beside four files: `a` and `b` with keys, `short` with half of one, `open` that all may read.
    private func read(_ seal: String) throws -> Result {
        let folder = try TemporaryFolder()
        for (name, text) in [("a", Self.key + "\n"), ("b", Self.key), ("short", "AAAA"), ("open", Self.key)] {
            try folder.write(text, to: name)
            try FileManager.default.setAttributes(
                [.posixPermissions: name == "open" ? 0o644 : 0o600], ofItemAtPath: folder.file(name))
        }
        let text = minimalFile + "store: { url: \"redis://127.0.0.1\", seal: \(seal) }\n"
        let decoded = decode(Array(text.utf8), file: folder.file("config.yaml"))
        return Result(seal: decoded.configuration?.store.seal, lines: decoded.lines)
    }

    @Test func `has a key, a mode and an end of the transition`() throws {
        let plain = try read("{ key_file: a }")
        #expect(plain.lines == [] && plain.seal?.keys.count == 1 && plain.seal?.mode == .enforce)
        #expect(plain.seal?.acceptsUnsealedUntil == nil)
        let full = try read(
            "{ key_files: [a, b], mode: observe, accept_unsealed_until: 2026-12-24T18:00:00+08:00 }")
        #expect(full.lines == [] && full.seal?.keys.map(\.count) == [32, 32] && full.seal?.mode == .observe)
        #expect(full.seal?.acceptsUnsealedUntil == UnixTime(seconds: 1_798_106_400))
    }

    @Test(arguments: [
        ("{}", 42, "missing key 'key_file' or 'key_files'", "config.missing_key"),
        ("{ key_file: a, key_files: [b] }", 68, "'key_files' and 'key_file' are both given", "config.conflicting_keys"),
        ("{ key_files: [] }", 55, "key_files: must have at least one file", "config.bad_value"),
        ("{ key_file: short }", 54, "key_file: must have 32 bytes in base64; martlet keygen store", "config.bad_value"),
        ("{ key_files: [a, short] }", 59, "key_files: must have 32 bytes in base64", "config.bad_value"),
        ("{ key_file: none }", 54, "cannot read", "config.file_unreadable"),
        ("{ key_file: a, mode: strict }", 63, "must be enforce or observe, not 'strict'", "config.bad_value"),
        (
            "{ key_file: a, accept_unsealed_until: tomorrow }", 80, "'tomorrow' is not an instant such as",
            "config.bad_value"
        ),
        ("{ key_file: open }", 54, "is readable by everyone", "config.file_exposed"),
        ("{ key_files: [open] }", 56, "is readable by everyone", "config.file_exposed"),
    ])
    func `has errors with positions`(seal: String, column: Int, text: String, code: String) throws {
        let lines = try read(seal).lines
        #expect(lines.count == 1, "\(lines)")
        #expect(
            lines.first?.contains(":4:\(column): ") == true && lines.first?.contains(text) == true
                && lines.first?.hasSuffix("[\(code)]") == true, "\(lines)")
    }
}
