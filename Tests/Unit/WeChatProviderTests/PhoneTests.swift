import MartletCore
import MartletJSON
import MartletProvider
import MartletTesting
import Testing

@testable import WeChatProvider

@Suite struct `A phone number by code` {
    private static let session = `WeChat exchange`.session
    private static let token = "/cgi-bin/stable_token"
    private static let phone = "/wxa/business/getuserphonenumber"
    private static let apps = """
        apps:
          mini: { variant: mini_program, app_id: \(Bench.mini), app_secret: \(Bench.secret)-4, phone: true }
          other: { variant: mini_program, app_id: \(Bench.mobile), app_secret: \(Bench.secret)-1 }
        """

    private static func bench(
        _ weChat: ScriptedWeChat = ScriptedWeChat(), time: Time = Time(), store: (any SharedStoring)? = nil
    ) throws -> Bench {
        let bench = try Bench(apps: apps, weChat: weChat, time: time, store: store)
        weChat.respond(session, .json(#"{"openid":"o-1","session_key":"AAECAwQFBgcICQoLDA0ODw=="}"#))
        weChat.respond(token, .json(#"{"access_token":"planted-account","expires_in":7200}"#))
        weChat.respond(phone, .json(number()))
        return bench
    }

    private static func number(_ app: String = Bench.mini, country: String = #""86""#) -> String {
        """
        {"errcode":0,"errmsg":"ok","phone_info":{"phoneNumber":"13800000000","purePhoneNumber":"13800000000",\
        "countryCode":\(country),"watermark":{"timestamp":1700000000,"appid":"\(app)"}}}
        """
    }

    @Test(arguments: [#""86""#, "86"])
    func `becomes a claim of the login`(country: String) async throws {
        let bench = try Self.bench()
        bench.weChat.respond(Self.phone, .json(Self.number(country: country)))
        let signIn = try await bench.signIn("mini", "c1", ["phone_code": "p1"])
        #expect(signIn.identity.claims["phone_number"] == "+8613800000000")
        #expect(bench.weChat.paths == [Self.session, Self.token, Self.phone])
        #expect(ScriptedWeChat.parameters(of: bench.weChat.calls[2]) == ["access_token": "planted-account"])
        guard case .body(let body, _) = bench.weChat.calls[2].content else {
            Issue.record("no body")
            return
        }
        #expect(String(decoding: body, as: UTF8.self) == #"{"code":"p1"}"#)
        #expect(!bench.log.text.contains("planted"))
    }

    @Test func `needs one token for all instances, until it expires`() async throws {
        let (weChat, time) = (ScriptedWeChat(), Time())
        let store = MemoryStore(clock: time.clock)
        let benches = try (0..<3).map { _ in try Self.bench(weChat, time: time, store: store) }
        for index in 0..<6 { _ = try await benches[index % 3].signIn("mini", "c\(index)", ["phone_code": "p\(index)"]) }
        #expect(weChat.paths.count { $0 == Self.token } == 1)
        time.advance(.seconds(7000))
        _ = try await benches[0].signIn("mini", "d", ["phone_code": "q"])
        #expect(weChat.paths.count { $0 == Self.token } == 2)
    }

    @Test func `gets another token when WeChat does not accept the first`() async throws {
        let bench = try Self.bench()
        bench.weChat.respond(Self.phone, .json(#"{"errcode":40001}"#))
        #expect(await bench.failure("mini", "c1", ["phone_code": "p1"])?.code == "wechat.upstream_bad_token")
        #expect(bench.weChat.paths == [Self.session, Self.token, Self.phone, Self.token, Self.phone])
    }

    @Test(
        arguments: [
            (#"{"errcode":40029}"#, "wechat.upstream_bad_code", .rejected),
            (#"{"errcode":-1}"#, "wechat.upstream_busy", .unavailable),
            (#"{"errcode":0}"#, "wechat.upstream_bad_answer", .unavailable),
            (number(Bench.mobile), "wechat.upstream_bad_answer", .unavailable),
        ] as [(String, ErrorCode, AuthenticationError.Disposition)])
    func `that cannot be had fails the login`(
        response: String, code: ErrorCode, disposition: AuthenticationError.Disposition
    ) async throws {
        let bench = try Self.bench()
        bench.weChat.respond(Self.phone, .json(response))
        let error = await bench.failure("mini", "c1", ["phone_code": "p1"])
        #expect(error?.code == code && error?.disposition == disposition)
    }

    @Test func `is not asked for an unknown user, or an app that is not configured for it`() async throws {
        let bench = try Self.bench()
        bench.weChat.respond(Self.session, .json(#"{"errcode":40029}"#))
        #expect(await bench.failure("mini", "c1", ["phone_code": "p1"])?.code == "wechat.upstream_bad_code")
        #expect(bench.weChat.paths == [Self.session])
        for (app, code) in [("other", "p1"), ("mini", "p 1")] {
            let error = try #require(await bench.failure(app, "c2", ["phone_code": code]))
            #expect(error.disposition == .malformed && error.bodyErrors.map(\.pointer) == ["/phone_code"])
        }
        #expect(bench.weChat.paths == [Self.session])
        #expect(throws: Bench.ConfigurationRejected.self) {
            try Bench.configuration(
                "apps: { a: { variant: mobile, app_id: \(Bench.mobile), app_secret: s, phone: true } }")
        }
    }

    @Test func `makes another request of the same code`() async throws {
        let bench = try Self.bench()
        _ = try await bench.signIn("mini", "c1", ["phone_code": "p1"])
        #expect(await bench.failure("mini", "c1", ["phone_code": "p1"]) == nil)
        #expect(await bench.failure("mini", "c1", ["phone_code": "p2"])?.code == "wechat.code_reused")
        #expect(bench.weChat.paths.count { $0 == Self.phone } == 1)
    }
}
