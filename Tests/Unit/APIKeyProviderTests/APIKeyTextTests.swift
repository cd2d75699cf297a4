import MartletCore
import MartletTesting
import Testing

@testable import APIKeyProvider

@Suite struct `The text of a key` {
    private func parse(_ text: String) -> String {
        do throws(APIKeyText.ParseError) { return try APIKeyText(Array(text.utf8)).id } catch { return "\(error)" }
    }

    /// Its checksum was computed by other means.
    private static let known =
        "mak_0011223344556677" + String(repeating: "89abcdef", count: 8) + "3412f546"

    @Test func `has an id, a secret and a checksum`() throws {
        #expect(parse(Self.known) == "0011223344556677")
    }

    @Test func `is made once, in the form that is accepted`() throws {
        let keys = try (0..<100).map { _ in try APIKeyText.make() }
        for key in keys {
            let parsed = try key.text.withBytes { try APIKeyText($0) }
            #expect(parsed.id == key.id && parsed.digest == key.digest && key.digest.count == 32)
            #expect(key.text.withBytes { $0.count } == 92)
        }
        #expect(Set(keys.map(\.id)).count == 100)
        #expect(try APIKeyText.make(id: "0011223344556677").id == "0011223344556677")
    }

    @Test(arguments: [
        ("", "malformed"), ("mak_", "malformed"), (String(known.dropLast()), "malformed"), (known + "0", "malformed"),
        (known.uppercased(), "malformed"), ("mat_" + known.dropFirst(4), "malformed"),
        (known.replacing("89ab", with: "89aB", maxReplacements: 1), "malformed"),
        (known.replacing("mak_0", with: "mak_1"), "checksum"),
        (known.replacing("89ab", with: "89ac", maxReplacements: 1), "checksum"), (known.dropLast() + "1", "checksum"),
    ]) func `in another form is none`(text: String, error: String) {
        #expect(parse(text) == error)
    }

    @Test func `with any other digit has another checksum`() {
        var bytes = Array(Self.known.utf8)
        for index in 4..<bytes.count {
            let digit = bytes[index]
            bytes[index] = digit == UInt8(ascii: "0") ? UInt8(ascii: "1") : UInt8(ascii: "0")
            #expect(parse(String(decoding: bytes, as: UTF8.self)) == "checksum", "\(index)")
            bytes[index] = digit
        }
    }
}
