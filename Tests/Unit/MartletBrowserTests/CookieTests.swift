import MartletCore
import MartletHTTP
import Testing

@testable import MartletBrowser

private let cookies = GatewayCookies(
    name: "__Host-martlet", isSecure: true, sameSite: .lax, maximumAge: .seconds(30 * 86_400))

/// The gateway's cookies in a request with these `Cookie` fields; what is wrong with others, and their names.
private func found(_ fields: [String], _ cookies: GatewayCookies = cookies) -> String {
    let bytes = head(fields.map { "Cookie: \($0)" })
    var parser = RequestParser(maximumHeadBytes: 16384)
    var parsed = RequestHead(maximumFields: 20)
    guard case .complete = parser.parse(bytes.span, into: &parsed) else { return "no head" }
    let found = cookies.find(in: bytes.span, parsed.fields)
    func text(_ range: ByteRange) -> String { String(decoding: bytes[range.bounds], as: UTF8.self) }
    let values =
        [found.session.map { "session=\(text($0))" }].compactMap(\.self)
        + found.starts.map { "\(text($0.name).suffix(3))=\(text($0.value))" }
        + [found.form.map { "form=\(text($0))" }, found.problem?.code.rawValue].compactMap(\.self)
        + found.unusable.map { "not \($0.dropFirst(14))" }
    #expect(found.isEmpty == values.isEmpty)
    let plain = cookies.findPlain(in: bytes.span, parsed.fields)
    #expect((plain != nil) == (found.unusable.isEmpty && found.starts.count <= 1))
    if let plain { #expect(plain.session == found.session && plain.isEmpty == found.isEmpty) }
    return values.joined(separator: " ")
}

/// What an upstream gets of a `Cookie` field; `nil` if it is dropped.
private func forwarded(_ value: String) -> String? {
    let bytes = Array(value.utf8)
    var ranges = ForwardedCookies(ByteRange(from: 0, to: bytes.count))
    var text: [UInt8] = []
    var hasRange = false
    while let range = ranges.next(bytes.span, without: cookies) {
        hasRange = true
        text += bytes[range.bounds]
    }
    return hasRange ? String(decoding: text, as: UTF8.self) : nil
}

@Suite struct `The gateway's cookies in a request` {
    @Test(
        arguments: [
            ([], ""), (["a=1"], ""), (["__Host-martlet=x"], "session=x"), (["a=1; __Host-martlet=x; b=2"], "session=x"),
            (["a=1", "__Host-martlet=x"], "session=x"), (["a=1;__Host-martlet=x;b=2"], "session=x"),
            (
                ["__Host-martlet-start-0123456789abcdef=s; __Host-martlet=x; __Host-martlet-form=f"],
                "session=x def=s form=f"
            ),
            (
                ["__Host-martlet-start-0123456789abcdef=s", "__Host-martlet-start-0123456789abcd00=t"],
                "def=s d00=t"
            ),
            // No attempt has one any more.
            (["__Host-martlet-start=s"], "not -start"),
            (["__Host-martlet-start-0=s; __Host-martlet-start-0123456789ABCDEF=t"], ""),
            (["  __Host-martlet=x  ;"], "session=x"), (["__Host-martlet="], "not "),
            (["__Host-martlet=a=b"], "session=a=b"),
            // Names are compared byte by byte.
            (["__host-martlet=x; __HOST-MARTLET=y"], ""), (["martlet=x"], ""), (["__Host-martlet2=x"], ""),
            (["__Host-martlet-=x; __Host-martlet-starts=y; __Host-martlet-Start=z"], ""), (["x__Host-martlet=x"], ""),
            (["__Host-martle=x"], ""), (["a=__Host-martlet=x"], ""), (["=__Host-martlet=x"], ""),
            // A cookie without a name is sent as its value.
            (["__Host-martlet"], ""), (["a; __Host-martlet; b"], ""),
        ] as [([String], String)])
    func `are found by their exact names`(_ fields: [String], _ expected: String) {
        #expect(found(fields) == expected)
    }

    @Test(
        arguments: [
            (["__Host-martlet=x; __Host-martlet=y"], "browser.cookie_repeated"),
            (["__Host-martlet=x", "a=1; __Host-martlet=x"], "browser.cookie_repeated"),
            (["__Host-martlet=x; __Host-martlet=y; __Host-martlet=z"], "browser.cookie_repeated"),
            (["__Host-martlet=; __Host-martlet=y"], "browser.cookie_repeated"),
            (["__Host-martlet=\"x\"; __Host-martlet=y"], "browser.cookie_malformed"),
            (["__Host-martlet=\"x\""], "browser.cookie_malformed"),
            (["__Host-martlet=x y"], "browser.cookie_malformed"),
            (["__Host-martlet=x,y"], "browser.cookie_malformed"), (["__Host-martlet=x\\y"], "browser.cookie_malformed"),
            (["__Host-martlet=\u{E9}"], "browser.cookie_malformed"),
            (["__Host-martlet = x"], "browser.cookie_malformed"),
            (["__Host-martlet =x"], "browser.cookie_malformed"), (["__Host-martlet= x"], "browser.cookie_malformed"),
            (["__Host-martlet=x\ty"], "browser.cookie_malformed"),
        ] as [([String], String)])
    func `do not count if they are ambiguous, and are to be deleted`(_ fields: [String], _ code: String) {
        #expect(found(fields) == "\(code) not ")
        let form = fields.map { $0.replacing("__Host-martlet", with: "__Host-martlet-form") }
        #expect(found(form + ["__Host-martlet=s"]) == "session=s \(code) not -form")
    }

    @Test func `are deleted as they are set`() {
        for (name, site) in [
            ("__Host-martlet", "Lax"), ("__Host-martlet-form", "Lax"), ("__Host-martlet-start", "None"),
            ("__Host-martlet-start-0123456789abcdef", "None"),
        ] {
            #expect(
                cookies.deletion(of: name) == "\(name)=; Path=/; Secure; HttpOnly; SameSite=\(site); Max-Age=0")
        }
    }

    @Test func `do not count if they are too long`() {
        let longest = String(repeating: "x", count: 3900)
        #expect(found(["__Host-martlet=\(longest)"]) == "session=\(longest)")
        #expect(found(["__Host-martlet=\(longest)x"]) == "browser.cookie_too_long not ")
        #expect(found(["other=\(longest)x"]) == "")
    }

    @Test(
        arguments: [
            ("__Host-martlet=x", nil), ("a=1; __Host-martlet=x", "a=1"), ("__Host-martlet=x; a=1", "a=1"),
            ("a=1; __Host-martlet=x; b=2", "a=1; b=2"), ("a=1;__Host-martlet=x;b=2", "a=1;b=2"),
            ("__Host-martlet=x; a=1; b=2; __Host-martlet-start=s; c=3; __Host-martlet-form=f", "a=1; b=2; c=3"),
            ("__Host-martlet=x; __Host-martlet-start=s; __Host-martlet-start-0123456789abcdef=s", nil),
            ("__Host-martlet=x; ", nil),
            ("; __Host-martlet=x;;", nil),
            ("a=1; a=2; __Host-martlet=x; a=1", "a=1; a=2; a=1"), ("a=\"1, 2\"; __Host-martlet=x", "a=\"1, 2\""),
            ("a; __Host-martlet=x; =b", "a; =b"), ("a = 1 ;  b=2; __Host-martlet=x", "a = 1 ;  b=2"),
            ("a=1; b=2", "a=1; b=2"), ("a=", "a="), ("", nil),
            ("__host-martlet=y; __Host-martlet=x; b=\u{E9}\\", "__host-martlet=y; b=\u{E9}\\"),
        ] as [(String, String?)])
    func `never reach an upstream, and others stay as they are`(_ value: String, _ expected: String?) {
        #expect(forwarded(value) == expected)
    }

    @Test(arguments: [
        ("__Host-martlet=x; Path=/; Secure", true), ("__Host-martlet-start=; Max-Age=0", true),
        ("__Host-martlet-form=x", true), ("__Host-martlet-start-0123456789abcdef=x", true),
        ("__Host-martlet-starts=x", false), ("__HOST-Martlet=x", true), ("  __Host-martlet =x", true),
        ("__Host-martlet", true), ("=__Host-martlet=x", true), (" = __host-martlet-start=x; Path=/", true),
        ("=__Host-martlet", true), ("session=x", false), ("__Host-session=x", false), ("__Host-martlet2=x", false),
        ("a=__Host-martlet=x", false), ("a=1; __Host-martlet=x", false), ("", false), ("=", false), ("=a=1", false),
        ("martlet=x", false),
    ])
    func `are not set by an upstream`(_ value: String, _ isSet: Bool) {
        let bytes = Array(value.utf8)
        #expect(cookies.areSet(by: ByteRange(from: 0, to: bytes.count), in: bytes.span) == isSet)
    }

    @Test func `have names of their own on loopback`() {
        let plain = GatewayCookies(name: "martlet", isSecure: false, sameSite: .lax, maximumAge: .zero)
        #expect(found(["martlet=x; martlet-form=f; __Host-martlet=y"], plain) == "session=x form=f")
    }
}

@Suite struct `The cookies that the gateway sets` {
    @Test func `are of this host alone and hidden from scripts`() throws {
        #expect(
            try cookies.session.text("abc")
                == "__Host-martlet=abc; Path=/; Secure; HttpOnly; SameSite=Lax; Max-Age=2592000")
        #expect(
            try cookies.start.text("abc")
                == "__Host-martlet-start=abc; Path=/; Secure; HttpOnly; SameSite=None; Max-Age=600")
        #expect(try cookies.form.text("abc") == "__Host-martlet-form=abc; Path=/; Secure; HttpOnly; SameSite=Lax")
    }

    @Test func `are deleted with the attributes that they were set with`() {
        #expect(cookies.session.deletion == "__Host-martlet=; Path=/; Secure; HttpOnly; SameSite=Lax; Max-Age=0")
        #expect(cookies.start.deletion == "__Host-martlet-start=; Path=/; Secure; HttpOnly; SameSite=None; Max-Age=0")
    }

    @Test func `end with the browser where their age is zero, and are sent without https on loopback`() throws {
        let plain = GatewayCookies(name: "martlet", isSecure: false, sameSite: .strict, maximumAge: .zero)
        #expect(try plain.session.text("abc") == "martlet=abc; Path=/; HttpOnly; SameSite=Strict")
        #expect(try plain.start.text("abc") == "martlet-start=abc; Path=/; HttpOnly; SameSite=Lax; Max-Age=600")
        #expect(plain.session.deletion == "martlet=; Path=/; HttpOnly; SameSite=Strict; Max-Age=0")
    }

    @Test(arguments: ["a;b", "a b", "a\r\nb", "a\"", "a,b", "a\\", "\u{E9}", "a\0"])
    func `have no other characters`(_ value: String) {
        #expect(throws: BrowserError(.browserCookieMalformed, "")) { try cookies.session.text(value) }
    }

    @Test func `fit into what every browser accepts`() throws {
        let longest = GatewayCookies(
            name: String(repeating: "n", count: 64), isSecure: true, sameSite: .strict, maximumAge: .seconds(34_560_000)
        )
        let value = String(repeating: "x", count: 3900)
        for cookie in [longest.session, longest.start("0123456789abcdef"), longest.form] {
            #expect(try cookie.text(value).utf8.count <= 4096)
            #expect(throws: BrowserError(.browserCookieTooLong, "")) { try cookie.text(value + "x") }
        }
    }
}
