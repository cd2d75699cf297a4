import MartletAccounts
import MartletConfig
import MartletCore
import MartletJSON
import MartletSession
import MartletTesting
import Testing

@testable import MartletProvider
@testable import MartletResponder
@testable import MartletSignIn

@Suite struct `A body` {
    static let types: [(String, String)] = [
        ("application/json", "200"), ("Application/JSON; charset=utf-8", "200"),
        ("application/json;charset=\"UTF-8\"", "200"),
        ("application/json; profile=x", "200"), ("application/json;", "200"),
        ("text/plain", "415 request_invalid signin.unsupported_media_type"),
        ("application/jsonp", "415 request_invalid signin.unsupported_media_type"),
        ("application/json, text/plain", "415 request_invalid signin.unsupported_media_type"),
        ("multipart/form-data; boundary=x", "415 request_invalid signin.unsupported_media_type"),
        ("", "415 request_invalid signin.unsupported_media_type"),
        ("application/json; charset=iso-8859-1", "415 request_invalid signin.unsupported_encoding"),
        ("application/json; charset", "415 request_invalid signin.unsupported_encoding"),
    ]

    @Test(arguments: types)
    func `declares its media type`(type: String, expected: String) async {
        let reply = await Stand().send("POST", "/auth/login/apple", type: type, Array(#"{"proof":"anna"}"#.utf8))
        #expect(reply.summary == expected)
    }

    @Test func `is rejected if compressed, untyped, typed twice or missing`() async {
        let stand = Stand()
        let body = Array(#"{"proof":"anna"}"#.utf8)
        let untyped = await stand.send("POST", "/auth/login/apple", body)
        #expect(untyped.summary == "415 request_invalid signin.unsupported_media_type")
        let twice = await stand.send(
            "POST", "/auth/login/apple", type: Stand.json, body, fields: [("Content-Type", Stand.json)])
        #expect(twice.summary == "415 request_invalid signin.unsupported_media_type")
        let packed = await stand.send(
            "POST", "/auth/login/apple", type: Stand.json, body, fields: [("Content-Encoding", "gzip")])
        #expect(packed.summary == "415 request_invalid signin.unsupported_encoding")
        let plain = await stand.send(
            "POST", "/auth/login/apple", type: Stand.json, body, fields: [("Content-Encoding", "Identity")])
        #expect(plain.summary == "200")
        for type in [Stand.json, Stand.form, "text/plain"] {
            let missing = await stand.send("POST", "/auth/login/apple", type: type)
            #expect(missing.summary == "400 request_invalid signin.body_missing")
        }
    }

    @Test func `is at most 64 KiB long`() async {
        let stand = Stand()
        func padded(_ count: Int) -> [UInt8] {
            let frame = #"{"proof":"anna","x":""}"#
            return Array(frame.dropLast(2).utf8) + [UInt8](repeating: 120, count: count - frame.utf8.count)
                + Array(#""}"#.utf8)
        }
        let most = await stand.send("POST", "/auth/login/apple", type: Stand.json, padded(65_536))
        #expect(most.summary == "200")
        for path in ["login/apple", "refresh", "nonce", "logout", "link/apple", "password"] {
            let more = await stand.send("POST", "/auth/\(path)", type: Stand.json, padded(65_537))
            #expect(more.summary == "413 request_too_large signin.body_too_large")
        }
        #expect(stand.apple.script.value.logins == 1)
    }

    @Test func `that was truncated is rejected`() async {
        let request = LocalRequest(
            method: "POST", path: "/auth/login/apple", query: "", fields: [("Content-Type", Stand.json)],
            body: Array(#"{"proof":"anna"}"#.utf8), bodyBytes: 40_000, client: "", requestID: "r")
        let reply = Stand.Reply(response: await Stand().endpoints.handle(request))
        #expect(reply.summary == "413 request_too_large signin.body_too_large")
    }

    @Test(arguments: [true, false])
    func `a body has at most 32 members`(isForm: Bool) async {
        func body(_ count: Int) -> [UInt8] {
            let more = (1..<count).map { isForm ? "a\($0)=1" : "\"a\($0)\":1" }
            let members = [isForm ? "proof=anna" : #""proof":"anna""#] + more
            return Array((isForm ? members.joined(separator: "&") : "{\(members.joined(separator: ","))}").utf8)
        }
        let type = isForm ? Stand.form : Stand.json
        #expect(await Stand().send("POST", "/auth/login/apple", type: type, body(32)).summary == "200")
        let reason = isForm ? "signin.bad_form" : "json.too_many_values"
        for count in [33, 5000] {
            let more = await Stand().send("POST", "/auth/login/apple", type: type, body(count))
            #expect(more.summary == "400 request_invalid \(reason)")
        }
        let zeros = Array(repeating: "0", count: 255).joined(separator: ",")
        let many = await Stand().post("/auth/login/apple", #"{"proof":"anna","a":[\#(zeros)]}"#)
        #expect(many.summary == "400 request_invalid json.too_many_values")
    }

    static let documents: [(String, String)] = [
        (#"{"proof":"anna"}"#, "200"), (#" {"proof":"anna","unknown":[1,{"a":null}]} "#, "200"),
        (#"{"proof":"anna","full_name":null,"secret":null}"#, "200"), (#"{"\u0070roof":"\u0061nna"}"#, "200"),
        (#"{"proof":"anna","full_name":{"given_name":"A"}}"#, "200"),
        ("{}", "400 request_invalid signin.missing_member"),
        (#"{"proof":null}"#, "400 request_invalid signin.missing_member"),
        (#"{"proof":1}"#, "400 request_invalid signin.bad_member"),
        (#"{"proof":true}"#, "400 request_invalid signin.bad_member"),
        (#"{"proof":["anna"]}"#, "400 request_invalid signin.bad_member"),
        (#"{"proof":{"$ne":""}}"#, "400 request_invalid signin.bad_member"),
        (#"{"proof":"anna","secret":7}"#, "400 request_invalid signin.bad_member"),
        (#"{"proof":"anna","full_name":"A"}"#, "400 request_invalid signin.bad_member"),
        (#"{"proof":"anna","proof":"bert"}"#, "400 request_invalid signin.repeated_member"),
        (#"{"proof":"anna","\u0070roof":"bert"}"#, "400 request_invalid signin.repeated_member"),
        (#"{"proof":"anna","x":1,"x":1}"#, "400 request_invalid signin.repeated_member"),
        (#"{"proof":"anna","full_name":{"a":1,"a":2}}"#, "400 request_invalid signin.repeated_member"),
        ("[]", "400 request_invalid signin.not_an_object"), ("null", "400 request_invalid signin.not_an_object"),
        (#""anna""#, "400 request_invalid signin.not_an_object"),
        ("{", "400 request_invalid json.unexpected_end"), ("proof=anna", "400 request_invalid json.unexpected_byte"),
        (#"{"proof":"anna"}x"#, "400 request_invalid json.trailing_bytes"),
        (#"{"proof":"\ud800"}"#, "400 request_invalid json.lone_surrogate"),
        (#"{"proof":"\x"}"#, "400 request_invalid json.bad_escape"),
        ("{\"proof\":\"a\nb\"}", "400 request_invalid json.control_character"),
        ("\u{FEFF}{}", "400 request_invalid signin.missing_member"),
        (#"{"x":[[[[[[[[]]]]]]]]}"#, "400 request_invalid json.too_deep"),
    ]

    @Test(arguments: documents)
    func `of JSON is strict`(text: String, expected: String) async {
        #expect(await Stand().post("/auth/login/apple", text).summary == expected)
    }

    @Test func `of JSON is UTF-8`() async {
        for bytes in [[0xFF], [0xC0, 0x80], [0xED, 0xA0, 0x80], [0xC3]] as [[UInt8]] {
            let body = Array(#"{"proof":""#.utf8) + bytes + Array(#""}"#.utf8)
            let reply = await Stand().send("POST", "/auth/login/apple", type: Stand.json, body)
            #expect(reply.summary == "400 request_invalid json.invalid_utf8")
        }
    }

    static let forms: [(String, String)] = [
        ("proof=anna", "200"), ("proof=anna&unknown=1", "200"), ("&proof=anna&&", "200"), ("%70roof=%61nna", "200"),
        ("proof=a+b%2Bc", "200"), ("proof=a;b=c", "200"), ("proof", "200"),
        ("x=1", "400 request_invalid signin.missing_member"),
        ("proof=anna&proof=bert", "400 request_invalid signin.repeated_member"),
        ("proof=anna&pr%6Fof=bert", "400 request_invalid signin.repeated_member"),
        ("proof=anna&x&x", "400 request_invalid signin.repeated_member"),
        ("proof=%", "400 request_invalid signin.bad_form"), ("proof=%2", "400 request_invalid signin.bad_form"),
        ("proof=%zz", "400 request_invalid signin.bad_form"), ("%f=1", "400 request_invalid signin.bad_form"),
        ("proof=%2&a=1", "400 request_invalid signin.bad_form"), ("proof=%FF", "400 request_invalid signin.bad_form"),
        ("proof=%C0%80", "400 request_invalid signin.bad_form"),
        ("proof=anna\n", "400 request_invalid signin.bad_form"),
        ("proof=an\u{0}na", "400 request_invalid signin.bad_form"),
        ("proof=anna&full_name=A", "400 request_invalid signin.bad_member"),
    ]

    @Test(arguments: forms)
    func `of a form is strict`(text: String, expected: String) async {
        let reply = await Stand().send("POST", "/auth/login/apple", type: Stand.form, Array(text.utf8))
        #expect(reply.summary == expected)
    }

    @Test func `returns strings as they were written`() throws {
        func text(_ form: SignInForm) throws -> String? { try form.text("a") }
        let samples = ["", "x", "a b+c&d=e%f", "ä€😀", "\"\\/\u{8}\u{C}\n\r\t\u{1}", "\u{212A}"]
        for sample in samples {
            let document = JSON.write(.object(["a": .string(sample)]))
            #expect(try text(SignInBody.json(document)) == sample)
            let escaped = sample.utf8.map { byte in
                let digits = String(byte, radix: 16)
                return "%" + (digits.utf8.count == 1 ? "0" : "") + digits
            }.joined()
            #expect(try text(SignInBody.form(Array("a=\(escaped)".utf8))) == sample)
        }
        let spaces = try SignInBody.form(Array("a=b+c%20d".utf8))
        #expect(try text(spaces) == "b c d" && spaces.isForm)
        let pair = try SignInBody.json(Array(#"{"a":"\ud83d\ude00"}"#.utf8))
        #expect(try text(pair) == "😀" && !pair.isForm)
    }

    @Test func `distinguishes names that only look alike`() throws {
        // K and the Kelvin sign are equal strings.
        let json = try SignInBody.json(Array(#"{"K":"a","\u212A":"b"}"#.utf8))
        #expect(try json.text("K") == "a")
        let form = try SignInBody.form(Array("%E2%84%AA=b&K=a".utf8))
        #expect(try form.text("K") == "a")
    }
}
