import MartletCrypto
import MartletTesting
import Testing

@testable import PasswordProvider

@Suite struct UserNameTests {
    @Test(arguments: [
        ("alice", "alice"), ("Alice", "alice"), ("ALICE", "alice"), ("alice@Example.COM", "alice@example.com"),
        ("a.b-c_d+e", "a.b-c_d+e"), ("Alice Smith", "alice smith"), ("42", "42"), ("\u{FF21}lice", "alice"),
        ("al\u{3000}ice", "al ice"), ("\u{C4}rger", "\u{E4}rger"), ("A\u{308}rger", "\u{E4}rger"),
        ("stra\u{DF}e", "strasse"), ("STRASSE", "strasse"), ("\u{1E9E}", "ss"), ("\u{130}stanbul", "i\u{307}stanbul"),
        ("I", "i"), ("\u{131}", "\u{131}"), ("\u{39F}\u{394}\u{39F}\u{3A3}", "\u{3BF}\u{3B4}\u{3BF}\u{3C3}"),
        ("\u{3BF}\u{3B4}\u{3BF}\u{3C2}", "\u{3BF}\u{3B4}\u{3BF}\u{3C3}"), ("\u{5F20}\u{4F1F}", "\u{5F20}\u{4F1F}"),
        ("\u{212A}elvin", "kelvin"), ("\u{17F}ilent", "silent"), ("\u{FB01}ne", "fine"), ("\u{B5}", "\u{3BC}"),
        ("\u{AB70}", "\u{13A0}"), ("\u{13A0}", "\u{13A0}"), ("\u{1100}\u{1161}", "\u{AC00}"),
        ("\u{627}\u{644}", "\u{627}\u{644}"), (" alice", "alice"), ("alice ", "alice"), ("\u{3000}Alice\t", "alice"),
        ("\u{A0}alice smith \r\n", "alice smith"),
    ])
    func `folds case, width and equivalent letters`(name: String, expected: String) throws {
        let key = try #require(UserName.canonical(name))
        #expect(key.utf8.elementsEqual(expected.utf8))
    }

    @Test(arguments: [
        "", " ", "\u{3000}\n", "a  b", " a  b ", "a:b", "a\0b", "a\nb", "a\tb", "\u{7F}", "\u{85}",
        "a\u{A0}b",
        "a\u{200B}b", "a\u{200D}b", "a\u{AD}b", "\u{FEFF}a", "a\u{202E}b", "a\u{2066}b", "a\u{2028}b", "a\u{FE0F}",
        "\u{E000}", "\u{378}", "\u{10FFFF}", "\u{FFFD}", "\u{B2}", "\u{2460}", "\u{1D2E}\u{1D35}\u{1D33}", "\u{2122}",
        "\u{1F600}", "\u{2014}", "\u{FF1A}", "\u{FF76}", "\u{2163}", "\u{301}a", "\u{3164}", "\u{115F}", "\u{34F}",
        "\u{1F3F}\u{E0001}", "\u{1FB3}", "\u{3B1}\u{345}",
    ])
    func `rejects confusable and invalid names`(name: String) {
        #expect(UserName.canonical(name) == nil)
    }

    @Test func `bounds names in bytes, before and after folding`() {
        #expect(UserName.canonical(String(repeating: "a", count: 255)) != nil)
        #expect(UserName.canonical(String(repeating: "a", count: 256)) == nil)
        #expect(UserName.canonical(String(repeating: "\u{5F20}", count: 85)) != nil)
        #expect(UserName.canonical(String(repeating: "\u{5F20}", count: 86)) == nil)
        // Each becomes a letter of two bytes and a mark of two.
        #expect(UserName.canonical(String(repeating: "\u{130}", count: 127)) == nil)
    }

    @Test func `gives every single character a form that is its own form, or none`() {
        var accepted = 0
        for value in UInt32(0)...0x10FFFF {
            guard let scalar = Unicode.Scalar(value), let key = UserName.canonical(String(scalar)) else { continue }
            accepted += 1
            #expect(UserName.canonical(key)?.utf8.elementsEqual(key.utf8) == true, "U+\(String(value, radix: 16))")
        }
        #expect(accepted > 100_000)
    }

    @Test func `gives every text one form, whatever its case and composition`() {
        var generator = SeededGenerator(seed: 7)
        let ranges: [ClosedRange<UInt32>] = [
            0x20...0x7E, 0xC0...0x24F, 0x300...0x36F, 0x370...0x5FF, 0x1E00...0x1FFF, 0x2100...0x214F, 0xAB70...0xABBF,
            0xFF00...0xFFEF, 0x1100...0x11FF, 0x10A0...0x10FF, 0x600...0x6FF,
        ]
        for _ in 0..<20_000 {
            var scalars = String.UnicodeScalarView()
            for _ in 0..<Int.random(in: 1...6, using: &generator) {
                let range = ranges[Int.random(in: 0..<ranges.count, using: &generator)]
                if let scalar = Unicode.Scalar(UInt32.random(in: range, using: &generator)) { scalars.append(scalar) }
            }
            // The capital of a dotless i is a plain I: the one letter whose upper case is another's.
            guard !scalars.contains("\u{131}") else { continue }
            let name = String(scalars)
            guard let key = UserName.canonical(name) else { continue }
            for other in [key, key.uppercased(), name.lowercased(), name.uppercased(), name.composed] {
                // Upper case may make a name invalid, but never another name.
                guard let found = UserName.canonical(other) else { continue }
                #expect(
                    found.utf8.elementsEqual(key.utf8), "\(name.unicodeScalars.map { String($0.value, radix: 16) })")
            }
        }
    }
}
