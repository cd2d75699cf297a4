import MartletAuthenticator
import MartletBrowser
import MartletCore
import MartletDecisionsTesting
import MartletHTTP
import MartletProvider
import MartletResponder
import Testing

@testable import MartletDecisions

/// What the request path does for browsers.
@Suite struct BrowserRulesTests {
    private static let deletion = "__Host-martlet=; Path=/; Secure; HttpOnly; SameSite=Lax; Max-Age=0"

    private struct Parsed: ~Copyable {
        let bytes: [UInt8]
        let head: RequestHead
    }

    private func parse(_ method: String, _ fields: [String]) throws -> Parsed {
        let lines = ["\(method) /a/b?c=1 HTTP/1.1", "Host: app.example.com"] + fields + ["", ""]
        let bytes = Array(lines.joined(separator: "\r\n").utf8)
        var parser = RequestParser(maximumHeadBytes: 16_384)
        var head = RequestHead(maximumFields: 50)
        guard case .complete = parser.parse(bytes.span, into: &head) else { throw Unparsed() }
        return Parsed(bytes: bytes, head: head)
    }

    private struct Unparsed: Error {}

    /// The session cookie that is used, `-` for none, or status and reason of the error.
    private func use(
        _ fields: [String], method: String = "GET", opensWebSocket: Bool = false, hasAuthorization: Bool = false,
        takesCredentials: Bool = true, namedOrigin: [String] = []
    ) throws -> String {
        let parsed = try parse(method, fields)
        let found = BrowserRules.sample.cookies.find(in: parsed.bytes.span, parsed.head.fields)
        let request = BrowserRules.Request(
            method: parsed.head.method, opensWebSocket: opensWebSocket, hasAuthorization: hasAuthorization,
            takesCredentials: takesCredentials)
        do throws(Failure) {
            switch try BrowserRules.sample.use(
                of: found.session, parsed.bytes.span, parsed.head.fields, by: request, from: namedOrigin)
            {
            case .none: return "-"
            case .session(let range): return String(decoding: parsed.bytes[range.bounds], as: UTF8.self)
            }
        } catch {
            return "\(error.status) \(error.code) \(error.reason)"
        }
    }

    private static let cookie = "Cookie: a=1; __Host-martlet=mct_x; b=2"

    @Test func `a session cookie is a credential where the route takes one`() throws {
        #expect(try use([]) == "-")
        #expect(try use(["Cookie: a=1"]) == "-")
        #expect(try use([Self.cookie]) == "mct_x")
        #expect(try use(["Cookie: __Host-martlet="]) == "-", "a cleared one")
        #expect(try use([Self.cookie], takesCredentials: false) == "-")
        #expect(try use([Self.cookie], method: "POST", takesCredentials: false) == "-", "nothing that could be misused")
    }

    @Test func `an origin that the route names is accepted`() throws {
        let fields = [Self.cookie, "Origin: https://web.example.com"]
        #expect(try use(fields, method: "POST") == "403 cross_site auth.cross_site")
        for (method, opensWebSocket) in [("POST", false), ("GET", true)] {
            let used = try use(
                fields, method: method, opensWebSocket: opensWebSocket, namedOrigin: ["https://web.example.com"])
            #expect(used == "mct_x")
        }
        #expect(try use(fields, method: "POST", namedOrigin: ["https://web.example.org"]) != "mct_x")
    }

    @Test func `a cookie beside another credential is an error`() throws {
        #expect(try use([Self.cookie], hasAuthorization: true) == "400 request_invalid auth.two_credentials")
        #expect(try use(["Cookie: a=1"], hasAuthorization: true) == "-")
        #expect(try use([Self.cookie], hasAuthorization: true, takesCredentials: false) == "-")
    }

    @Test func `a request that another site may have caused is rejected`() throws {
        let rejected = "403 cross_site auth.cross_site"
        #expect(try use([Self.cookie], method: "POST") == rejected)
        #expect(try use([Self.cookie, "Sec-Fetch-Site: cross-site"], method: "DELETE") == rejected)
        #expect(try use([Self.cookie, "Origin: https://evil.example"], method: "PUT") == rejected)
        #expect(try use([Self.cookie, "Sec-Fetch-Site: same-origin"], method: "POST") == "mct_x")
        #expect(try use([Self.cookie, "Origin: https://app.example.com"], method: "POST") == "mct_x")
        #expect(try use([Self.cookie, "Sec-Fetch-Site: cross-site"]) == "mct_x")
        #expect(try use([Self.cookie, "Sec-Fetch-Site: same-origin"], opensWebSocket: true) == rejected)
        #expect(try use([Self.cookie, "Origin: https://app.example.com"], opensWebSocket: true) == "mct_x")
        #expect(
            try use([Self.cookie, "Origin: null", "Origin: null"], method: "POST")
                == "400 request_invalid browser.origin_repeated")
        #expect(try use(["Cookie: a=1"], method: "POST") == "-")
    }

    /// What a rejected navigation gets: of another response status, location and cookie.
    private func response(
        _ target: String, _ rejection: Rejection? = nil, route: Int = 0, isCookie: Bool = false,
        isOptional: Bool = false, check: CheckMarks = []
    ) -> String {
        let unknown: Rejection =
            isCookie
            ? Rejection(
                .authentication(.rejected("session.unknown")),
                .verification(
                    .rejected("session.unknown"),
                    CredentialLocation(form: .cookie, range: ByteRange(start: 0, count: 0), route: 0)))
            : Rejection(.credentialMissing)
        let response = BrowserRules.sample.response(
            to: rejection ?? unknown, isCookie: isCookie, isOptional: isOptional, on: route,
            target: Array(target.utf8), check: check)
        switch response {
        case .rejection: return "rejection"
        case .denial: return "denial"
        case .anonymous: return "anonymous"
        case .failure(let failure): return Self.shown(failure)
        }
    }

    private static func shown(_ failure: Failure) -> String {
        var out = ByteBuffer()
        var date = ByteBuffer()
        var requestID = ByteBuffer()
        date.append("now")
        requestID.append("r1")
        unsafe failure.write(
            into: &out, requestID: requestID.bytes, date: date, close: false)
        let lines = String(decoding: out.array, as: UTF8.self).split(separator: "\r\n" as Character)
        #expect(lines.contains("Cache-Control: no-store"))
        let shown = lines.filter { $0.hasPrefix("Location") || $0.hasPrefix("Set-Cookie") }
        return (["\(failure.status) \(failure.code)"] + shown).joined(separator: " | ")
    }

    @Test func `a navigation is redirected to the sign-in page, and comes back`() {
        let found = "302 sign_in_required"
        #expect(response("/a/b?c=1") == "\(found) | Location: /auth/sign-in?return_to=/a/b%3Fc%3D1")
        #expect(response("/") == "\(found) | Location: /auth/sign-in")
        #expect(response("//evil.example/") == "\(found) | Location: /auth/sign-in")
        #expect(
            response("/a", isCookie: true)
                == "\(found) | Set-Cookie: \(Self.deletion) | Location: /auth/sign-in?return_to=/a")
    }

    @Test func `a check says whether it is redirected, whatever the route says`() {
        #expect(response("/", check: .isCheck) == "401 credential_missing")
        #expect(
            response("/", route: 1, check: [.isCheck, .redirectsBrowsers])
                == "302 sign_in_required | Location: /auth/sign-in")
    }

    @Test func `on other routes it is rejected, and an ended cookie is deleted all the same`() {
        #expect(response("/a", route: 1) == "401 credential_missing")
        #expect(response("/a", route: 2) == "401 credential_missing")
        #expect(response("/a", route: -1) == "401 credential_missing")
        #expect(
            response("/a", route: 1, isCookie: true) == "401 credential_invalid | Set-Cookie: \(Self.deletion)")
    }

    @Test func `an ended session is none where the route needs none`() {
        #expect(response("/a", isCookie: true, isOptional: true) == "anonymous")
        #expect(response("/a", isOptional: true) == "302 sign_in_required | Location: /auth/sign-in?return_to=/a")
    }

    @Test func `who is signed in and may not see a page gets one that says so`() {
        let denied = Rejection(.noRoute, .policy)
        #expect(response("/a", denied, isCookie: true) == "denial")
        #expect(response("/a", denied) == "rejection", "another credential")
        #expect(response("/a", denied, isCookie: true, check: .isCheck) == "rejection", "a proxy sends it")
        #expect(response("/a", Rejection(.malformed("auth.two_credentials"))) == "rejection")
    }

    @Test(arguments: [
        ("Set-Cookie: a=1", true), ("SET-COOKIE: __Host-martlet=x", false), ("set-cookie:__Host-martlet=x", false),
        ("Set-Cookie: __host-martlet=x; Path=/", false), ("Set-Cookie: __Host-martlet-start=x", false),
        ("Set-Cookie: __Host-martlet2=x", true), ("Set-Cookie:", true), ("Set-Cookies: __Host-martlet=x", true),
        ("X: __Host-martlet=x", true), ("Set-Cookie: =__Host-martlet=x", false),
    ])
    func `an upstream does not set the gateway's cookies`(line: String, isKept: Bool) {
        let head = { (lines: [String]) in
            Array((["HTTP/1.1 200 OK"] + lines + ["", ""]).joined(separator: "\r\n").utf8)
        }
        let kept = BrowserRules.sample.withoutOwnCookies(head(["A: 1", line, "Set-Cookie: b=2"]))
        #expect(kept == head(isKept ? ["A: 1", line, "Set-Cookie: b=2"] : ["A: 1", "Set-Cookie: b=2"]))
    }
}
