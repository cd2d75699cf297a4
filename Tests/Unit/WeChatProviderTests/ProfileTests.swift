import MartletCore
import MartletProvider
import Testing

@testable import WeChatProvider

@Suite struct `WeChat profiles` {
    @Test(
        arguments: [
            ("Ada", "Ada"), ("小明", "小明"), ("", nil), (" \t ", nil), ("  a   b  ", "a b"),
            ("a\u{0}b\u{1B}[2Jc\r\nd", "a b [2Jc d"), ("\u{202E}evil\u{2066}", "evil"), ("a\u{200B}b\u{FEFF}", "ab"),
            ("a\u{2028}b\u{2029}c", "a b c"), ("\u{E000}\u{F8FF}x", "x"), ("👩\u{200D}🚀", "👩\u{200D}🚀"),
            ("<b>x</b>", "<b>x</b>"), ("微信用户", "微信用户"),
        ] as [(String, String?)])
    func `a nickname is sanitized for display`(name: String, shown: String?) {
        #expect(Profile(nickname: name, avatar: nil).nickname == shown)
    }

    @Test func `a nickname has a bounded length`() {
        let long = Profile(nickname: String(repeating: "漢", count: 1000), avatar: nil).nickname
        #expect(long?.unicodeScalars.count == 64)
        let wide = Profile(nickname: String(repeating: "\u{1F680}", count: 1000), avatar: nil).nickname
        #expect(wide?.utf8.count == 256)
        let stacked = Profile(nickname: "a" + String(repeating: "\u{0301}", count: 1000), avatar: nil).nickname
        #expect(stacked?.unicodeScalars.count == 64)
    }

    @Test(arguments: [
        ("https://thirdwx.qlogo.cn/mmopen/a/132", true), ("http://thirdwx.qlogo.cn/a/0", false),
        ("javascript:alert(1)", false), ("data:image/png;base64,AA", false), ("//x.cn/a", false), ("", false),
        ("https://a b/", false), ("https://u:p@x.cn/", false), ("https://x.cn/\u{202E}", false),
        ("https://x.cn/\r\nSet-Cookie: a", false), ("https://x.cn/" + String(repeating: "a", count: 1100), false),
    ])
    func `an avatar is an https URL`(url: String, isKept: Bool) {
        #expect((Profile(nickname: nil, avatar: url).avatar == url) == isKept)
    }
}

@Suite struct `WeChat health` {
    private static let token = `WeChat exchange`.token

    private static func gauge(_ name: String, _ bench: Bench) -> Double? {
        bench.provider.health.gauges.first { $0.name == name }?.value
    }

    @Test func `metrics follow WeChat's responses`() async throws {
        let bench = try Bench("profile: false")
        #expect(bench.provider.health.state == .ready)
        #expect(bench.provider.health.detail == "no call has been made yet")
        bench.weChat.respond(Self.token, .json(`WeChat exchange`.tokenResponse()))
        _ = await bench.failure("ios", "c1")
        bench.time.advance(.seconds(3))
        #expect(bench.provider.health.detail == "the last call succeeded 3 s ago")
        for (index, errcode) in [40029, 40163, 40226, -1].enumerated() {
            bench.weChat.respond(Self.token, .json(#"{"errcode":\#(errcode)}"#))
            _ = await bench.failure("ios", "d\(index)")
        }
        #expect(bench.provider.health.state == .degraded)
        #expect(bench.provider.health.detail == "the last call failed with wechat.upstream_busy 0 s ago")
        bench.time.advance(.seconds(11))
        _ = await bench.failure("ios", "c1")
        let names = ["calls_total", "rejections_total", "denials_total", "failures_total", "reused_codes_total"]
        #expect(names.map { Self.gauge($0, bench) } == [5, 2, 1, 1, 2])
        bench.weChat.respond(Self.token, .json(#"{"errcode":40029}"#))
        _ = await bench.failure("ios", "e")
        #expect(bench.provider.health.state == .ready)
    }

    @Test(arguments: [40125, 40013])
    func `the circuit breaker opens after a rejected secret`(errcode: Int) async throws {
        let bench = try Bench("profile: false")
        bench.weChat.respond(Self.token, .json(#"{"errcode":\#(errcode)}"#))
        for index in 0..<20 {
            #expect(await bench.failure("ios", "c\(index)")?.disposition == .unavailable)
        }
        #expect(bench.weChat.calls.count == CircuitBreaker.threshold)
        _ = await bench.failure("web", "c1")
        #expect(bench.weChat.calls.count == CircuitBreaker.threshold + 1)
        bench.time.advance(CircuitBreaker.openDuration)
        for index in 0..<5 { _ = await bench.failure("ios", "d\(index)") }
        #expect(bench.weChat.calls.count == CircuitBreaker.threshold + 2)
        bench.time.advance(CircuitBreaker.openDuration)
        bench.weChat.respond(Self.token, .json(`WeChat exchange`.tokenResponse()))
        for index in 0..<5 { #expect(await bench.failure("ios", "e\(index)") == nil) }
    }

    @Test func `different errors in a row do not open the circuit breaker`() async throws {
        let bench = try Bench("profile: false")
        for (index, row) in (`WeChat exchange`.rows + `WeChat exchange`.rows).enumerated() {
            bench.weChat.respond(Self.token, .json(#"{"errcode":\#(row.errcode)}"#))
            #expect(await bench.failure("ios", "c\(index)")?.code == row.code)
        }
    }
}
