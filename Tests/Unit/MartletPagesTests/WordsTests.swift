import MartletCore
import Testing

@testable import MartletPages

@Suite struct `Words of pages` {
    private static func names(_ text: String) -> [String] {
        text.split(separator: "{").dropFirst(text.hasPrefix("{") ? 0 : 1).map { String($0.prefix { $0 != "}" }) }
            .sorted()
    }

    @Test(arguments: PageLanguage.allCases) func `every language has every sentence`(language: PageLanguage) {
        let table = Words.table(language)
        for key in WordKey.allCases { #expect(table[key]?.isEmpty == false, "\(language) has no \(key)") }
    }

    @Test func `the values of a sentence are the same in all languages`() {
        for key in WordKey.allCases {
            let names = PageLanguage.allCases.map { Self.names(Words.table($0)[key] ?? "") }
            #expect(Set(names).count == 1, "\(key): \(names)")
        }
        for language in PageLanguage.allCases { #expect(Words(language)(.months).split(separator: " ").count == 12) }
    }

    @Test func `the two Chinese tables are not mixed up`() {
        let simplified = Set("录账号码请时间页")
        let traditional = Set("錄帳號碼請時間頁")
        for key in WordKey.allCases {
            #expect(
                Words(.simplifiedChinese)(key).allSatisfy { !traditional.contains($0) }, "\(key)")
            #expect(
                Words(.traditionalChinese)(key).allSatisfy { !simplified.subtracting(traditional).contains($0) },
                "\(key)")
        }
    }

    @Test func `values are not read for names`() {
        let words = Words(.english)
        #expect(words(.signInTitle, ["site": "{site} {x}"]) == "Sign in to {site} {x}")
        #expect(words(.deviceOn, ["system": "b", "browser": "a"]) == "a on b")
        #expect(words(.deviceOn, [:]) == "{browser} on {system}" && words(.deviceOn, ["system": "b"]) == " on b")
    }

    @Test func `Han characters have no spaces between them`() {
        let words = Words(.simplifiedChinese)
        #expect(
            words(.unlinked, ["provider": "微信"]) == "已解除绑定微信。" && words(.unlinked, ["provider": "QQ"]) == "已解除绑定 QQ。")
        #expect(words(.identityRevoked, ["provider": "微信"]).hasPrefix("微信表示"))
        #expect(words(.signInTitle, ["site": "某 某"]) == "登录某 某")
    }

    @Test(
        arguments: [
            (-5, "1 second"), (1, "1 second"), (59, "59 seconds"), (60, "1 minute"), (61, "2 minutes"),
            (300, "5 minutes"),
            (3541, "1 hour"), (3600, "1 hour"), (3601, "2 hours"), (86_400, "1 day"), (86_401, "2 days"),
            (Int64.max, "106751991167301 days"),
        ] as [(Int64, String)])
    func `waits are rounded up`(seconds: Int64, text: String) {
        #expect(Words(.english).wait(seconds: seconds) == text)
    }

    @Test(
        arguments: [
            (10, "just now"), (60, "1 minute ago"), (7199, "1 hour ago"), (90_000, "1 day ago"),
            (700_000, "November 15, 2026"),
            (-100, "just now"),
        ] as [(Int64, String)])
    func `the last use is relative for a week`(age: Int64, text: String) {
        let now = UnixTime(seconds: 1_795_426_201)
        #expect(Words(.english).elapsed(since: now.advanced(bySeconds: -age), now: now) == text)
    }

    @Test func `dates are written as in the language`() {
        let instant = UnixTime(seconds: 1_795_426_201)
        #expect(Words(.english).date(instant) == "November 23, 2026")
        #expect(Words(.simplifiedChinese).date(instant) == "2026年11月23日")
        for seconds in [Int64.min, -1, 0, .max] { #expect(!Words(.english).date(UnixTime(seconds: seconds)).isEmpty) }
        #expect(Words(.english).elapsed(since: UnixTime(seconds: .min), now: UnixTime(seconds: .max)) != "")
    }

    @Test(
        arguments: [
            (
                nil,
                "Mozilla/5.0 (iPhone; CPU iPhone OS 19_0 like Mac OS X) AppleWebKit/605 Version/19.0 Mobile/15E148 Safari/604.1",
                "Safari on iPhone"
            ),
            (
                nil, "Mozilla/5.0 (Windows NT 10.0) AppleWebKit/537.36 Chrome/140.0 Safari/537.36 Edg/140.0",
                "Edge on Windows"
            ),
            (nil, "Mozilla/5.0 (Linux; Android 15) MicroMessenger/8.0 Chrome/120", "WeChat on Android"),
            (nil, "curl/8.0", "curl"), (nil, nil, "Unknown device"), ("", "x", "Unknown device"),
            ("张伟的 iPhone\u{202E}", nil, "张伟的 iPhone"),
        ] as [(String?, String?, String)])
    func `devices have names`(name: String?, agent: String?, text: String) {
        #expect(DeviceDescription(name: name, userAgent: agent).text(Words(.english)) == text)
    }
}

@Suite struct `Languages of pages` {
    @Test(
        arguments: [
            ("en", .english), ("en-GB", .english), ("zh", .simplifiedChinese), ("zh-CN", .simplifiedChinese),
            ("zh-SG", .simplifiedChinese), ("zh-HK", .traditionalChinese), ("zh-TW", .traditionalChinese),
            ("zh-MO", .traditionalChinese), ("zh-Hant", .traditionalChinese), ("zh-Hant-CN", .traditionalChinese),
            ("zh-Hans-HK", .simplifiedChinese), ("ZH-hant-hk", .traditionalChinese), ("fr", nil), ("", nil), ("*", nil),
            ("zh_TW", nil), ("english", nil), ("zh-", nil),
        ] as [(String, PageLanguage?)])
    func `come from tags`(tag: String, language: PageLanguage?) { #expect(PageLanguage(tag: tag) == language) }

    @Test(
        arguments: [
            ("zh-TW,zh;q=0.9,en;q=0.8", .traditionalChinese), ("fr, en;q=0.5", .english),
            ("en;q=0.5, zh;q=0.6", .simplifiedChinese),
            ("en; q=0.5 ,\tzh-HK ; Q=0.501", .traditionalChinese), ("en;q=0, zh;q=0", nil), ("", nil), ("fr", nil),
            ("*", .simplifiedChinese), ("*;q=0.1, en;q=0.5", .english), ("zh;q=0, *", nil),
            ("en;q=0.5;x=y, zh;q=0.1", .simplifiedChinese),
            ("en;q=2", nil), ("en;q=1.001", nil), ("en;q=0.0001", nil), ("en;q=", nil), ("en;q=.5", nil),
            ("en;q=1.", .english),
            ("en,zh", .english), (",,;q=1,,en", .english), ("en;level=1", nil),
            (String(repeating: "fr,", count: 40) + "en", nil),
            (String(repeating: "a", count: 2000) + ",en", nil),
        ] as [(String, PageLanguage?)])
    func `are chosen by weight`(field: String, language: PageLanguage?) {
        #expect(AcceptLanguage(field).preferred(standard: .simplifiedChinese) == language)
    }

    @Test func `are chosen by the user before the browser before the configuration`() {
        func choice(_ parameter: String?, _ field: String?) -> LanguageChoice {
            LanguageChoice(parameter: parameter, acceptLanguage: field, standard: .traditionalChinese)
        }
        #expect(choice("zh-Hans", "en") == LanguageChoice(.simplifiedChinese, isExplicit: true))
        #expect(choice("klingon", "en") == LanguageChoice(.english))
        #expect(choice(nil, "fr") == LanguageChoice(.traditionalChinese))
        #expect(choice(nil, nil) == LanguageChoice(.traditionalChinese))
    }
}
