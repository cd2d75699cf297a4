import Foundation
import MartletTesting
import Testing

/// No code arrives twice, whatever becomes of the connections under it.
@Suite(.timeLimit(.minutes(30))) struct `WeChat codes on connections that end` {
    private static let app = "wx00000000000000a1"

    /// `MARTLET_WECHAT_LOGINS` says how many.
    @Test func `arrive at WeChat once each`() throws {
        let total = ProcessInfo.processInfo.environment["MARTLET_WECHAT_LOGINS"].flatMap(Int.init) ?? 200
        let weChat = try CuttingServer(nil) { target in
            target.contains("access_token?appid")
                ? #"{"openid":"o-1","unionid":"U-1","access_token":"t","scope":"snsapi_userinfo"}"#
                : #"{"openid":"o-1","nickname":"n"}"#
        } _: { target, _ in
            // Profiles are asked for over connections that are kept, and those end as well.
            Int.random(in: 0..<2) == 0 ? .respond : CuttingServer.Ending.allCases.randomElement() ?? .reset
        }
        let config = GatewayConfig(
            endpoints: ["builtin:echo"],
            providers: """
                wechat:
                  kind: wechat
                  base_url: \(weChat.url)
                  apps: { ios: { variant: mobile, app_id: \(Self.app), app_secret: planted-secret } }
                """,
            server: "trusted_proxies: [127.0.0.0/8]",
            routes: "- { name: api, match: { path: /** }, auth: { providers: [wechat] }, upstream: api }")
        try withMartlet(config.text) { gateway in
            let statuses = Box<[Int: Int]>([:])
            let workers = (0..<8).map { worker in
                Background {
                    for number in stride(from: worker, to: total, by: 8) {
                        for _ in 0..<(number % 5 == 0 ? 2 : 1) {
                            let response = try gateway.signInWithWeChat(
                                ["app": "ios", "code": "code-\(number)"], [WeChatStage.client(number)])
                            statuses.withLock { $0[response.status, default: 0] += 1 }
                        }
                    }
                }
            }
            for worker in workers { try worker.value(within: .seconds(1500)) }
            let counts = weChat.arrivals.filter { $0.key.contains("code=code-") }
            #expect(counts.count == total && counts.values.allSatisfy { $0 == 1 }, "\(counts.filter { $0.value > 1 })")
            #expect(
                Set(statuses.value.keys).isSubset(of: [200, 503]) && statuses.value.count == 2, "\(statuses.value)")
            print("\(total) codes: answers \(statuses.value), most arrivals of one \(counts.values.max() ?? 0)")
        }
    }
}
