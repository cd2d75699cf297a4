import MartletConfig
import MartletCore
import MartletCrypto
import MartletProvider
import MartletResponder
import Testing

@testable import MartletAuthenticator

/// How callers are named in the access log.
@Suite struct `Names of callers` {
    private static func written(
        _ subject: String, _ session: String?, _ form: LogConfiguration.SubjectForm = .full, key: Secret? = nil
    ) -> String {
        var log = LogConfiguration()
        log.subject = form
        log.subjectKey = key
        var out = ByteBuffer()
        CallerNames(log).write(subject: subject, sessionID: session, into: &out)
        return String(decoding: out.array, as: UTF8.self)
    }

    @Test(arguments: [
        ("usr_1", "ses_2", #"","subject":"usr_1","session_id":"ses_2"#),
        ("usr_1", nil, #"","subject":"usr_1","session_id":""#),
        ("apple:001.a%b\"c\\d e\n\u{E9}", nil, #"","subject":"apple:001.a%25b%22c%5Cd%20e%0A%C3%A9","session_id":""#),
        ("", "", #"","subject":"","session_id":""#),
    ])
    func `are written as they stand in a line of JSON`(subject: String, session: String?, text: String) {
        #expect(Self.written(subject, session) == text)
    }

    @Test func `of a subject alone are those in a line`() {
        var log = LogConfiguration()
        #expect(CallerNames(log).name(of: "a b\"%") == "a%20b%22%25")
        log.subject = .hash
        log.subjectKey = Secret("0123456789abcdef")
        #expect(CallerNames(log).name(of: "a")?.count == 32)
        log.subject = .off
        #expect(CallerNames(log).name(of: "a") == nil)
    }

    @Test func `are cut`() {
        let text = Self.written(String(repeating: "a", count: 5_000), nil)
        #expect(text == #"","subject":""# + String(repeating: "a", count: 256) + #"","session_id":""#)
    }

    @Test func `are hashes by a key, or nothing`() {
        let key = Array("0123456789abcdef".utf8)
        let digest = HMACSHA256.authenticate(Array("usr_1".utf8), key: Secret(key))
        let digits = digest.prefix(16).map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
        let text = Self.written("usr_1", "ses_2", .hash, key: Secret(key))
        #expect(text == #"","subject":"\#(digits)","session_id":"ses_2"# && digits.count == 32)
        #expect(text == Self.written("usr_1", "ses_2", .hash, key: Secret(key)))
        #expect(text != Self.written("usr_2", "ses_2", .hash, key: Secret(key)))
        #expect(text != Self.written("usr_1", "ses_2", .hash, key: Secret("another key, 16+")))
        #expect(Self.written("usr_1", "ses_2", .off).isEmpty)
        // Without a key, which configurations cannot have, nothing is shown either.
        #expect(Self.written("usr_1", "ses_2", .hash).isEmpty)
    }

    @Test(arguments: [("usr_1", "ses_2"), ("a\",\"session_id\":\"b", "ses"), ("", "")])
    func `are found again`(subject: String, session: String) throws {
        let text = Array(Self.written(subject, session).utf8)
        let parts = try #require(unsafe text.withUnsafeBufferPointer { unsafe CallerNames.parts(of: $0) })
        #expect(String(decoding: text[parts.session], as: UTF8.self) == session)
        #expect(!text[parts.subject].contains(0x22))
    }

    @Test(arguments: ["", "x", #"","subject":"a"#, #"","subject":"aaaaaaaaaaaaaaaaaaaaaaa"#])
    func `are not found in other texts`(text: String) {
        let bytes = Array(text.utf8)
        let isFound = unsafe bytes.withUnsafeBufferPointer { unsafe CallerNames.parts(of: $0) != nil }
        #expect(!isFound)
    }

    @Test func `come with decisions, cached or not, allowed or not`() {
        var bench = AuthenticatorBench()
        let ada = #"","subject":"tokens:ada","session_id":""#
        func check(_ route: String, _ bench: inout AuthenticatorBench) -> [String] {
            (0..<2).map { _ in
                _ = bench.decide(route, "Bearer t-1", result: AuthenticatorBench.verified(role: "user"))
                return bench.names
            }
        }
        let allowed = check("required", &bench)
        let denied = check("admins", &bench)
        #expect(allowed == [ada, ada] && denied == [ada, ada])
        let condition = bench.rejection?.failure.condition
        #expect(condition == "authorize[0] role")
        _ = bench.decide("optional", nil)
        let anonymous = bench.names
        _ = bench.decide("required", "Bearer t-2", result: .failure(.rejected("stub.bad")))
        let rejected = bench.names
        _ = bench.decide("other", "Bearer o-1", result: AuthenticatorBench.verified("bob", by: "tokens"))
        let foreign = bench.names
        #expect(anonymous.isEmpty && rejected.isEmpty && foreign == #"","subject":"tokens:bob","session_id":""#)
    }

    @Test func `belong to one caller`() {
        var bench = AuthenticatorBench()
        var seen: [String] = []
        for round in 0..<2 {
            for name in ["ada", "bob", "cleo"] {
                _ = bench.decide(
                    "required", "Bearer t-\(name)",
                    result: round == 0 ? AuthenticatorBench.verified(name) : nil)
                seen.append(bench.names)
                let headers = bench.headers
                #expect(headers.contains("tokens:\(name)\r\n") && !headers.contains("session_id"))
            }
        }
        let expected = ["ada", "bob", "cleo"].map { #"","subject":"tokens:\#($0)","session_id":""# }
        #expect(seen == expected + expected)
    }
}
