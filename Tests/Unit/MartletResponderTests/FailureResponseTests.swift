import MartletCore
import MartletHTTP
import MartletJSON
import MartletProvider
import Testing

@testable import MartletResponder

@Suite struct FailureResponseTests {
    private static let basic = #"WWW-Authenticate: Basic realm="martlet", charset="UTF-8""#

    // MARK: Every failure

    @Test(arguments: FailureCase.all)
    func `each failure has its status, its coarse code and its reason`(item: FailureCase) {
        let failure = item.failure
        #expect(failure.status == item.status && "\(failure.code)" == item.code && failure.reason == item.reason)
        #expect(failure.retryAfter == item.retryAfter && failure.closes == item.closes)
        #expect(failure.bodyErrors.isEmpty)
    }

    @Test(arguments: FailureCase.all)
    func `each response has the head and the body of its failure`(item: FailureCase) {
        let body =
            #"{"type":"urn:martlet:problem:\#(item.code)","title":"\#(item.title)","status":\#(item.status),"#
            + #""code":"\#(item.code)","request_id":"r1"}"# + "\n"
        let lines =
            [
                "HTTP/1.1 \(item.status) \(item.title)", "Content-Type: application/problem+json",
                "Cache-Control: no-store", "Content-Length: \(body.utf8.count)", "Date: \(WrittenFailure.date)",
                "X-Request-Id: r1",
            ] + item.fields
        let written = WrittenFailure(item.failure)
        #expect(written.text == lines.joined(separator: "\r\n") + "\r\n\r\n" + body)
    }

    @Test(arguments: FailureCase.all)
    func `Basic is offered with every 401, after Bearer`(item: FailureCase) {
        let expected = item.status == 401 ? item.fields + [Self.basic] : item.fields
        #expect(WrittenFailure(item.failure, offersBasic: true).fields == expected)
    }

    @Test(arguments: FailureCase.all)
    func `a closing response says so in its last line`(item: FailureCase) {
        let fields = WrittenFailure(item.failure, close: true).fields
        let offersUpgrade = item.status == 426
        let others = offersUpgrade ? Array(item.fields.dropLast()) : item.fields
        #expect(fields == others + [offersUpgrade ? "Connection: close, Upgrade" : "Connection: close"])
    }

    // MARK: Fields

    private static let strictTransport: [(Int64, [String])] = [
        (0, []), (-1, []), (1, ["Strict-Transport-Security: max-age=1"]),
        (31_536_000, ["Strict-Transport-Security: max-age=31536000"]),
        (.max, ["Strict-Transport-Security: max-age=9223372036854775807"]),
    ]

    @Test(arguments: strictTransport)
    func `strict transport security is written for a positive number of seconds`(seconds: Int64, fields: [String]) {
        #expect(WrittenFailure(.noRoute, strictTransportSeconds: seconds).fields == fields)
    }

    @Test func `fields are in one order`() {
        var failure = Failure.throttled("test.reason", retryAfter: 7).readable(by: "https://a.example")
        failure.allow = "GET"
        failure.location = "/b"
        failure.challenge = .insufficient
        failure.offersWebSocket = true
        let written = WrittenFailure(failure, close: true, offersBasic: true, strictTransportSeconds: 60)
        #expect(
            written.fields == [
                #"WWW-Authenticate: Bearer realm="martlet", error="insufficient_scope""#, "Retry-After: 7",
                "Allow: GET", "Location: /b", "Vary: Origin", "Access-Control-Allow-Origin: https://a.example",
                "Access-Control-Expose-Headers: Retry-After, WWW-Authenticate, X-Request-Id",
                "Strict-Transport-Security: max-age=60",
                "Upgrade: websocket", "Sec-WebSocket-Version: 13", "Connection: close, Upgrade",
            ])
    }

    @Test func `a response varies by origin even where none may read it`() {
        let plain = Failure.noRoute
        let unreadable = plain.readable(by: nil)
        #expect(WrittenFailure(unreadable).fields == ["Vary: Origin"])
        let readable = unreadable.readable(by: "https://a.example")
        #expect(
            WrittenFailure(readable).fields == [
                "Vary: Origin", "Access-Control-Allow-Origin: https://a.example",
                "Access-Control-Expose-Headers: Retry-After, WWW-Authenticate, X-Request-Id",
            ])
        // They are copies.
        #expect(WrittenFailure(plain).fields.isEmpty)
        #expect(readable.status == 404 && readable.reason == plain.reason && !readable.closes)
    }

    @Test func `says how to authenticate again, and pages of other origins may read it`() {
        let failure = Failure.stepUp(StepUpRequirement(maximumAge: 600, acr: "mfa"), "test.reason")
        let written = WrittenFailure(failure.readable(by: "https://app.example.com"))
        #expect(written.body.contains(#""code":"reauthentication_required","max_age":600,"acr_values":"mfa","#))
        #expect(
            written.head.contains(
                "\r\nAccess-Control-Expose-Headers: Retry-After, WWW-Authenticate, X-Request-Id"))
        #expect(WrittenFailure(.proofInvalid("test.reason")).body.contains(#""code":"dpop_proof_invalid""#))
    }

    @Test func `the text of a challenge is that of its kind`() {
        let failures: [Failure] = [
            .noRoute, .credentialMissing, .credentialInvalid("test.reason"), .notAllowed("test.reason"),
            .stepUp(StepUpRequirement(maximumAge: 600), "test.reason"),
            .stepUp(StepUpRequirement(acr: "urn:level:2"), "test.reason"),
            .stepUp(StepUpRequirement(maximumAge: 60, acr: "mfa"), "test.reason"),
        ]
        let texts = failures.map { failure in failure.challengeText ?? "none" }
        let bearer = #"Bearer realm="martlet""#
        let stepUp = #"\#(bearer), error="insufficient_user_authentication", error_description=""#
        #expect(
            texts == [
                "none", bearer, #"\#(bearer), error="invalid_token""#, #"\#(bearer), error="insufficient_scope""#,
                #"\#(stepUp)More recent authentication is required", max_age=600"#,
                #"\#(stepUp)A different authentication level is required", acr_values="urn:level:2""#,
                #"\#(stepUp)A different authentication level is required", max_age=60, acr_values="mfa""#,
            ])
        #expect("WWW-Authenticate: \(Failure.basicChallenge)" == Self.basic)
    }

    @Test func `the code of a rejection says what to do, and the document how`() {
        let stepUp = WrittenFailure(.stepUp(StepUpRequirement(maximumAge: 60, acr: "mfa"), "test.reason"))
        #expect(
            stepUp.body.contains(#""code":"reauthentication_required","max_age":60,"acr_values":"mfa","request_id""#))
        let recent = WrittenFailure(.stepUp(StepUpRequirement(maximumAge: 600), "test.reason"))
        #expect(recent.body.contains(#""code":"reauthentication_required","max_age":600,"request_id""#))
        #expect(
            WrittenFailure(.proofInvalid("test.reason")).body.contains(#""code":"dpop_proof_invalid","request_id""#))
        #expect(WrittenFailure(.certificateInvalid("test.reason")).body.contains(#""code":"credential_invalid""#))
    }

    @Test func `a page of another origin may read what tells it how to go on`() {
        let readable = WrittenFailure(Failure.noRoute.readable(by: "capacitor://localhost"))
        #expect(readable.fields.contains("Access-Control-Allow-Origin: capacitor://localhost"))
        let exposed = "Access-Control-Expose-Headers: Retry-After, WWW-Authenticate, X-Request-Id"
        #expect(readable.fields.contains(exposed))
        #expect(!WrittenFailure(Failure.noRoute.readable(by: nil)).fields.contains(exposed))
    }

    @Test func `a caller of gRPC-Web gets a status that all of its clients read`() {
        let failure = Failure.throttled("test.reason", retryAfter: 7)
        var out = ByteBuffer()
        var date = ByteBuffer()
        var id = ByteBuffer()
        date.append("now")
        id.append("r1")
        unsafe failure.writeStatusHead(
            as: .webText, into: &out, requestID: id.bytes, date: date, close: true, strictTransportSeconds: 9)
        #expect(
            String(decoding: out.array, as: UTF8.self) == """
                HTTP/1.1 200 OK\r\nContent-Type: application/grpc-web-text+proto\r\nCache-Control: no-store\r
                Content-Length: 0\r\nGrpc-Status: 8\r\nGrpc-Message: throttled\r\nDate: now\r\nX-Request-Id: r1\r
                Retry-After: 7\r\nStrict-Transport-Security: max-age=9\r\nConnection: close\r\n\r\n
                """)
        let redirect = Failure.movedToHTTPS(authority: [0x61], path: [0x2F], query: [], port: 443)
        #expect(!redirect.hasStatus(of: .web) && redirect.hasStatus(of: .http2) && failure.hasStatus(of: .web))
    }

    @Test func `a response is appended to what the buffer has`() {
        let (plain, appended) = (WrittenFailure(.noRoute), WrittenFailure(.noRoute, after: "before"))
        #expect(appended.text == "before" + plain.text)
    }

    @Test(arguments: ["", "0123456789abcdef0000000000000001"])
    func `the request ID is in the head and the body`(requestID: String) {
        let written = WrittenFailure(.noRoute, requestID: requestID)
        #expect(written.head.hasSuffix("\r\nX-Request-Id: \(requestID)"))
        #expect(written.body.hasSuffix(#","request_id":"\#(requestID)"}"# + "\n"))
        #expect(written.head.contains("\r\nContent-Length: \(written.body.utf8.count)\r\n"))
    }

    // MARK: Errors of a body

    @Test func `all errors of a body are named, and the first one is the detail`() throws {
        let errors = [
            BodyError(["device", "na/me"], .tooLong, detail: "Say \"less\"."), BodyError("token", .missing),
            BodyError([], .malformed),
        ]
        let failure = Failure.malformed("test.reason", errors)
        let written = WrittenFailure(failure)
        let limits = JSONLimits(maximumDepth: 8, maximumBytes: 4_096)
        let object = try #require(try JSON.parse(Array(written.body.utf8), limits: limits).object)
        #expect(
            object.members.map(\.name) == ["type", "title", "status", "code", "detail", "errors", "request_id"])
        #expect(object["detail"]?.string == "Say \"less\"." && object["status"]?.int64 == 400)
        #expect(
            object["errors"]?.array == [
                ["pointer": "/device/na~1me", "code": "too_long"], ["pointer": "/token", "code": "missing"],
                ["pointer": "", "code": "malformed"],
            ])
        #expect(failure.bodyErrors == errors)
    }

    @Test func `a body without errors has no detail`() {
        #expect(!WrittenFailure(.malformed("test.reason", [])).text.contains("detail"))
    }
}
