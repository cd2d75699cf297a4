import MartletCore
import MartletJSON
import MartletProvider
import Testing

@testable import APIKeyProvider

@Suite struct `The lines of a keys file` {
    private static let digest = String(repeating: "ab", count: 32)
    private static let id = "0011223344556677"

    private func table(_ text: String) throws -> KeyTable { try KeyTable(Array(text.utf8)) }

    private func errors(_ text: String) -> [String] {
        do throws(KeyTable.ParseError) {
            _ = try KeyTable(Array(text.utf8))
            return []
        } catch {
            return error.errors.map { "\($0.line ?? 0): \($0.reason)" }
        }
    }

    /// A line with its required members, and others.
    private static func line(_ others: String = "", id: String = id) -> String {
        #"{"id":"\#(id)","sha256":"\#(digest)","subject":"s","created_at":5\#(others.isEmpty ? "" : "," + others)}"#
    }

    @Test func `are read back as they were written`() throws {
        var full = APIKeyRecord(
            id: "ffeeddccbbaa9988", digest: [UInt8](repeating: 1, count: 32), subject: "张三 \"x\"", isAccount: true,
            claims: ["role": "partner", "teams": ["a", "b"]], scopes: ["read", "write"],
            createdAt: UnixTime(seconds: 1), expiresAt: UnixTime(seconds: 9))
        full.previous = APIKeyRecord.Previous(digest: [UInt8](repeating: 2, count: 32), endsAt: UnixTime(seconds: 3))
        full.rotatedAt = UnixTime(seconds: 2)
        full.revokedAt = UnixTime(seconds: 4)
        var written = KeyTable()
        written.set(full)
        let plain = try table(Self.line()).sorted[0]
        written.set(plain)
        let text = String(decoding: written.bytes, as: UTF8.self)
        #expect(text.hasPrefix(Self.line() + "\n{") && text.utf8.filter { $0 == 0x0A }.count == 2)
        #expect(try table(text) == written)
        #expect(plain.claims.isEmpty && plain.scopes.isEmpty && plain.expiresAt == nil && !plain.isAccount)
    }

    @Test func `may be empty, and end in any way`() throws {
        #expect(try table("").keys.isEmpty)
        #expect(try table("\n \t\r\n\n").keys.isEmpty)
        #expect(try table(Self.line() + "\r\n\n" + Self.line(id: "1111111111111111")).keys.count == 2)
    }

    @Test(arguments: [
        ("{", "not a JSON object"), ("[]", "not a JSON object"), (line(#""id":"x""#), "not a JSON object"),
        (line(#""hash":"x""#), "unknown member"), (line(id: "0011"), "id: must be"),
        (line(id: "00112233445566AA"), "id: must be"), (#"{"id":"\#(id)"}"#, "subject: must be a text"),
        (line().replacing(digest, with: "ab"), "sha256: must be"), (line().replacing(":5", with: ":-1"), "created_at"),
        (line().replacing(#""s""#, with: #"" s""#), "subject: cannot be one"),
        (line().replacing(#""s""#, with: #""""#), "subject: cannot be one"),
        (line().replacing(#""s""#, with: #""a\u0000b""#), "subject: cannot be one"),
        (line(#""scopes":"a""#), "scopes: must be"), (line(#""scopes":[1]"#), "scopes: must be"),
        (line(#""scopes":["a b"]"#), "scopes: not a list"), (line(#""claims":[]"#), "claims: must be an object"),
        (line(#""claims":{"scope":"x"}"#), "claims: must be without key_id and scope"),
        (line(#""account":"yes""#), "account: must be"), (line(#""expires_at":"soon""#), "expires_at: must be"),
        (line(#""previous_until":5"#), "previous_sha256: must be"),
        (line(#""previous_sha256":"\#(digest)""#), "previous_until: must be"),
        (line() + "\n" + line(), "the id '0011223344556677' is that of a line before"),
    ]) func `are rejected with their number`(text: String, reason: String) {
        let lines = text.split(separator: "\n").count
        let found = errors("\n" + text)
        #expect(found.count == 1 && found[0].hasPrefix("\(lines + 1): ") && found[0].contains(reason), "\(found)")
    }

    @Test func `are rejected together, up to ten`() {
        let found = errors(String(repeating: "{\n", count: 12))
        #expect(found.count == 10 && found[9].hasPrefix("10: "))
    }

    @Test func `differ by what is new, changed or gone`() throws {
        let old = try table([Self.line(), Self.line(id: "1111111111111111")].joined(separator: "\n"))
        let new = try table(
            [Self.line(#""revoked_at":7"#), Self.line(id: "2222222222222222")].joined(separator: "\n"))
        #expect(
            Set(old.differences(to: new).map { "\($0.id.prefix(2)) \($0.revokedAt?.seconds ?? 0)" })
                == ["00 7", "11 0", "22 0"])
        #expect(old.differences(to: old).isEmpty)
    }
}
