import MartletCore
import Testing

@Suite struct `An email address` {
    @Test(arguments: [
        ("ada@example.com", "ada@example.com"), ("Ada.Lovelace+News@Example.CO.UK", "ada.lovelace+news@example.co.uk"),
        ("a@b.cd", "a@b.cd"), ("1@2.c3", "1@2.c3"),
        ("_{x}~#$&'*/=?^-@a-b.xn--fiqs8s", "_{x}~#$&'*/=?^-@a-b.xn--fiqs8s"),
        (String(repeating: "a", count: 64) + "@example.com", String(repeating: "a", count: 64) + "@example.com"),
    ])
    func `is in lower case`(_ text: String, _ expected: String) throws {
        let address = try #require(EmailAddress(text))
        #expect(address.text == expected)
        #expect(address.domain == expected.drop { $0 != "@" }.dropFirst())
    }

    @Test(arguments: [
        "", "@", "ada", "ada@", "@example.com", "ada@localhost", "ada@@example.com", "a@b@example.com",
        ".a@example.com",
        "a.@example.com", "a..b@example.com", "a b@example.com", "\"a b\"@example.com", "a@example.com ",
        " a@example.com", "a@example..com", "a@.example.com", "a@example.com.", "a@-example.com", "a@example-.com",
        "a@exa_mple.com", "a@[127.0.0.1]", "a@127.0.0.1", "a@example.123", "a@example.com\r\nRCPT TO:<b@example.com>",
        "a\r\nb@example.com", "a\0@example.com", "<a@example.com>", "a,b@example.com", "a@example.com,b@example.com",
        "a(comment)@example.com", "a:b@example.com", "a;b@example.com", "a\\b@example.com", "a%b@example.com",
        "a!b@example.com", "a|b@example.com", "a`b@example.com", "\u{E4}@example.com", "a@ex\u{E4}mple.com",
        "a@example.\u{4E2D}\u{56FD}", "\u{FF41}@example.com", "\u{212A}@example.com",
        String(repeating: "a", count: 65) + "@example.com",
        "a@" + String(repeating: "b", count: 64) + ".com",
        "a@" + String(repeating: "bcd.", count: 63) + "com",
    ])
    func `is nothing else`(_ text: String) { #expect(EmailAddress(text) == nil) }

    @Test func `has at most 254 bytes`() {
        let labels = String(repeating: String(repeating: "b", count: 49) + ".", count: 5)
        #expect(EmailAddress("a@" + labels + "cd") != nil)
        #expect(EmailAddress("a@" + labels + "cde") == nil)
    }
}

@Suite struct `A language tag` {
    @Test(arguments: [
        ("en", "en"), ("EN", "en"), ("zh-hans", "zh-Hans"), ("ZH-HANS-cn", "zh-Hans-CN"), ("en-gb", "en-GB"),
        ("es-419", "es-419"), ("de-1996", "de-1996"), ("sl-rozaj-biske", "sl-rozaj-biske"), ("yue-HK", "yue-HK"),
        ("en-x-custom", "en-x-custom"),
    ])
    func `is written in the usual case`(_ text: String, _ expected: String) throws {
        let tag = try #require(LanguageTag(text))
        #expect(tag.text == expected && tag.language == expected.prefix { $0 != "-" })
        #expect(LanguageTag(tag.text) == tag)
    }

    @Test(arguments: [
        "", "e", "-en", "en-", "en--GB", "en_GB", "en-x", "12", "englishes", "en-toolongtag", "en\r\n", "e\u{301}n",
        "zh-汉",
        "en-aaaaaaaa-bbbbbbbb-cccccccc-dddddddd", " en",
    ])
    func `is nothing else`(_ text: String) { #expect(LanguageTag(text) == nil) }
}

@Suite struct `A display name` {
    @Test(
        arguments: [
            (["Ada", "Lovelace"], "Ada Lovelace"), ([" Ada\t\n", " King  Lovelace "], "Ada King Lovelace"),
            (["A\u{202E}da\u{0}"], "Ada"), (["\u{200B}"], "\u{200B}"), (["张三"], "张三"), (["", " "], nil),
            (["\u{7}\u{FEFF}"], nil),
        ] as [([String], String?)])
    func `is sanitized`(_ parts: [String], _ expected: String?) { #expect(DisplayName.clean(parts) == expected) }
}
