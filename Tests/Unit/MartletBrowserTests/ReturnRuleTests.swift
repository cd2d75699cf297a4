import MartletBrowser
import Testing

private let origins = ["https://www.example.org", "http://localhost:3000"]
private let rule = ReturnRule(origin: "https://app.example.com", otherOrigins: origins, signInPath: "/auth")

/// What is sent as `return_to`, and what becomes of it.
private let spellings = [
    ("/", "/"),
    ("", "/"),
    ("/orders", "/orders"),
    ("/orders/", "/orders/"),
    ("/orders?id=1", "/orders?id=1"),
    ("/orders?id=1&next=/x", "/orders?id=1&next=/x"),
    ("/a/b/c", "/a/b/c"),
    ("/a//b", "/a//b"),
    ("/?q", "/?q"),
    ("/a?u=https://evil.example", "/a?u=https://evil.example"),
    ("/a?u=//evil.example", "/a?u=//evil.example"),
    ("/a?x=..", "/a?x=.."),
    ("/a?/../b", "/a?/../b"),
    ("/...", "/..."),
    ("/.well-known/x", "/.well-known/x"),
    ("/a/.b", "/a/.b"),
    ("/a..b", "/a..b"),
    ("/a%20b", "/a%20b"),
    ("/a b", "/a%20b"),
    ("/caf\u{E9}", "/caf%C3%A9"),
    ("/%E6%96%87", "/%E6%96%87"),
    ("/\u{6587}?q=\u{6587}", "/%E6%96%87?q=%E6%96%87"),
    ("/a%2Fb", "/a%2Fb"),
    ("/a%252Fb", "/a%252Fb"),
    ("/100%25", "/100%25"),
    ("/a;b=1", "/a;b=1"),
    ("/a@b", "/a@b"),
    ("/a:b", "/a:b"),
    ("/https://evil.example", "/https://evil.example"),
    ("/javascript:alert(1)", "/javascript:alert(1)"),
    ("/a\"b<c>", "/a%22b%3Cc%3E"),
    ("/a?b=\\", "/a?b=%5C"),
    ("/a?100%", "/a?100%"),
    ("/a?b=%0d%0a", "/a?b=%0d%0a"),
    ("/a#b", "/a"),
    ("/a?b#c", "/a?b"),
    ("#a", "/"),
    ("/#//evil.example", "/"),
    ("/a#\\", "/a"),
    ("//evil.example", "/"),
    ("///evil.example", "/"),
    ("////evil.example", "/"),
    ("/\\evil.example", "/"),
    ("\\evil.example", "/"),
    ("\\\\evil.example", "/"),
    ("/\\/evil.example", "/"),
    ("//\\evil.example", "/"),
    ("/a\\b", "/"),
    ("/a\\..\\b", "/"),
    ("//", "/"),
    ("/\\", "/"),
    ("/%2Fevil.example", "/"),
    ("/%2fevil.example", "/"),
    ("/%5Cevil.example", "/"),
    ("/%5cevil.example", "/"),
    ("/%252Fevil.example", "/"),
    ("/%25252fevil.example", "/"),
    ("%2F%2Fevil.example", "/"),
    ("%2Forders", "/"),
    ("/a%5Cb", "/"),
    ("/\t/evil.example", "/"),
    ("/\n/evil.example", "/"),
    ("/\r/evil.example", "/"),
    ("/%09/evil.example", "/"),
    ("/%0a/evil.example", "/"),
    ("/%0D/evil.example", "/"),
    ("/%00", "/"),
    ("/a\0b", "/"),
    ("/a%7F", "/"),
    ("/a\u{7F}", "/"),
    ("/%250a", "/"),
    ("\t/a", "/"),
    (" /a", "/"),
    (" //evil.example", "/"),
    ("/ /evil.example", "/%20/evil.example"),
    ("/a\r\nSet-Cookie: x", "/"),
    ("/%C2%85", "/"),
    ("/a?b\nc", "/"),
    ("/.", "/"),
    ("/..", "/"),
    ("/./a", "/"),
    ("/../a", "/"),
    ("/a/..", "/"),
    ("/a/../b", "/"),
    ("/a/./b", "/"),
    ("/.//evil.example", "/"),
    ("/..//evil.example", "/"),
    ("/%2e", "/"),
    ("/%2E%2E/a", "/"),
    ("/.%2e/a", "/"),
    ("/%2e./a", "/"),
    ("/a/%252e%252e/b", "/"),
    ("/..%2fevil.example", "/"),
    ("/a%2f..%2fb", "/"),
    ("/..;/a", "/"),
    ("/.;x/a", "/"),
    ("/a/..;x=1/b", "/"),
    ("/%", "/"),
    ("/%2", "/"),
    ("/%zz", "/"),
    ("/%ff", "/"),
    ("/%c0%af", "/"),
    ("/%c0%ae%c0%ae/", "/"),
    ("/%ed%a0%80", "/"),
    ("/\u{FF0F}evil.example", "/"),
    ("/%EF%BC%8Fevil.example", "/"),
    ("/\u{FF0E}\u{FF0E}/", "/"),
    ("/\u{2025}/a", "/"),
    ("/%2525252525252525", "/"),
    ("https://app.example.com", "/"),
    ("https://app.example.com/", "/"),
    ("https://app.example.com/orders?id=1#x", "/orders?id=1"),
    ("https://app.example.com?x=1", "/?x=1"),
    ("https://app.example.com#x", "/"),
    ("https://app.example.com//evil.example", "/"),
    ("https://app.example.com/\\evil.example", "/"),
    ("https://app.example.com\\evil.example", "/"),
    ("https://app.example.com@evil.example", "/"),
    ("https://app.example.com:443@evil.example/", "/"),
    ("https://app.example.com.evil.example/", "/"),
    ("https://app.example.com:444/a", "/"),
    ("https://app.example.com/../a", "/"),
    ("https://user@app.example.com/a", "/"),
    ("http://app.example.com/a", "/"),
    ("https:/app.example.com/a", "/"),
    ("https:app.example.com", "/"),
    ("https:///app.example.com/a", "/"),
    ("HTTPS://app.example.com/a", "/"),
    ("https://www.example.org", "https://www.example.org/"),
    ("https://www.example.org/a?b#c", "https://www.example.org/a?b"),
    ("https://www.example.org?b", "https://www.example.org/?b"),
    ("http://localhost:3000/a", "http://localhost:3000/a"),
    ("https://www.example.org//a", "/"),
    ("https://www.example.org/..", "/"),
    ("https://www.example.org:8443/a", "/"),
    ("https://www.example.org.evil.example/a", "/"),
    ("https://www.example.org@evil.example/a", "/"),
    ("https://WWW.example.org/a", "/"),
    ("http://www.example.org/a", "/"),
    ("https://sub.www.example.org/a", "/"),
    ("http://localhost:30000/a", "/"),
    ("http://localhost/a", "/"),
    ("https://www.example.org/auth/sign-in", "/"),
    ("https://evil.example", "/"),
    ("javascript:alert(1)", "/"),
    ("data:text/html,x", "/"),
    ("file:///etc/passwd", "/"),
    ("orders", "/"),
    ("?a", "/"),
    ("./a", "/"),
    ("../a", "/"),
    (".", "/"),
    ("mailto:a@b.cd", "/"),
    ("com.example.app:/cb", "/"),
    ("null", "/"),
    ("/auth/account", "/auth/account"),
    ("/auth/account?tab=sessions", "/auth/account?tab=sessions"),
    ("/auth", "/auth"),
    ("/auth/sign-inx", "/auth/sign-inx"),
    ("/author", "/author"),
    ("/x/auth/sign-in", "/x/auth/sign-in"),
    ("/a?r=/auth/sign-in", "/a?r=/auth/sign-in"),
    ("/auth/sign-in", "/"),
    ("/auth/sign-in?return_to=/auth/sign-in", "/"),
    ("/auth/sign-in/", "/"),
    ("/auth/start/apple", "/"),
    ("/auth/start", "/"),
    ("/auth/callback/apple?code=1", "/"),
    ("/auth/sign-out", "/"),
    ("/AUTH/Sign-In", "/"),
    ("/auth/%73ign-in", "/"),
    ("/%61uth/sign-in", "/"),
    ("/auth%2Fsign-in", "/"),
    ("/auth//sign-in", "/"),
    ("/auth///sign-out//", "/"),
    ("/auth/./sign-in", "/"),
    ("/x/../auth/sign-in", "/"),
    ("/auth/sign%2Din", "/"),
    ("/auth/%2573ign-in", "/"),
    ("/auth;x/sign-in", "/"),
    ("/auth/sign-in;x=1", "/"),
    ("/auth/sign-in%3Fx", "/"),
    ("/auth/sign-in%23", "/"),
    ("/auth/SIGN-OUT?all=true", "/"),
    ("https://app.example.com/auth/sign-out", "/"),
    ("/auth/start%2Fapple", "/"),
]

@Suite struct `A return target` {
    @Test(arguments: spellings)
    func `is a path of this gateway, a page of a listed origin, or the path /`(_ sent: String, _ expected: String) {
        #expect(rule.target(of: sent).text == expected)
    }

    @Test(arguments: spellings)
    func `is where a browser goes`(_ sent: String, _ expected: String) {
        let target = rule.target(of: sent)
        let origin = BrowserURL.origin(of: Array(target.text.utf8), on: "https://app.example.com")
        #expect(origin == "https://app.example.com" || origins.contains(origin ?? ""))
        #expect(target.isLocal == (origin == "https://app.example.com"))
        // Checked again, as after a change of the configuration, it stays what it is.
        #expect(rule.target(of: target.text) == target)
    }

    @Test func `is absent`() { #expect(rule.target(of: nil) == .home) }

    @Test func `has at most 2 KiB, as it was sent and as it is written`() {
        let longest = "/" + String(repeating: "a", count: 2047)
        #expect(rule.target(of: longest).text == longest)
        #expect(rule.target(of: longest + "a") == .home)
        #expect(rule.target(of: longest + "#") == .home)
        #expect(rule.target(of: "/" + String(repeating: " ", count: 682)).text.utf8.count == 2047)
        #expect(rule.target(of: "/" + String(repeating: " ", count: 683)) == .home)
    }

    @Test func `may be bytes of another encoding only in the query`() {
        #expect(rule.target(ofBytes: [0x2F, 0xE9]) == .home)
        #expect(rule.target(ofBytes: Array("/a?b=".utf8) + [0xE9]).text == "/a?b=%E9")
    }

    @Test func `is excluded below other paths of the endpoints`() {
        let other = ReturnRule(origin: "http://127.0.0.1:8080", otherOrigins: [], signInPath: "/v1/Login")
        for path in ["/v1/login/start/apple", "/V1//Login/sign-in", "/v1/%4Cogin/callback", "/v1%2flogin%2fsign-out"] {
            #expect(other.target(of: path) == .home, "\(path)")
        }
        for path in ["/auth/sign-in", "/v1/login/account", "/login/sign-in", "/v1/login"] {
            #expect(other.target(of: path).text == path)
        }
    }

    @Test func `is an argument of the sign-in page`() {
        #expect(rule.signInLocation(returningTo: .home) == "/auth/sign-in")
        let target = rule.target(of: "/orders?a=1&b=%2F+c")
        #expect(
            rule.signInLocation(returningTo: target) == "/auth/sign-in?return_to=/orders%3Fa%3D1%26b%3D%252F%2Bc")
    }
}

@Suite struct `The resolver of these tests` {
    @Test(
        arguments: [
            ("/a", "https://h.example"), ("//evil.example/a", "https://evil.example"),
            ("/\\evil.example", "https://evil.example"), ("\\\\evil.example", "https://evil.example"),
            ("/\t/evil.example", "https://evil.example"), (" \n//evil.example", "https://evil.example"),
            ("https:evil.example", "https://h.example"), ("https:/evil.example", "https://h.example"),
            ("https:\\\\evil.example", "https://evil.example"), ("http:evil.example", "http://evil.example"),
            ("https://h.example@evil.example", "https://evil.example"), ("https://H.example:443/", "https://h.example"),
            ("https://%68.example", "https://h.example"), ("a", "https://h.example"), ("javascript:a", nil),
        ] as [(String, String?)])
    func `does what browsers do`(_ text: String, _ expected: String?) {
        #expect(BrowserURL.origin(of: Array(text.utf8), on: "https://h.example") == expected)
    }
}
