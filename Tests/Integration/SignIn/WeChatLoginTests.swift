import Foundation
import MartletTesting
import Testing

@Suite struct `Signing in with WeChat` {
    /// What each kind of failure looks like from outside.
    struct Failure: Sendable {
        let order: [String: String]
        let status: Int
        let code: String
        let retryAfter: String?
    }

    static let failures: [Failure] = [
        Failure(order: ["errcode": "40029"], status: 401, code: "credential_invalid", retryAfter: nil),
        Failure(order: ["errcode": "40163"], status: 401, code: "credential_invalid", retryAfter: nil),
        Failure(order: ["errcode": "50001"], status: 401, code: "credential_invalid", retryAfter: nil),
        Failure(order: ["lifetime": "-1"], status: 401, code: "credential_invalid", retryAfter: nil),
        Failure(order: ["scope": "\"snsapi_base\""], status: 401, code: "credential_invalid", retryAfter: nil),
        Failure(
            order: ["profile_body": #""{\"openid\": \"o-2\"}""#], status: 401, code: "credential_invalid",
            retryAfter: nil),
        Failure(order: ["snapshot": "true"], status: 403, code: "not_allowed", retryAfter: nil),
        Failure(order: ["errcode": "40226"], status: 403, code: "not_allowed", retryAfter: nil),
        Failure(order: ["errcode": "50002"], status: 403, code: "not_allowed", retryAfter: nil),
        Failure(order: ["errcode": "-1"], status: 503, code: "auth_unavailable", retryAfter: "2"),
        Failure(order: ["errcode": "40125"], status: 503, code: "auth_unavailable", retryAfter: "60"),
        Failure(order: ["errcode": "45009"], status: 503, code: "auth_unavailable", retryAfter: "3600"),
        Failure(order: ["errcode": "45011"], status: 503, code: "auth_unavailable", retryAfter: "60"),
        Failure(order: ["errcode": "99999"], status: 503, code: "auth_unavailable", retryAfter: "1"),
        Failure(order: ["body": "\"\""], status: 503, code: "auth_unavailable", retryAfter: "1"),
        Failure(order: ["body": "\"<html>\""], status: 503, code: "auth_unavailable", retryAfter: "1"),
        Failure(order: ["status": "502"], status: 503, code: "auth_unavailable", retryAfter: "1"),
        Failure(order: ["delay": "2000"], status: 503, code: "auth_unavailable", retryAfter: "1"),
    ]

    @Test func `every failure has its response, the same for the same post, and nothing of it is in the log`() throws {
        let stage = try WeChatStage()
        try withMartlet(stage.configuration("timeout: 1s")) { gateway in
            let before = try stage.exchanges()
            for failure in Self.failures {
                let code = try stage.code(WeChatStage.page, failure.order)
                for _ in 0..<2 {
                    let response = try gateway.signInWithWeChat(["app": "page", "code": code])
                    expectRejection(response, failure.status, failure.code, "\(failure.order)")
                    #expect(response["Retry-After"] == failure.retryAfter, "\(failure.order)")
                }
                #expect(!gateway.everything.contains(code))
            }
            #expect(try stage.exchanges() - before == Self.failures.count)
            for word in [WeChatStage.secret, "/sns/", "session_key", "access_token"] {
                #expect(!gateway.everything.contains(word), "the log has \(word)")
            }
            let code = try stage.code(WeChatStage.page, ["profile_status": "500"])
            #expect(try gateway.signInWithWeChat(["app": "page", "code": code]).status == 200)
        }
        try stage.stop()
    }

    @Test func `a bad body is 400, and a code that is none is 401, without asking WeChat`() throws {
        let stage = try WeChatStage()
        try withMartlet(stage.configuration()) { gateway in
            let before = try stage.exchanges()
            for members in [["code": "c"], ["app": "ios"], ["app": "android", "code": "c"]] {
                expectRejection(try gateway.signInWithWeChat(members), 400, "request_invalid", "\(members)")
            }
            for code in ["a&appid=x", "a b", "%61", String(repeating: "a", count: 129)] {
                expectRejection(
                    try gateway.signInWithWeChat(["app": "ios", "code": code]), 401, "credential_invalid", code)
            }
            #expect(try stage.exchanges() == before)
            let other = try stage.code(WeChatStage.page)
            expectRejection(try gateway.signInWithWeChat(["app": "ios", "code": other]), 401, "credential_invalid")
        }
        try stage.stop()
    }

    @Test func `concurrent posts to two instances send a code once, and all get in as one person`() throws {
        let stage = try WeChatStage()
        let redis = try RedisServer()
        let config = stage.configuration(store: redis.url)
        try withMartlet(config) { one in
            try withMartlet(config) { other in
                let before = try stage.exchanges()
                let code = try stage.code(WeChatStage.mobile, ["delay": "300", "person": "\"Ada\""])
                let posts = (0..<20).map { index in
                    Background { () -> [String] in
                        let gateway = index.isMultiple(of: 2) ? one : other
                        let response = try gateway.signInWithWeChat(["app": "ios", "code": code])
                        return [
                            "\(response.status)", response.member("subject") ?? "",
                            response.member("access_token") ?? "",
                        ]
                    }
                }
                let responses = try posts.map { try $0.value() }
                #expect(responses.allSatisfy { $0[0] == "200" }, "\(responses)")
                #expect(Set(responses).count == 1, "one response for all")
                #expect(try stage.exchanges() - before == 1)
                let echo = try one.get("/orders", [("Authorization", "Bearer \(responses[19][2])")])
                #expect((echo.object["headers"] as? [String: Any])?["x-auth-subject"] as? String == responses[19][1])
                // The eleventh second.
                pause(.milliseconds(10_600))
                for gateway in [one, other] {
                    let late = try gateway.signInWithWeChat(["app": "ios", "code": code])
                    expectRejection(late, 401, "credential_invalid")
                }
                #expect(try stage.exchanges() - before == 1)
            }
        }
        try stage.stop()
    }

    @Test(arguments: [false, true])
    func `a code from another network, endpoint or session is a used one`(isShared: Bool) throws {
        let stage = try WeChatStage()
        let redis = try isShared ? RedisServer() : nil
        let config = stage.configuration(
            store: redis?.url ?? "memory:", more: "accounts: { url: \"sqlite:\(stage.folder.file("accounts.db"))\" }\n",
            server: "trusted_proxies: [127.0.0.0/8]")
        try withMartlet(config) { one in
            let other = try redis.map { _ in try Gateway(config) }
            func member(_ code: String) -> [String: String] { ["app": "ios", "code": code] }
            func from(_ address: String) -> [(String, String)] { [("X-Forwarded-For", address)] }
            func login(_ code: String, _ address: String, at gateway: Gateway? = nil) throws -> HTTPMessage {
                try (gateway ?? one).signInWithWeChat(member(code), from(address))
            }
            let code = try stage.code(WeChatStage.mobile, ["person": "\"Ada\""])
            let first = try login(code, "2001:db8:0:1::1")
            let again = try login(code, "2001:db8:0:1::2", at: other)
            #expect(first.status == 200 && again.text == first.text)
            for address in ["2001:db8:0:2::1", "198.51.100.7"] {
                expectRejection(try login(code, address, at: other), 401, "credential_invalid", address)
            }
            #expect((other ?? one).everything.contains("wechat.code_reused"))
            // A link: the session counts, wherever it comes from.
            let session = bearer(first.member("access_token") ?? "")
            let linked = try stage.code(WeChatStage.mobile, ["person": "\"Ada\""])
            func link(_ fields: [(String, String)], at gateway: Gateway? = nil) throws -> Int {
                try (gateway ?? one).postWeChat("/auth/link/wechat", member(linked), fields).status
            }
            #expect(try link(session + from("198.51.100.7")) == 204)
            #expect(try link(session + from("198.51.100.8"), at: other) == 204)
            expectRejection(try login(linked, "198.51.100.7"), 401, "credential_invalid")
            let second = try login(stage.code(WeChatStage.mobile, ["person": "\"Ada\""]), "198.51.100.7")
            #expect(try link(bearer(second.member("access_token") ?? "") + from("198.51.100.7")) == 401)
            #expect(try stage.exchanges() == 3)
            try other?.stop()
        }
        try stage.stop()
    }

    @Test func `whoever is known by openid keeps the account when a unionid comes`() throws {
        let stage = try WeChatStage()
        let accounts = "accounts: { url: \"sqlite:\(stage.folder.file("accounts.db"))\" }\n"
        try withMartlet(stage.configuration(more: accounts)) { gateway in
            func subject(_ app: String, _ name: String, _ members: [String: String]) throws -> String? {
                let response = try gateway.signInWithWeChat(["app": name, "code": try stage.code(app, members)])
                return response.member("subject")
            }
            let ada = ["person": "\"Ada\""]
            let first = try subject(WeChatStage.mobile, "ios", ada.merging(["unionid": "null"]) { $1 })
            #expect(first?.hasPrefix("usr_") == true)
            #expect(try subject(WeChatStage.mobile, "ios", ada) == first)
            #expect(try subject(WeChatStage.mini, "mini", ada) == first)
            #expect(try subject(WeChatStage.mobile, "ios", ada.merging(["unionid": "null"]) { $1 }) == first)
            #expect(try subject(WeChatStage.mobile, "ios", ["person": "\"Bob\""]) != first)
        }
        try stage.stop()
    }

    @Test func `without WeChat or the store a login is 503 and sessions go on`() throws {
        let stage = try WeChatStage()
        let redis = try RedisServer()
        let config = stage.configuration("timeout: 1s", store: redis.url)
        try withMartlet(config) { gateway in
            let token = try gateway.signInWithWeChat(["app": "ios", "code": try stage.code()]).member("access_token")
            let field = [("Authorization", "Bearer \(token ?? "")")]
            #expect(try gateway.get("/a", field).status == 200)
            let code = try stage.code()
            try stage.stop()
            expectUnavailable(try gateway.signInWithWeChat(["app": "ios", "code": code]))
            #expect(try gateway.get("/a", field).status == 200)
            #expect(
                try gateway.askAdmin("/metrics").text.contains("martlet_provider_failures_total{provider=\"wechat\"} 1")
            )
            redis.freeze(true)
            expectUnavailable(try gateway.signInWithWeChat(["app": "ios", "code": "another"]))
            redis.freeze(false)
        }
    }
}
