import MartletCore
import MartletJOSE
import MartletJSON
import MartletResponder
import MartletSimulator
import MartletTesting
import Testing

@Suite struct `Apple simulator's notifications` {
    /// A receiver that records the calls.
    private struct Receiver: HTTPCalling {
        let calls = Box<[HTTPCall]>([])
        var status = 200
        var failure: HTTPCallError?

        func send(_ call: HTTPCall) async throws(HTTPCallError) -> HTTPCallResponse {
            calls.withLock { $0.append(call) }
            if let failure { throw failure }
            return HTTPCallResponse(status: status, body: Array("received".utf8))
        }
    }

    private static let target = #""url": "http://127.0.0.1:1/hook", "audience": "com.example.app""#

    private static func send(
        _ stage: AppleStage, _ members: String, to receiver: Receiver = Receiver()
    ) async throws -> AppleStage.Reply {
        let endpoints = AppleSimulatorEndpoints(stage.simulator, http: receiver)
        let body = Array("{\(target)\(members.isEmpty ? "" : ", ")\(members)}".utf8)
        let response = await endpoints.handle(
            LocalRequest(
                method: "POST", path: "/simulator/notification", query: "",
                fields: [("Content-Type", "application/json")], body: body, bodyBytes: body.count, client: "127.0.0.1",
                requestID: "r1"))
        return AppleStage.Reply(response: response, object: try AppleStage.object(response.body))
    }

    private static func isGenuine(_ token: CompactJWS, _ stage: AppleStage) throws -> Bool {
        let keys = try KeySet(document: stage.simulator.keySetDocument, allowing: [.rs256])
        guard let key = keys.keys[try token.keyID()] else { return false }
        return key.verify(signature: token.signature, signingInput: token.signingInput)
    }

    @Test(arguments: AppleNotification.types) func `has the claims of Apple's`(_ type: String) async throws {
        let (stage, receiver) = (try AppleStage(), Receiver())
        let reply = try await Self.send(stage, #""type": "\#(type)", "subject": "me""#, to: receiver)
        #expect(reply.object["status"] == 200 && reply.object["statuses"] == [200] && reply["body"] == "received")
        let call = try #require(receiver.calls.value.first)
        #expect(call.url == "http://127.0.0.1:1/hook" && call.timeout <= .seconds(5) && !call.isRepeatable)
        guard case .body(let bytes, "application/json") = call.content else { throw TestFailure("no JSON") }
        let payload = try #require(try AppleStage.object(bytes)["payload"]?.string)
        #expect(payload == reply["payload"])
        let token = try CompactJWS(Array(payload.utf8))
        #expect(try Self.isGenuine(token, stage))
        #expect(token.payload.members.map(\.name) == ["iss", "aud", "exp", "iat", "jti", "events"])
        #expect(token.payload["aud"] == "com.example.app" && token.payload["jti"] == reply.object["jti"])
        let event = try AppleStage.object(Array(try #require(token.payload["events"]?.string).utf8))
        #expect(event["type"] == .string(type) && event["sub"] == "me")
        #expect(event["event_time"] == .integer(stage.now.seconds * 1000))
        #expect((event["email"] != nil) == type.hasPrefix("email-") && event["is_private_email"]?.bool == nil)
    }

    @Test func `as an object, forged, without an id, at another time, with other claims, huge`() async throws {
        let stage = try AppleStage()
        func token(_ members: String) async throws -> CompactJWS {
            let reply = try await Self.send(stage, #""type": "consent-revoked", \#(members)"#)
            return try CompactJWS(Array(try #require(reply["payload"]).utf8))
        }
        let object = try await token(#""events_as": "object", "event_time": 1"#).payload["events"]?.object
        #expect(object?["event_time"] == 1 && object?["type"] == "consent-revoked")
        #expect(try await token(#""events_as": "array""#).payload["events"]?.array?.count == 1)
        #expect(try await token(#""events_as": "none""#).payload["events"] == nil)
        #expect(try await token(#""jti": null"#).payload["jti"] == nil)
        #expect(try await token(#""jti": "again""#).payload["jti"] == "again")
        let odd = #""event": {"event_time": "soon", "type": 7, "sub": null}, "events_as": "object""#
        let event = try await token(odd).payload["events"]?.object
        #expect(event?["event_time"] == "soon" && event?["type"] == 7 && event?["sub"] == nil)
        let claims = try await token(#""claims": {"iss": "i", "iat": null}"#).payload
        #expect(claims["iss"] == "i" && claims["iat"] == nil)
        let forged = try await token(#""forged": true"#)
        #expect(try !Self.isGenuine(forged, stage) && stage.simulator.keys[0].id == forged.keyID())
        let huge = try await Self.send(stage, #""type": "x", "padding": 1000000"#)
        #expect((huge["payload"]?.utf8.count ?? 0) > 1_000_000)
    }

    @Test func `repeated, as a form, and with a payload of the test's own`() async throws {
        let (stage, receiver) = (try AppleStage(), Receiver(status: 503))
        let reply = try await Self.send(stage, #""type": "consent-revoked", "times": 3, "form": true"#, to: receiver)
        #expect(reply.object["statuses"] == [503, 503, 503])
        let payloads = receiver.calls.value.map { call -> String? in
            guard case .form(let fields) = call.content, fields.count == 1 else { return nil }
            return "\(fields[0].name)=\(fields[0].value)"
        }
        #expect(Set(payloads) == ["payload=\(reply["payload"] ?? "")"])
        let own = try await Self.send(stage, #""payload": "x.y.z""#, to: receiver)
        #expect(own["payload"] == "x.y.z" && own.object["jti"] == .null)
    }

    @Test func `a receiver that does not respond is reported`() async throws {
        let receiver = Receiver(failure: HTTPCallError(code: "fetch.timeout", message: "late"))
        let reply = try await Self.send(try AppleStage(), #""type": "email-enabled", "timeout": 100"#, to: receiver)
        #expect(reply.status == 200 && reply.object["status"] == 0 && reply["error"] == "fetch.timeout")
        #expect(receiver.calls.value.first.map { $0.timeout <= .milliseconds(100) } == true)
    }

    @Test func `changes the user only on request`() async throws {
        let stage = try AppleStage()
        let token = try await stage.refreshToken()
        let event = #""type": "consent-revoked", "subject": "\#(AppleStage.subject)""#
        _ = try await Self.send(stage, event)
        #expect(try await stage.refresh(token).status == 200)
        _ = try await Self.send(stage, event + #", "apply": true"#)
        #expect(try await stage.refresh(token).error == "invalid_grant")
        let rows = [
            ("email-disabled", "revoked", false), ("email-enabled", "revoked", true),
            ("account-delete", "deleted", true),
        ]
        for (type, state, forwards) in rows {
            _ = try await Self.send(stage, #""type": "\#(type)", "subject": "\#(AppleStage.subject)", "apply": true"#)
            let user = await stage.order("/simulator/user", #"{"subject": "\#(AppleStage.subject)"}"#)
            #expect(user["state"] == state && user.object["email_forwarding"] == .bool(forwards), "\(type)")
        }
    }

    static let invalid = [
        "", #""type": """#, #""type": 1"#, #""type": "x", "times": 0"#, #""type": "x", "times": 101"#,
        #""type": "x", "timeout": 9001"#, #""type": "x", "padding": 1048577"#, #""type": "x", "events_as": "text""#,
        #""type": "x", "event": []"#, #""type": "x", "event_time": "1""#, #""type": "x", "jti": 1"#,
        #""payload": "x", "apply": true"#, #""type": "x", "typo": 1"#,
    ]

    @Test(arguments: invalid) func `an invalid order is rejected, and nothing is sent`(_ members: String) async throws {
        let receiver = Receiver()
        #expect(try await Self.send(try AppleStage(), members, to: receiver).status == 400)
        #expect(receiver.calls.value.isEmpty)
    }

    @Test func `cannot be sent without a client`() async throws {
        let reply = await (try AppleStage()).order("/simulator/notification", "{\(Self.target)}")
        #expect(reply.status == 503)
    }
}
