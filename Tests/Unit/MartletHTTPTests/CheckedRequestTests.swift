import MartletCore
import Testing

@testable import MartletHTTP

/// What the head of a check says about the request that it is for.
@Suite struct CheckedRequestTests {
    /// `METHOD authority target scheme`, or the reason with its field.
    private static func read(_ line: String, _ fields: [String]) -> String {
        let text = ([line + " HTTP/1.1"] + fields + ["", ""]).joined(separator: "\r\n")
        let bytes = Array(text.utf8)
        var head = RequestHead(maximumFields: 50)
        var parser = RequestParser(maximumHeadBytes: 32 * 1024)
        guard case .complete = parser.parse(bytes.span, into: &head) else { return "unparsed" }
        do throws(CheckError) {
            let checked = try CheckedRequest(describedBy: head, bytes.span, at: Array("/auth/check".utf8).span)
            head.describe(checked, in: bytes.span)
        } catch {
            return [error.code.rawValue, error.field?.name ?? ""].joined(separator: " ")
        }
        func part(_ range: ByteRange) -> String { String(decoding: bytes[range.bounds], as: UTF8.self) }
        return "\(part(head.methodText)) \(part(head.authority)) \(part(head.path))|\(part(head.query))"
    }

    private static let forwarded = [
        "Host: martlet:8080", "X-Forwarded-Method: POST", "X-Forwarded-Proto: https",
        "X-Forwarded-Host: api.example.com", "X-Forwarded-Uri: /v1/orders?x=1",
    ]

    @Test(arguments: [
        ("GET /auth/check", forwarded, "POST api.example.com /v1/orders|?x=1"),
        ("GET /auth/check?x=1", forwarded, "POST api.example.com /v1/orders|?x=1"),
        ("GET /auth/check", ["Host: api.test", "X-Original-URI: /a?b?c"], "GET api.test /a|?b?c"),
        ("GET /auth/check", ["Host: m", "X-Original-URI: /a", "X-Forwarded-Host: h:8443"], "GET h:8443 /a|"),
        (
            "GET /auth/check", ["Host: m", "X-Original-URL: https://h.test/a?b", "X-Original-Method: PUT"],
            "PUT h.test /a|?b"
        ),
        ("GET /auth/check", ["Host: m", "X-Original-URL: http://h.test"], "GET h.test /|"),
        ("GET /auth/check", ["Host: m", "X-Original-URL: WSS://h.test?b"], "GET h.test /|?b"),
        ("PATCH /auth/check/v1/orders?x=1", ["Host: h.test"], "PATCH h.test /v1/orders|?x=1"),
        ("DELETE /auth/check/", ["Host: h.test"], "DELETE h.test /|"),
        (
            "GET /auth/check", forwarded + ["X-Original-URI: /v1/orders?x=1", "X-Original-Method: POST"],
            "POST api.example.com /v1/orders|?x=1"
        ),
        (
            "POST /auth/check/v1/orders?x=1",
            ["Host: API.example.com.:443"] + forwarded.dropFirst(), "POST api.example.com /v1/orders|?x=1"
        ),
    ])
    func `the first complete scheme describes the request`(_ line: String, _ fields: [String], _ expected: String) {
        #expect(Self.read(line, fields) == expected)
    }

    @Test(arguments: [
        ("GET /auth/check", ["Host: m"], "check.undescribed "),
        ("GET /auth/check", ["Host: m", "X-Forwarded-Host: a", "X-Forwarded-Proto: https"], "check.undescribed "),
        ("GET /auth/check", ["Host: m", "X-Forwarded-Method: GET"], "check.field_missing X-Forwarded-Uri"),
        ("GET /auth/check", ["Host: m", "X-Forwarded-Uri: /"], "check.field_missing X-Forwarded-Method"),
        ("GET /auth/check", ["Host: m", "X-Original-Method: GET"], "check.field_missing X-Original-URI"),
        ("POST /auth/check", ["Host: m", "X-Original-URI: /"], "check.field_missing X-Original-Method"),
        (
            "GET /auth/check", ["Host: m", "X-Forwarded-Uri: /", "X-Forwarded-Method: GET", "X-Forwarded-Host: h"],
            "check.field_missing X-Forwarded-Proto"
        ),
        ("GET /auth/check", forwarded + ["X-Forwarded-Uri: /v1/orders?x=1"], "check.field_repeated X-Forwarded-Uri"),
        ("GET /auth/check", forwarded + ["x-forwarded-method: POST"], "check.field_repeated X-Forwarded-Method"),
        (
            "GET /auth/check", ["Host: m", "X-Original-URL: http://a/", "X-Original-URL: http://a/"],
            "check.field_repeated X-Original-URL"
        ),
        ("GET /auth/check", forwarded + ["X-Original-URI: /public"], "check.field_conflict X-Original-URI"),
        ("GET /auth/check", forwarded + ["X-Original-URI: /v1/orders"], "check.field_conflict X-Original-URI"),
        (
            "GET /auth/check", forwarded + ["X-Original-URL: https://api.example.com/v1/orders"],
            "check.field_conflict X-Original-URL"
        ),
        (
            "GET /auth/check", forwarded + ["X-Original-URL: https://other.test/v1/orders?x=1"],
            "check.field_conflict X-Original-URL"
        ),
        ("GET /auth/check", forwarded + ["X-Original-Method: GET"], "check.field_conflict X-Original-Method"),
        ("GET /auth/check/", forwarded, "check.field_conflict path"),
        ("GET /auth/check/v1/orders?x=1", forwarded, "check.field_conflict method"),
        ("POST /auth/check/v1/orders?x=1", forwarded, "check.field_conflict Host"),
        (
            "GET /auth/check", ["Host: m", "X-Original-URI: /a", "X-Forwarded-Method: POST"],
            "check.field_conflict X-Forwarded-Method"
        ),
        ("GET /auth/check/a", ["Host: m", "X-Forwarded-Host: other"], "check.field_conflict X-Forwarded-Host"),
    ])
    func `an incomplete or ambiguous description is rejected`(
        _ line: String, _ fields: [String], _ expected: String
    ) {
        #expect(Self.read(line, fields) == expected)
    }

    @Test(arguments: [
        ("X-Forwarded-Proto: ftp", "X-Forwarded-Proto"), ("X-Forwarded-Proto: https, http", "X-Forwarded-Proto"),
        ("X-Forwarded-Proto:", "X-Forwarded-Proto"), ("X-Forwarded-Host: a, b", "X-Forwarded-Host"),
        ("X-Forwarded-Host: user@a", "X-Forwarded-Host"), ("X-Forwarded-Host:", "X-Forwarded-Host"),
        ("X-Forwarded-Method: get", "X-Forwarded-Method"), ("X-Forwarded-Method: G T", "X-Forwarded-Method"),
        ("X-Original-Method:", "X-Original-Method"), ("X-Original-Method: Post", "X-Original-Method"),
        ("X-Forwarded-Uri:", "X-Forwarded-Uri"), ("X-Forwarded-Uri: *", "X-Forwarded-Uri"),
        ("X-Forwarded-Uri: v1", "X-Forwarded-Uri"), ("X-Forwarded-Uri: /a b", "X-Forwarded-Uri"),
        ("X-Forwarded-Uri: /a#b", "X-Forwarded-Uri"), ("X-Forwarded-Uri: /a?b#c", "X-Forwarded-Uri"),
        ("X-Original-URI: http://a/", "X-Original-URI"),
        ("X-Original-URL: /a", "X-Original-URL"), ("X-Original-URL: ftp://a/", "X-Original-URL"),
        ("X-Original-URL: http:///a", "X-Original-URL"), ("X-Original-URL: http://u@a/", "X-Original-URL"),
        ("X-Original-URL: http://a#b", "X-Original-URL"), ("X-Original-URL: http:", "X-Original-URL"),
    ])
    func `what no request line could have is invalid`(_ field: String, _ name: String) {
        #expect(Self.read("GET /auth/check/x", ["Host: m", field]) == "check.field_invalid \(name)")
    }

    @Test func `another spelling of the endpoint is not taken apart`() {
        #expect(Self.read("GET /%61uth/check/x", ["Host: m"]) == "check.field_invalid path")
    }

    @Test func `a target may have as many bytes as that of a request`() {
        let path = "/" + String(repeating: "a", count: 8191)
        #expect(Self.read("GET /auth/check", ["Host: m", "X-Original-URI: \(path)"]) == "GET m \(path)|")
        #expect(
            Self.read("GET /auth/check", ["Host: m", "X-Original-URI: \(path)b"])
                == "check.field_invalid X-Original-URI")
    }

    @Test(arguments: [
        ("X-Forwarded-Proto: wss", true), ("X-Forwarded-Proto: https", false), ("Sec-WebSocket-Version: 13", true),
        ("Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==", true), ("Upgrade: h2c", false),
    ])
    func `a described WebSocket is known`(_ field: String, _ expected: Bool) throws {
        let bytes = Array("GET /auth/check/x HTTP/1.1\r\nHost: m\r\n\(field)\r\n\r\n".utf8)
        var head = RequestHead(maximumFields: 50)
        var parser = RequestParser(maximumHeadBytes: 1024)
        #expect(parser.parse(bytes.span, into: &head) == .complete(bytes.count))
        let checked = try CheckedRequest(describedBy: head, bytes.span, at: Array("/auth/check".utf8).span)
        #expect(checked.opensWebSocket == expected)
    }
}
