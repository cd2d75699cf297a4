import MartletCore
import MartletCrypto
import MartletTesting
import Testing

@Suite struct PasswordTextTests {
    private static func text(_ secret: Secret) -> String {
        secret.withBytes { String(decoding: $0, as: UTF8.self) }
    }

    private static func error(_ bytes: [UInt8]) -> PasswordText.ValidationError? {
        do {
            _ = try PasswordText(Secret(bytes))
            return nil
        } catch {
            return error
        }
    }

    @Test(arguments: [
        "secret", " secret ", "a  b", "PaSSword", "p\u{E4}ssword", "\u{5BC6}\u{7801}",
        "\u{FB01}\u{B2}\u{2460}\u{FF21}\u{17F}",
        "\u{200D}x", "\u{1F511}",
    ])
    func `does not change composed text`(password: String) throws {
        let text = try PasswordText(Secret(password))
        #expect(text.candidates.count == 1)
        #expect(Self.text(text.normalized).hasSameBytes(as: password))
        #expect(text.codePoints == password.unicodeScalars.count)
        #expect(text.isAssigned)
    }

    @Test(arguments: [
        ("pa\u{308}ssword", "p\u{E4}ssword"), ("a\u{A0}b", "a b"), ("a\u{3000}b\u{2003}c", "a b c"),
        ("\u{212B}", "\u{C5}"), ("\u{1100}\u{1161}", "\u{AC00}"), ("q\u{307}\u{323}", "q\u{323}\u{307}"),
    ])
    func `composes text, and tries the original bytes first`(password: String, expected: String) throws {
        let text = try PasswordText(Secret(password))
        #expect(text.candidates.count == 2)
        #expect(Self.text(text.candidates[0]).hasSameBytes(as: password))
        #expect(Self.text(text.candidates[1]).hasSameBytes(as: expected))
        #expect(Self.text(text.normalized).hasSameBytes(as: expected))
        #expect(text.codePoints == expected.unicodeScalars.count)
    }

    @Test(arguments: [
        "\0", "secret\0", "a\tb", "a\r\nb", "\u{7F}", "\u{85}x", "\u{1B}[2J", "p\u{E4}\u{9F}",
    ])
    func `rejects control characters`(password: String) {
        #expect(Self.error(Array(password.utf8)) == .controlCharacter)
    }

    @Test(
        arguments: [
            [0xFF], [0xC0, 0x80], [0xED, 0xA0, 0x80], [0xE4, 0x73], [0xF4, 0x90, 0x80, 0x80], [0x61, 0xC3],
        ] as [[UInt8]])
    func `rejects invalid UTF-8`(bytes: [UInt8]) {
        #expect(Self.error(bytes) == .notText)
    }

    @Test func `rejects empty and too long passwords`() {
        #expect(Self.error([]) == .empty)
        #expect(Self.error([UInt8](repeating: 0x61, count: 1024)) == nil)
        #expect(Self.error([UInt8](repeating: 0x61, count: 1025)) == .tooLong)
        #expect(Self.error([UInt8](repeating: 0xFF, count: 60_000)) == .tooLong)
        // 512 composed characters of two bytes, from 1,536 bytes.
        let decomposed = String(repeating: "a\u{308}", count: 512)
        #expect(Self.error(Array(decomposed.utf8)) == nil)
        #expect(Self.error(Array((decomposed + "x").utf8)) == .tooLong)
    }

    @Test func `detects unassigned code points`() throws {
        #expect(try !PasswordText(Secret("secret\u{378}")).isAssigned)
        #expect(try !PasswordText(Secret("secret\u{10FFFF}")).isAssigned)
    }

    @Test func `normalization is idempotent`() throws {
        var generator = SeededGenerator(seed: 41)
        for _ in 0..<2_000 {
            let scalars = (0..<Int.random(in: 1...12, using: &generator)).compactMap { _ in
                Unicode.Scalar(UInt32.random(in: 0x20...0x3FFF, using: &generator))
            }
            guard let once = try? PasswordText(Secret(String(String.UnicodeScalarView(scalars)))) else { continue }
            let twice = try PasswordText(once.normalized)
            #expect(twice.candidates.count == 1)
        }
    }
}
