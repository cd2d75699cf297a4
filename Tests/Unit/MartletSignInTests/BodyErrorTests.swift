import MartletCore
import MartletProvider
import MartletTesting
import Testing

@testable import MartletResponder
@testable import MartletSignIn

/// The body errors of a 400.
@Suite struct `An invalid body` {
    struct Case: Sendable, CustomTestStringConvertible {
        var path = "login/apple"
        let body: String
        let pointer: String
        let code: BodyError.Code
        let detail: String
        var testDescription: String { "\(path) \(body)" }
    }

    static let documents: [Case] = [
        Case(body: "", pointer: "", code: .missing, detail: "There is no body."),
        Case(body: "[]", pointer: "", code: .unknownType, detail: "The body must be a JSON object."),
        Case(body: "{\"a\"", pointer: "", code: .malformed, detail: "The body is not valid JSON: error at byte 4."),
        Case(body: "{}", pointer: "/proof", code: .missing, detail: "The member `proof` is missing."),
        Case(
            body: #"{"Proof":"x"}"#, pointer: "/proof", code: .missing,
            detail: "The member `proof` is missing (`Proof`: did you mean `proof`?)."),
        Case(body: #"{"proof":1}"#, pointer: "/proof", code: .unknownType, detail: "`proof` must be a string."),
        Case(
            body: #"{"proof":"a","full_name":"b"}"#, pointer: "/full_name", code: .unknownType,
            detail: "`full_name` must be an object."),
        Case(
            body: #"{"user":"a","\u0075ser":"b"}"#, pointer: "/user", code: .repeated,
            detail: "The member `user` is repeated."),
        Case(
            body: #"{"full_name":{"a":1,"a":2}}"#, pointer: "/full_name", code: .repeated,
            detail: "The member `full_name` is repeated."),
        // Unknown names may contain anything: they are not echoed.
        Case(
            body: #"{"my_secret":"a","my_secret":"b"}"#, pointer: "", code: .repeated,
            detail: "A member is repeated."),
        Case(
            path: "refresh", body: #"{"refreshToken":"mrt_x"}"#, pointer: "/refresh_token", code: .missing,
            detail: "The member `refresh_token` is missing (`refreshToken`: did you mean `refresh_token`?)."),
        Case(
            path: "refresh", body: #"{"refresh_token":["mrt_x"]}"#, pointer: "/refresh_token", code: .unknownType,
            detail: "`refresh_token` must be a string."),
    ]

    private func expect(_ reply: Stand.Reply, _ expected: Case) {
        #expect(reply.status == 400 && reply.code == "request_invalid")
        let errors = reply.response.failure?.bodyErrors
        #expect(errors == [BodyError(pointer: expected.pointer, expected.code, expected.detail)])
    }

    @Test(arguments: documents)
    func `of JSON gets the error and its position`(expected: Case) async {
        expect(await Stand().post("/auth/\(expected.path)", expected.body), expected)
    }

    static let forms: [Case] = [
        Case(body: "x=1", pointer: "/proof", code: .missing, detail: "The member `proof` is missing."),
        Case(
            body: "pro-of=1", pointer: "/proof", code: .missing,
            detail: "The member `proof` is missing (`pro-of`: did you mean `proof`?)."),
        Case(body: "proof=%", pointer: "", code: .malformed, detail: "The form cannot be decoded."),
        Case(
            body: "user=1&us%65r=2", pointer: "/user", code: .repeated, detail: "The member `user` is repeated."),
        Case(
            body: "proof=a&full_name=b", pointer: "/full_name", code: .unknownType,
            detail: "`full_name` must be an object."),
    ]

    @Test(arguments: forms)
    func `of a form gets the same`(expected: Case) async {
        expect(
            await Stand().send("POST", "/auth/login/apple", type: Stand.form, Array(expected.body.utf8)), expected)
    }

    @Test(arguments: ["link/password", "password"])
    func `gets them with a session too`(path: String) async throws {
        let stand = Stand()
        let token = try await stand.login("apple", "anna")
        let reply = await stand.post("/auth/\(path)", bearer: token, "{}")
        let pointer = path == "password" ? "/current_password" : "/proof"
        #expect(reply.response.failure?.bodyErrors.map(\.pointer) == [pointer])
    }

    @Test func `that a provider rejects without details points to the whole body`() async {
        let stand = Stand()
        stand.apple.script.withLock { $0.error = .malformed("apple.odd") }
        let reply = await stand.post("/auth/login/apple", #"{"proof":"a"}"#)
        #expect(reply.summary == "400 request_invalid apple.odd")
        #expect(reply.response.failure?.bodyErrors == [BodyError([], .invalid, detail: "The body is not valid.")])
    }

    @Test func `is distinguished from an invalid query`() async throws {
        let stand = Stand()
        let token = try await stand.login("apple", "anna")
        let reply = await stand.send("POST", "/auth/logout?all=1", bearer: token)
        #expect(reply.status == 400 && reply.response.failure?.bodyErrors.isEmpty == true)
    }
}

extension BodyError {
    fileprivate init(pointer: String, _ code: Code, _ detail: String) {
        self.init(pointer.isEmpty ? [] : [String(pointer.dropFirst())], code, detail: detail)
    }
}
