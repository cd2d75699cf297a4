import MartletConfig
import MartletCore
import MartletProvider
import Testing

@testable import WeChatProvider

@Suite struct `WeChat configuration` {
    private static let one = "{ variant: mobile, app_id: wx0000000000000001, app_secret: s }"

    @Test func `a block of apps is enough`() throws {
        let configuration = try Bench.configuration(Bench.allApps)
        #expect(configuration.apps.map(\.clientName) == ["ios", "web", "page", "mini"])
        #expect(configuration.apps.map(\.variant) == [.mobile, .website, .officialAccount, .miniProgram])
        #expect(configuration.baseURL.value.text == "https://api.weixin.qq.com")
        #expect(configuration.timeout == .seconds(5))
        #expect(configuration.accountKey == .unionIDPreferred)
        #expect(configuration.language == .simplifiedChinese)
        #expect(configuration.fetchesProfile && !configuration.allowsBaseScope && !configuration.decrypts)
    }

    @Test func `every key is read`() throws {
        let configuration = try Bench.configuration(
            """
            apps: { a: \(Self.one) }
            base_url: http://127.0.0.1:9000/fake/
            timeout: 2s
            account_key: unionid_required
            allow_base_scope: true
            profile: false
            lang: en
            decrypt: true
            """)
        #expect(configuration.timeout == .seconds(2))
        #expect(configuration.accountKey == .unionIDRequired)
        #expect(configuration.language == .english)
        #expect(!configuration.fetchesProfile && configuration.allowsBaseScope && configuration.decrypts)
    }

    static let bad: [(String, ErrorCode, Int)] = [
        ("base_url: https://api.weixin.qq.com", "config.missing_key", 1),
        ("apps: {}", "config.bad_value", 1),
        ("apps: [a]", "config.wrong_type", 1),
        ("app:\n  a: \(one)", "config.unknown_key", 1),
        ("apps:\n  a: { app_id: wx0000000000000001, app_secret: s }", "config.missing_key", 2),
        ("apps:\n  a: { variant: mobile, app_secret: s }", "config.missing_key", 2),
        ("apps:\n  a: { variant: mobile, app_id: wx0000000000000001 }", "config.missing_key", 2),
        ("apps:\n  a: { variant: phone, app_id: wx0000000000000001, app_secret: s }", "config.bad_value", 2),
        ("apps:\n  a: { variant: mobile, app_id: wx000000000000001, app_secret: s }", "config.bad_value", 2),
        ("apps:\n  a: { variant: mobile, app_id: wx000000000000000g, app_secret: s }", "config.bad_value", 2),
        ("apps:\n  a: { variant: mobile, app_id: 0000000000000001ab, app_secret: s }", "config.bad_value", 2),
        ("apps:\n  a: { variant: mobile, app_id: wx0000000000000001, app_secret: '' }", "config.bad_value", 2),
        ("apps:\n  a: { variant: mobile, app_id: wx0000000000000001, app_secret: 'a b' }", "config.bad_value", 2),
        (
            "apps:\n  a: { variant: mobile, app_id: wx0000000000000001, app_secret_file: /nowhere/s }",
            "config.file_unreadable", 2
        ),
        (
            "apps:\n  a: { variant: mobile, app_id: wx0000000000000001, app_secret: s, app_secret_file: s }",
            "config.conflicting_keys", 2
        ),
        ("apps:\n  a: { variant: mobile, app_id: wx0000000000000001, app_secret: s, x: 1 }", "config.unknown_key", 2),
        ("apps:\n  'a b': \(one)", "config.bad_value", 2),
        ("apps:\n  a: \(one)\n  b: \(one)", "config.duplicate_name", 3),
        ("apps: { a: \(one) }\nbase_url: http://api.weixin.qq.com", "config.bad_url", 2),
        ("apps: { a: \(one) }\nbase_url: https://api.weixin.qq.com/?x=1", "config.bad_url", 2),
        ("apps: { a: \(one) }\nbase_url: api.weixin.qq.com", "config.bad_url", 2),
        ("apps: { a: \(one) }\ntimeout: 0s", "config.bad_duration", 2),
        ("apps: { a: \(one) }\ntimeout: 2m", "config.bad_duration", 2),
        ("apps: { a: \(one) }\naccount_key: unionid", "config.bad_value", 2),
        ("apps: { a: \(one) }\nlang: fr", "config.bad_value", 2),
        ("apps: { a: \(one) }\nprofile: yes", "config.wrong_type", 2),
    ]

    @Test(arguments: bad)
    func `an error is reported at its position`(block: String, code: ErrorCode, line: Int) {
        #expect {
            try Bench.configuration(block)
        } throws: { error in
            let errors = (error as? Bench.ConfigurationRejected)?.diagnostics.errors ?? []
            return errors.contains { $0.code == code && $0.location.line == line }
        }
    }

    @Test func `all errors of an app are reported together, and none contains the secret`() {
        #expect {
            try Bench.configuration("apps:\n  a: { variant: phone, app_secret: 'hush hush', app_idd: 1 }")
        } throws: { error in
            let rejected = error as? Bench.ConfigurationRejected
            let codes = rejected?.diagnostics.errors.map(\.code) ?? []
            return Set(codes) == ["config.bad_value", "config.unknown_key"] && !"\(error)".contains("hush")
        }
    }

    @Test func `the bundled kind is wechat`() { #expect(WeChatProvider.kind == "wechat") }
}
