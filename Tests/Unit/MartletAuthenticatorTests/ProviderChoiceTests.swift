import MartletConfig
import MartletCore
import MartletProvider
import Testing

@testable import MartletAuthenticator

@Suite struct ProviderChoiceTests {
    private static let alpha = Samples.handle("alpha", .bearerJWT(issuers: ["https://alpha", "https://alias"]))
    private static let beta = Samples.handle("beta", .bearerJWT(issuers: ["https://beta"]))
    private static let opaque = Samples.handle("opaque", .bearerPrefix("op_"))
    private static let providers = [
        alpha, beta, opaque, Samples.handle("passwords", .basic), Samples.silent("silent"),
        Samples.handle("several", .basic, .bearerPrefix("sv_"), .bearerJWT(issuers: ["https://several"])),
        Samples.handle("any", .bearerPrefix("")), Samples.handle("none"),
    ]

    private static let maximumTokenBytes = 4096

    private func pick(_ token: String, among candidates: [Int32] = [0, 1, 2]) -> Int32? {
        ProviderChoice.pick(
            Array(token.utf8), among: candidates, of: Self.providers, maximumTokenBytes: Self.maximumTokenBytes)
    }

    /// A compact JWS with this payload.
    private static func token(_ payload: String, header: String = "e30", signature: String = "c2ln") -> String {
        "\(header).\(Base64URL.encode(Array(payload.utf8))).\(signature)"
    }

    // MARK: Candidates

    @Test(arguments: [[], [3], [4], [7], [3, 4, 7]] as [[Int32]])
    func `a provider that verifies no bearer tokens is never chosen`(candidates: [Int32]) {
        #expect(pick("op_1", among: candidates) == nil)
        #expect(pick(Self.token(#"{"iss":"https://alpha"}"#), among: candidates) == nil)
    }

    @Test(arguments: [([2], 2), ([0], 0), ([3, 0], 0), ([4, 2, 7], 2), ([5, 3], 5)] as [([Int32], Int32)])
    func `the only provider that verifies bearer tokens is chosen, whatever the token`(
        candidates: [Int32], expected: Int32
    ) {
        for token in ["", "x", "op_1", Self.token(#"{"iss":"https://beta"}"#)] {
            #expect(pick(token, among: candidates) == expected)
        }
    }

    /// One that sends its tokens to another system.
    private struct Asking: Selective {
        typealias Configuration = VerifierTests.Trusting.Nothing

        static let kind: ProviderKind = "asking"
        static func validate(_ configuration: Configuration, into diagnostics: inout Diagnostics) {}
        init(_ configuration: Configuration, context: ProviderContext) throws(ConfigurationError) {}
        init() {}

        var accepts: [CredentialSource] {
            [.bearerPrefix("as_"), .bearerJWT(issuers: ["https://alpha"]), .header("X-A")]
        }

        func authenticate(
            _ credential: Credential, in context: AuthenticationContext
        ) async throws(AuthenticationError) -> Identity { throw .rejected("asking.not_called") }
    }

    @Test func `a selective provider is asked only about what it claims, also as the only one`() {
        let providers = [ProviderHandle(Asking(), name: "asking"), Samples.handle("header", .header("X-Api-Key"))]
        func pick(_ token: String, among candidates: [Int32] = [0]) -> Int32? {
            ProviderChoice.pick(
                Array(token.utf8), among: candidates, of: providers, maximumTokenBytes: Self.maximumTokenBytes)
        }
        #expect(pick("as_1") == 0 && pick(Self.token(#"{"iss":"https://alpha"}"#)) == 0)
        #expect(pick("x") == nil && pick("") == nil && pick(Self.token(#"{"iss":"https://beta"}"#)) == nil)
        // A header is no bearer token.
        #expect(pick("X-Api-Key", among: [1]) == nil && pick("as_1", among: [1, 0]) == 0)
    }

    @Test func `the first candidate that claims the token is chosen`() {
        #expect(pick("op_1", among: [6, 2]) == 6)
        #expect(pick("op_1", among: [2, 6]) == 2)
        #expect(pick("x", among: [2, 6]) == 6)
        let token = Self.token(#"{"iss":"https://beta"}"#)
        #expect(pick(token, among: [1, 6]) == 1 && pick(token, among: [6, 1]) == 6)
    }

    // MARK: Prefixes

    private static let prefixes: [(String, Int32?)] = [
        ("op_1", 2), ("op_", 2), ("op", nil), ("Op_1", nil), ("xop_1", nil), ("sv_1", 5), ("", nil),
    ]

    @Test(arguments: prefixes)
    func `an opaque token is claimed by its prefix`(token: String, expected: Int32?) {
        #expect(pick(token, among: [0, 2, 5]) == expected)
    }

    // MARK: Issuers

    private static let payloads: [(String, Int32?)] = [
        (#"{"iss":"https://alpha"}"#, 0), (#"{"iss":"https://alias"}"#, 0), (#"{"iss":"https://beta"}"#, 1),
        (#"{"a":[1],"iss":"https://several","sub":"x"}"#, 5),
        // Not the issuer of any candidate.
        (#"{"iss":"https://gamma"}"#, nil), (#"{"iss":"https://alpha/"}"#, nil), (#"{"iss":""}"#, nil),
        // Without an issuer.
        ("{}", nil), (#"{"sub":"https://alpha"}"#, nil), (#"{"iss":["https://alpha"]}"#, nil),
        (#"{"iss":null}"#, nil), (#"["iss","https://alpha"]"#, nil), (#""https://alpha""#, nil),
        // Not a JSON document.
        ("", nil), (#"{"iss":"https://alpha""#, nil), (#"{"iss":"https://alpha"}x"#, nil),
        (#"{"iss":"https://alpha","iss":"https://alpha"}"#, nil),
    ]

    @Test(arguments: payloads)
    func `a JWS is claimed by its issuer`(payload: String, expected: Int32?) {
        #expect(pick(Self.token(payload), among: [0, 1, 5]) == expected)
    }

    @Test func `neither header nor signature matters, but there have to be three parts`() {
        let payload = Base64URL.encode(Array(#"{"iss":"https://beta"}"#.utf8))
        for token in ["e30.\(payload).c2ln", "e30.\(payload).", ".\(payload).", "?.\(payload).?"] {
            #expect(pick(token) == 1, "\(token)")
        }
        let others = [payload, ".\(payload)", "\(payload)..", "..\(payload)", "a.\(payload).b.c", "a.\(payload).b.c.d"]
        for token in others {
            #expect(pick(token) == nil, "\(token)")
        }
    }

    @Test func `the payload has to be strict base64url`() {
        let payload = Base64URL.encode(Array(#"{"iss":"https://beta"}"#.utf8))
        for invalid in ["\(payload)=", " \(payload)", "\(payload)+", String(payload.dropLast())] {
            #expect(pick("e30.\(invalid).c2ln") == nil, "\(invalid)")
        }
    }

    @Test(arguments: [(6, 1), (7, 1), (8, nil)] as [(Int, Int32?)])
    func `the payload may be eight levels deep`(arrays: Int, expected: Int32?) {
        let nested = String(repeating: "[", count: arrays) + "1" + String(repeating: "]", count: arrays)
        #expect(pick(Self.token(#"{"iss":"https://beta","x":\#(nested)}"#)) == expected)
    }

    @Test(arguments: [(4_095, 1), (4_096, 1), (4_097, 0), (70_000, 0)] as [(Int, Int32?)])
    func `a token that is too long is not parsed, and the first provider of tokens rejects it`(
        length: Int, expected: Int32?
    ) {
        let unsigned = Self.token(#"{"iss":"https://beta"}"#, signature: "")
        let token = unsigned + String(repeating: "s", count: length - unsigned.utf8.count)
        #expect(token.utf8.count == length && pick(token) == expected)
    }

    @Test func `an opaque token that is too long has no provider`() {
        #expect(pick(String(repeating: "x", count: 5_000)) == nil)
        #expect(pick("a." + String(repeating: "x", count: 5_000)) == nil)
    }

    @Test func `a long opaque token is claimed by its prefix all the same`() {
        #expect(pick("op_" + String(repeating: "a", count: 20_000)) == 2)
    }
}
