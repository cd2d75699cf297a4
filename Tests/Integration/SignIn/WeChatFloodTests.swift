import Foundation
import MartletTesting
import Testing

/// Codes that no one vouches for keep no other client from signing in.
@Suite(.timeLimit(.minutes(3))) struct `A flood of WeChat codes` {
    private static let app = "wx00000000000000a1"

    private static func configuration(_ weChat: ScriptedUpstream, _ apple: AppleFixture) -> String {
        var config = GatewayConfig(
            endpoints: ["builtin:echo"],
            providers: """
                \(apple.provider())wechat:
                  kind: wechat
                  base_url: \(weChat.url)
                  timeout: 9s
                  profile: false
                  apps: { ios: { variant: mobile, app_id: \(app), app_secret: planted-secret } }
                """,
            server: "trusted_proxies: [127.0.0.0/8]", routes: GatewayConfig.closed)
        config.more = "jwks: { unknown_kid_cooldown: 1s }"
        return config.text
    }

    @Test func `costs no fetch of keys, and no code that was not sent`() throws {
        let isOpen = Box(false)
        let weChat = try ScriptedUpstream { exchange in
            let isFlood = exchange.request.startLine.contains("code=flood")
            while isFlood, !isOpen.value { pause(.milliseconds(10)) }
            try exchange.respond(
                200,
                body: isFlood
                    ? #"{"errcode":40029}"# : #"{"openid":"o-1","access_token":"t","scope":"snsapi_userinfo"}"#)
        }
        let apple = try AppleFixture()
        try withMartlet(Self.configuration(weChat, apple)) { gateway in
            #expect(try gateway.get("/closed", bearer(apple.token())).status == 200)
            let flood = try (0..<200).map { number in
                let body = #"{"app":"ios","code":"flood-\#(number)"}"#
                let client = try gateway.connect()
                try client.send(
                    "POST", "/auth/login/wechat", [("Content-Type", "application/json"), WeChatStage.client(number)],
                    body: Array(body.utf8))
                return client
            }
            try waitUntil("the flood fills what there is for it") {
                weChat.requests.count == 128 && gateway.everything.contains("wechat.overloaded")
            }
            let member = ["app": "ios", "code": "good"]
            expectUnavailable(try gateway.signInWithWeChat(member))
            let fresh = try SigningKey("fresh")
            apple.setKeys([apple.key, fresh])
            let token = try Token(kid: fresh.identifier).signed(by: fresh)
            #expect(try gateway.get("/closed", bearer(token)).status == 200)
            #expect(weChat.requests.count == 128)
            isOpen.withLock { $0 = true }
            let statuses = try flood.map { try $0.response(within: .seconds(30)).status }
            #expect(statuses.count { $0 == 401 } == 128 && statuses.count { $0 == 503 } == 72)
            #expect(try gateway.signInWithWeChat(member).status == 200)
        }
    }
}
