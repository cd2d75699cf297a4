import MartletCore
import MartletProvider
import MartletProviderTesting
import MartletTesting
import Testing

@testable import WeChatProvider

@Suite struct `WeChat's provider conforms` {
    @Test func `to what the gateway expects`() async throws {
        let bench = try Bench("profile: false")
        bench.weChat.respond(
            "/sns/oauth2/access_token",
            .json(
                #"{"access_token":"a","openid":"oABCDEFGHIJKLMNOPQRSTUVWXYZ12","unionid":"u-1","scope":"snsapi_userinfo"}"#
            ))
        var conformance = ProviderConformance(clock: bench.time.clock) { bench.provider }
        conformance.forms = [Bench.form(["app": "ios", "code": "code-0123456789"])]
        conformance.log = { bench.log.text }
        let report = await conformance.run()
        print("conformance wechat: \(report)")
        #expect(report.passes, "\(report)")
        #expect((report.calls[.signIn] ?? 0) > 10)
    }
}
