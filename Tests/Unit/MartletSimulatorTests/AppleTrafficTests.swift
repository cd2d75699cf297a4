import MartletCore
import MartletCrypto
import MartletJSON
import MartletResponder
import MartletSimulator
import Testing

@Suite struct `Apple simulator's traffic` {
    private static func digest(_ text: String) -> JSONValue {
        .string(SHA256.digest(Array(text.utf8)).map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined())
    }

    // MARK: Log

    @Test func `the log has codes and tokens by their digests only`() async throws {
        let stage = try AppleStage()
        let code = try await stage.code()
        let token = try #require(try await stage.exchange(code)["refresh_token"])
        _ = try await stage.exchange(code)
        _ = try await stage.refresh(token)
        _ = try await stage.revoke(token)
        _ = await stage.send("GET", "/auth/keys", fields: [])
        let log = await stage.log()
        #expect(log.map { $0["outcome"] } == ["ok", "invalid_grant", "ok", "ok", "ok"])
        #expect(log.map { $0["status"]?.int64 } == [200, 400, 200, 200, 200])
        #expect(log.map { $0["number"]?.int64 } == [1, 2, 3, 4, 5])
        #expect(log[0]["grant_type"] == "authorization_code" && log[0]["code_sha256"] == Self.digest(code))
        #expect(log[0]["client_id"] == .string(AppleStage.app) && log[0]["refresh_token_sha256"] == .null)
        #expect(log[2]["refresh_token_sha256"] == Self.digest(token) && log[3]["token_sha256"] == Self.digest(token))
        #expect(log[3]["path"] == "/auth/revoke" && log[4]["path"] == "/auth/keys" && log[4]["client_id"] == .null)
        #expect(log[0]["time_ms"] == .integer(stage.now.seconds * 1000) && log[0]["injected"] == false)
        #expect(await stage.log(after: 3).map { $0["number"]?.int64 } == [4, 5])
        #expect(await stage.log(after: 99).isEmpty)
        let text = await stage.send("GET", "/simulator/requests", fields: []).text
        #expect(!text.contains(code) && !text.contains(token))
    }

    @Test func `the log is bounded`() async throws {
        let stage = try AppleStage()
        for _ in 0..<1005 { _ = await stage.call("/auth/token", [("client_id", String(repeating: "x", count: 9999))]) }
        let log = await stage.log()
        #expect(log.count == 1000 && log.first?["number"] == 6 && log.last?["number"] == 1005)
        #expect(log.first?["client_id"]?.string?.count == 255)
        for query in ["?after=x", "?since=1", "?after=1&after=2", "?after=99999999999999999999", "?%"] {
            #expect(await stage.send("GET", "/simulator/requests\(query)", fields: []).status == 400, "\(query)")
        }
        #expect(await stage.order("/simulator/requests", "{}").status == 405)
    }

    // MARK: Injected errors

    /// A row of Apple's error table.
    static let errors = [
        "invalid_request", "invalid_client", "invalid_grant", "unauthorized_client", "unsupported_grant_type",
        "invalid_scope",
    ]

    @Test(arguments: errors) func `an error of the table, once, without using the code up`(_ error: String) async throws
    {
        let stage = try AppleStage()
        let code = try await stage.code()
        let order = #"{"path": "/auth/token", "error": "\#(error)", "error_description": "why"}"#
        #expect(await stage.order("/simulator/trouble", order).object["ordered"] == 1)
        let reply = try await stage.exchange(code)
        #expect(reply.status == 400 && reply.error == error && reply["error_description"] == "why")
        #expect(try await stage.exchange(code).status == 200)
        let log = await stage.log()
        #expect(log.map { $0["injected"] } == [true, false] && log[0]["outcome"] == .string(error))
    }

    @Test func `any status and body, several times, and none`() async throws {
        let stage = try AppleStage()
        func inject(_ members: String) async -> Int {
            await stage.order("/simulator/trouble", #"{"path": "/auth/revoke", \#(members)}"#).status
        }
        #expect(await inject(#""status": 500, "body": "<html>", "times": 2"#) == 200)
        #expect(await inject(#""status": 429"#) == 200)
        #expect(await inject(#""status": 503, "error": "busy""#) == 200)
        #expect(await inject(#""body": "{}", "content_type": "application/json""#) == 200)
        #expect(await inject(#""close": true"#) == 200)
        var replies: [AppleStage.Reply] = []
        for _ in 0..<7 { replies.append(try await stage.revoke("t")) }
        #expect(replies.map(\.status) == [500, 500, 429, 503, 200, 499, 200])
        #expect(replies[0].text == "<html>" && replies[0].response.fields.first?.value == "text/html;charset=UTF-8")
        #expect(replies[2].response.body.isEmpty && replies[3].error == "busy")
        #expect(replies[4].text == "{}" && replies[4].response.fields.first?.value == "application/json")
        #expect(replies[5].response.isAborted && !replies[6].response.isAborted)
        #expect(await stage.log().map { $0["status"]?.int64 } == [500, 500, 429, 503, 200, 0, 200])
    }

    @Test func `after the call was processed: the response is lost, the code is used`() async throws {
        let stage = try AppleStage()
        let code = try await stage.code()
        let order = #"{"path": "/auth/token", "close": true, "processed": true}"#
        #expect(await stage.order("/simulator/trouble", order).status == 200)
        #expect(try await stage.exchange(code).response.isAborted)
        #expect(try await stage.exchange(code)["error_description"] == "The code has already been used.")
    }

    @Test func `for one grant type, one path, until it is cleared`() async throws {
        let stage = try AppleStage()
        let order = #"{"path": "/auth/token", "grant_type": "refresh_token", "status": 500, "times": 5}"#
        #expect(await stage.order("/simulator/trouble", order).status == 200)
        let token = try await stage.refreshToken()
        #expect(try await stage.refresh(token).status == 500)
        #expect(try await stage.revoke("t").status == 200)
        #expect(await stage.order("/simulator/trouble", #"{"path": "/auth/token", "times": 0}"#).status == 200)
        #expect(try await stage.refresh(token).status == 200)
        #expect(await stage.order("/simulator/trouble", #"{"path": "/auth/keys", "status": 503}"#).status == 200)
        #expect(await stage.send("GET", "/auth/keys", fields: []).status == 503)
        #expect(await stage.send("GET", "/auth/keys", fields: []).status == 200)
    }

    @Test func `a delay alone, after which the response is normal`() async throws {
        let stage = try AppleStage()
        let order = #"{"path": "/auth/revoke", "delay": 30}"#
        #expect(await stage.order("/simulator/trouble", order).status == 200)
        let start = ContinuousClock.now
        #expect(try await stage.revoke("t").status == 200)
        #expect(ContinuousClock.now - start >= .milliseconds(30))
    }

    static let invalid = [
        "{}", #"{"path": "/auth/token"}"#, #"{"path": "/nowhere", "status": 500}"#,
        #"{"path": "/auth/token", "status": 99}"#, #"{"path": "/auth/token", "status": 600}"#,
        #"{"path": "/auth/token", "status": 500, "times": 1001}"#, #"{"path": "/auth/token", "delay": 9001}"#,
        #"{"path": "/auth/token", "delay": -1}"#, #"{"path": "/auth/token", "error": ""}"#,
        #"{"path": "/auth/token", "error": 1}"#, #"{"path": "/auth/token", "close": "yes"}"#,
        #"{"path": "/auth/token", "status": 200, "content_type": "a\r\nb: c"}"#,
        #"{"path": "/auth/token", "status": 200, "typo": 1}"#,
    ]

    @Test(arguments: invalid) func `an invalid order is rejected`(_ body: String) async throws {
        #expect(await (try AppleStage()).order("/simulator/trouble", body).status == 400)
    }

    @Test func `the number of waiting errors is limited`() async throws {
        let stage = try AppleStage()
        let order = #"{"path": "/auth/token", "status": 500}"#
        for _ in 0..<100 { #expect(await stage.order("/simulator/trouble", order).status == 200) }
        #expect(await stage.order("/simulator/trouble", order).status == 400)
    }
}
