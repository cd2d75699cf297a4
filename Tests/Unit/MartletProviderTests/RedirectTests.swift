import MartletConfig
import MartletCore
import MartletProvider
import Testing

@Suite struct `Redirect attempts` {
    static let state = "0123456789abcdefABCDEF0123456789"
    static let verifier = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk"
    static let nonce = "n-0S6_WzA2Mj0123456789"

    static func attempt(
        state: String = state, nonce: String = nonce, verifier: String = verifier, uri: String = "https://a.example/cb"
    ) -> RedirectAttempt? {
        RedirectAttempt(
            state: state, nonce: nonce, codeVerifier: Secret(verifier), redirectURI: uri, browser: .standard)
    }

    @Test func `have the challenge of RFC 7636`() throws {
        let attempt = try #require(Self.attempt())
        #expect(attempt.codeChallenge == "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM")
    }

    @Test func `are of values that every site accepts`() {
        let long = String(repeating: "a", count: 128)
        #expect(Self.attempt(state: long, nonce: long, verifier: long) != nil)
        for state in ["", String(Self.state.dropLast()), long + "a", Self.state + "-", Self.state + "é"] {
            #expect(Self.attempt(state: state) == nil, "\(state)")
        }
        for nonce in ["", String(Self.nonce.dropLast()), long + "a", Self.nonce + ".", Self.nonce + " "] {
            #expect(Self.attempt(nonce: nonce) == nil, "\(nonce)")
        }
        for verifier in ["", String(Self.verifier.dropLast()), long + "a", Self.verifier + "+", Self.verifier + "\n"] {
            #expect(Self.attempt(verifier: verifier) == nil, "\(verifier)")
        }
        #expect(Self.attempt(uri: "") == nil)
    }

    @Test func `that are new are different, and of the same form`() throws {
        let attempts = try (0..<3).map { _ in
            try RedirectAttempt.make(redirectURI: "https://a.example/cb", browser: .weChat)
        }
        #expect(Set(attempts.map(\.state)).count == 3 && Set(attempts.map(\.nonce)).count == 3)
        #expect(Set(attempts.map(\.codeChallenge)).count == 3)
        for attempt in attempts {
            let copy = RedirectAttempt(
                state: attempt.state, nonce: attempt.nonce, codeVerifier: attempt.codeVerifier,
                redirectURI: attempt.redirectURI, browser: attempt.browser)
            #expect(copy != nil)
        }
    }

    @Test(arguments: [
        (nil, BrowserKind.standard), ("", .standard), ("Mozilla/5.0 (X11; Linux x86_64) Firefox/140.0", .standard),
        ("Mozilla/5.0 (iPhone) AppleWebKit/605 MicroMessenger/8.0.50(0x1800) NetType/WIFI", .weChat),
    ])
    func `know the kind of a browser`(userAgent: String?, kind: BrowserKind) {
        #expect(BrowserKind(userAgent: userAgent) == kind)
    }

    @Test func `go to URLs with everything encoded`() {
        #expect(AuthorizationURL.make("https://a.example/x", []) == "https://a.example/x")
        #expect(
            AuthorizationURL.make("https://a.example/x", [("a b", "é&=+ #~"), ("c", "")])
                == "https://a.example/x?a%20b=%C3%A9%26%3D%2B%20%23~&c=")
        #expect(AuthorizationURL.make("https://a.example/x?y=1", [("a", "1")]) == "https://a.example/x?y=1&a=1")
    }
}

@Suite struct `Callback fields` {
    static func fields(_ text: String) throws(AuthenticationError) -> CallbackFields {
        try CallbackFields(encoded: Array(text.utf8), sentBy: .query)
    }

    static func code<Value>(_ body: () throws(AuthenticationError) -> Value) -> ErrorCode? {
        do { _ = try body() } catch {
            #expect(error.disposition == .malformed || error.code == .redirectStateMismatch)
            return error.code
        }
        return nil
    }

    @Test func `are read once each, with escapes decoded`() throws {
        let fields = try Self.fields("code=a%2Bb+c&state=\(`Redirect attempts`.state)&empty=&%C3%A9=1&user=%7B%7D")
        #expect(try fields.text("code", maximumBytes: 5) == "a+b c")
        #expect(try fields.secret("code", maximumBytes: 5)?.withBytes { $0 } == Array("a+b c".utf8))
        #expect(try fields.text("empty", maximumBytes: 1) == nil && fields.text("none", maximumBytes: 1) == nil)
        #expect(try fields.text("é", maximumBytes: 1) == nil)
        #expect(try fields.requiredSecret("user", maximumBytes: 2).count == 2)
        #expect(fields.state == `Redirect attempts`.state)
        #expect(!"\(fields)".contains("a+b"))
    }

    @Test(
        arguments: [
            ("code=1&code=2", "redirect.repeated_field"), ("code=1&%63ode=2", "redirect.repeated_field"),
            ("%C3%A9=1&%c3%a9=2", "redirect.repeated_field"), ("code=&code=", "redirect.repeated_field"),
            ("code=%", "redirect.bad_callback"), ("code=%FF", "redirect.bad_callback"),
            ("code=a\nb", "redirect.bad_callback"),
        ] as [(String, ErrorCode)])
    func `are rejected when they are repeated or not decoded`(text: String, code: ErrorCode) {
        #expect(Self.code { () throws(AuthenticationError) in try Self.fields(text) } == code)
    }

    @Test func `are bounded`() throws {
        let most = (0..<CallbackFields.maximumFields).map { "f\($0)=1" }.joined(separator: "&")
        #expect(Self.code { () throws(AuthenticationError) in try Self.fields(most) } == nil)
        #expect(Self.code { () throws(AuthenticationError) in try Self.fields(most + "&x") } == "redirect.bad_callback")
        let long = "a=" + String(repeating: "x", count: CallbackFields.maximumBytes - 2)
        #expect(Self.code { () throws(AuthenticationError) in try Self.fields(long) } == nil)
        #expect(Self.code { () throws(AuthenticationError) in try Self.fields(long + "x") } == "redirect.bad_callback")
        let fields = try Self.fields("code=12345")
        #expect(
            Self.code { () throws(AuthenticationError) in try fields.secret("code", maximumBytes: 4) }
                == "redirect.field_too_long")
        #expect(
            Self.code { () throws(AuthenticationError) in try fields.requiredSecret("id_token", maximumBytes: 4) }
                == "redirect.missing_field")
        #expect(try Self.fields("state=" + String(repeating: "a", count: 129)).state == nil)
        #expect(try Self.fields("state=").state == nil)
    }

    @Test func `belong to the attempt whose state they have`() throws {
        let attempt = try #require(`Redirect attempts`.attempt())
        let flow = RedirectFlow(responseMode: .query, origins: ["https://a.example"])
        func callback(_ text: String, in flow: RedirectFlow = flow) -> ErrorCode? {
            Self.code { () throws(AuthenticationError) in
                try RedirectCallback(try Self.fields(text), of: attempt, in: flow)
            }
        }
        let state = `Redirect attempts`.state
        #expect(callback("state=\(state)") == nil)
        for other in ["state=\(state)0", "state=\(state.lowercased())", "state=", "", "State=\(state)"] {
            #expect(callback(other) == "redirect.state_mismatch", "\(other)")
        }
        let posted = RedirectFlow(responseMode: .formPost, origins: [])
        #expect(callback("state=\(state)", in: posted) == "redirect.bad_method")
        #expect(RedirectFlow.ResponseMode.allCases.map(\.method) == ["GET", "POST"])
    }
}

@Suite struct `Redirecting providers` {
    private static func handle(_ browsers: [BrowserKind]) -> ProviderHandle {
        var door = Door()
        door.browsers = browsers
        return ProviderHandle(door, name: "door")
    }

    @Test func `are those that some browser can use`() {
        #expect(Self.handle([]).redirecting == nil)
        #expect(Self.handle([.weChat]).redirecting != nil)
        #expect(Self.handle([.standard]).redirecting?.failureLimit == .standard)
    }
}

/// A provider that redirects some kinds of browsers.
private struct Door: Redirecting {
    struct Configuration: ConfigurationDecodable {
        init(from reader: inout ConfigurationReader) throws(ConfigurationError) {}
    }

    static let kind: ProviderKind = "door"
    var browsers: [BrowserKind] = []

    init() {}
    init(_ configuration: Configuration, context: ProviderContext) throws(ConfigurationError) {}

    static func validate(_ configuration: Configuration, into diagnostics: inout Diagnostics) {}

    func redirectFlow(in browser: BrowserKind) -> RedirectFlow? {
        browsers.contains(browser) ? RedirectFlow(responseMode: .query, origins: []) : nil
    }

    func authorizationURL(
        for attempt: RedirectAttempt, language: LanguageTag?, until deadline: MonotonicTime
    ) async throws(AuthenticationError) -> String { "https://door.example/" }

    func complete(
        _ callback: RedirectCallback, in context: AuthenticationContext
    ) async throws(AuthenticationError) -> RedirectOutcome { .cancelled }
}
