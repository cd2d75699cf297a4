import MartletCore
import Testing

@testable import MartletHTTP

@Suite struct SignatureBaseTests {
    private static func line(_ component: String, _ request: SignedRequest) -> String {
        let base = SignedRequests.base(component, request)
        guard base.hasPrefix("\(component): "), base.hasSuffix("\n") else { return base }
        return String(base.dropFirst(component.count + 2).dropLast())
    }

    // RFC 9421 §2.2.1 to §2.2.7.
    @Test func `has derived components`() {
        let request = SignedRequests.request(
            "POST", "HTTPS", "WWW.Example.com:443", "/path", query: "param=value&b=%20")
        let expected = [
            ("@method", "POST"), ("@authority", "www.example.com"), ("@scheme", "https"),
            ("@target-uri", "https://www.example.com/path?param=value&b=%20"),
            ("@request-target", "/path?param=value&b=%20"), ("@path", "/path"), ("@query", "?param=value&b=%20"),
        ]
        for (name, value) in expected { #expect(Self.line("\"\(name)\"", request) == value) }
        let bare = SignedRequests.request("get", "http", "a.example:80", "")
        let ofBare = [
            ("@method", "get"), ("@authority", "a.example"), ("@scheme", "http"), ("@target-uri", "http://a.example/"),
            ("@request-target", "/"), ("@path", "/"), ("@query", "?"),
        ]
        for (name, value) in ofBare { #expect(Self.line("\"\(name)\"", bare) == value) }
        let empty = SignedRequests.request(query: "")
        #expect(Self.line("\"@query\"", empty) == "?" && Self.line("\"@request-target\"", empty) == "/v1/orders?")
    }

    @Test(arguments: [
        ("https", "a.example:443", "a.example"), ("http", "a.example:443", "a.example:443"),
        ("https", "a.example:80", "a.example:80"), ("https", "a.example:", "a.example"),
        ("https", "[::1]:443", "[::1]"),
        ("https", "[::1]", "[::1]"), ("https", "A.example:8443", "a.example:8443"), ("https", ":443", ":443"),
        ("https", "a.example:1443", "a.example:1443"),
    ])
    func `has the authority without a default port`(scheme: String, authority: String, expected: String) {
        #expect(Self.line("\"@authority\"", SignedRequests.request("GET", scheme, authority)) == expected)
    }

    // RFC 9421 §2.1.
    @Test func `has fields, combined and without white space around them`() {
        let request = SignedRequests.request(
            "GET", "https", "a", "/",
            [
                ("x-one", "  with  inner \t"), ("x-two", "a"), ("x-empty", ""), ("x-two", " b, c "),
                ("cache-control", "max-age=60"), ("cache-control", "   must-revalidate"),
            ])
        #expect(Self.line("\"x-one\"", request) == "with  inner")
        #expect(Self.line("\"x-two\"", request) == "a, b, c")
        #expect(Self.line("\"x-empty\"", request) == "")
        #expect(Self.line("\"cache-control\"", request) == "max-age=60, must-revalidate")
        #expect(Self.line("\"x-other\"", request) == "signature.component_missing")
        #expect(SignedRequests.base("\"x-two\" \"x-empty\"", request) == "\"x-two\": a, b, c\n\"x-empty\": \n")
        #expect(SignedRequests.base("", request) == "")
    }

    // RFC 9421 §2.1.3.
    @Test func `has fields as byte sequences`() {
        let request = SignedRequests.request(
            "GET", "https", "a", "/",
            [("example-header", "value, with, lots"), ("example-header", "of, commas"), ("x-utf8", "\u{e9}")])
        #expect(Self.line("\"example-header\";bs", request) == ":dmFsdWUsIHdpdGgsIGxvdHM=:, :b2YsIGNvbW1hcw==:")
        #expect(Self.line("\"x-utf8\";bs", request) == ":w6k=:")
        #expect(Self.line("\"x-utf8\"", request) == "signature.component_malformed")
        #expect(Self.line("\"x-none\";bs", request) == "signature.component_missing")
    }

    // RFC 9421 §2.1.2.
    @Test func `has members of dictionaries`() {
        let request = SignedRequests.request(
            "GET", "https", "a", "/",
            [("example-dict", " a=1,  b=2;x=1;y=2, c=(a b   c), d"), ("example-dict", "e=1.50"), ("bad", "a=1, a=2")])
        for (key, value) in [("a", "1"), ("b", "2;x=1;y=2"), ("c", "(a b c)"), ("d", "?1"), ("e", "1.5")] {
            #expect(Self.line("\"example-dict\";key=\"\(key)\"", request) == value)
        }
        #expect(Self.line("\"example-dict\";key=\"f\"", request) == "signature.component_missing")
        #expect(Self.line("\"none\";key=\"f\"", request) == "signature.component_missing")
        #expect(Self.line("\"bad\";key=\"a\"", request) == "signature.component_malformed")
    }

    // RFC 9421 §2.2.8.
    @Test(arguments: [
        ("param=value&foo=bar&baz=batman&qux=", "baz", "batman"), ("param=value&foo=bar&baz=batman&qux=", "qux", ""),
        ("param=value&foo=bar&baz=batman&qux=", "param", "value"),
        ("var=this%20is%20a%20big%0Amultiline%20value", "var", "this%20is%20a%20big%0Amultiline%20value"),
        ("bar=with+plus+whitespace", "bar", "with%20plus%20whitespace"),
        ("fa%C3%A7ade%22%3A%20=something", "fa%C3%A7ade%22%3A%20", "something"),
        ("a=1&&b=2", "b", "2"), ("a", "a", ""), ("a=b=c", "a", "b%3Dc"), ("a=%zz%4", "a", "%25zz%254"),
        ("a=*-._~!", "a", "*-._%7E%21"), ("%61=1", "a", "1"), ("=1", "", "1"),
        ("a=1&a=2", "a", "signature.component_missing"), ("a=1&%61=1", "a", "signature.component_missing"),
        ("a=1", "b", "signature.component_missing"), ("", "a", "signature.component_missing"),
        ("a b=1", "a b", "signature.component_missing"), ("a%20b=1", "a%20b", "1"),
        ("A=1", "a", "signature.component_missing"),
    ])
    func `has query parameters that are there once`(query: String, name: String, expected: String) {
        let request = SignedRequests.request(query: query)
        #expect(Self.line("\"@query-param\";name=\"\(name)\"", request) == expected)
    }

    @Test func `never has a line of the client's choice`() {
        let forged = "a\n\"@method\": DELETE"
        for text in [forged, "a\r\n b", "a\u{0}b", "a\u{7F}", "a\u{e9}", "\u{1}"] {
            let request = SignedRequests.request(text, text, text, text, query: text, [("x", "-\(text)-")])
            for name in ["@method", "@authority", "@scheme", "@target-uri", "@request-target", "@path", "@query", "x"] {
                #expect(Self.line("\"\(name)\"", request) == "signature.component_malformed", "\(name)")
            }
        }
        #expect(Self.line("\"x\"", SignedRequests.request("GET", "https", "a", "/", [("x", "a\tb")])) == "a\tb")
    }

    @Test func `ends with the parameters in their order and their one serialization`() throws {
        let signature = try SignedRequests.signature(
            "(  \"@method\"   \"x\";  key=\"a\" );tag=\"t\"; created=0012;keyid=\"a\\\"b\";nonce=\"n\";alg=\"ed25519\"")
        let base = try signature.base(of: SignedRequests.request("GET", "https", "a", "/", [("x", "a=?1")]))
        #expect(
            String(decoding: base, as: UTF8.self) == """
                "@method": GET
                "x";key="a": ?1
                "@signature-params": ("@method" "x";key="a");tag="t";created=12;keyid="a\\"b";nonce="n";alg="ed25519"
                """)
        #expect(signature.keyID == "a\"b" && signature.nonce == "n" && signature.tag == "t" && signature.created == 12)
    }

    // MARK: Cost

    /// The shortest of some runs, as other work only makes them longer.
    private static func cost(of components: String, _ request: SignedRequest) throws -> Duration {
        let signature = try SignedRequests.signature("(\(components));keyid=\"k\"")
        var shortest = Duration.seconds(60)
        for _ in 0..<5 {
            shortest = min(
                shortest, try ContinuousClock().measure { _ = try signature.base(of: request) })
        }
        return shortest
    }

    @Test func `reads a query once, however many of its parameters are covered`() throws {
        let names = (0..<30).map { "c\($0)" }
        let query = names.map { "\($0)=1" } + Array(repeating: "a", count: 3500)
        let request = SignedRequests.request(query: query.joined(separator: "&"))
        let one = try Self.cost(of: #""@query-param";name="c0""#, request)
        let all = try Self.cost(of: names.map { #""@query-param";name="\#($0)""# }.joined(separator: " "), request)
        #expect(all < one * 4, "one \(one), all \(all)")
    }

    @Test func `parses a dictionary once, however many of its members are covered`() throws {
        let names = (0..<30).map { "c\($0)" }
        let value = (names + (0..<90).map { "d\($0)" }).map { "\($0)=(1 2 3 4 5 6 7 8)" }.joined(separator: ", ")
        let request = SignedRequests.request("GET", "https", "a", "/", [("x-dict", value)])
        let one = try Self.cost(of: #""x-dict";key="c0""#, request)
        let all = try Self.cost(of: names.map { #""x-dict";key="\#($0)""# }.joined(separator: " "), request)
        #expect(all < one * 4, "one \(one), all \(all)")
    }
}
