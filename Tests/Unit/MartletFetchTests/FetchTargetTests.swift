import MartletCore
import Testing

@testable import MartletFetch

@Suite struct FetchTargetTests {
    @Test(arguments: [
        ("https://appleid.apple.com/auth/keys", "appleid.apple.com", true),
        ("HTTPS://Example.com:8443/a?b=c", "Example.com", true),
        ("http://127.0.0.1:80/", "127.0.0.1", false), ("http://127.200.3.4/a", "127.200.3.4", false),
        ("http://[::1]:9/", "[::1]", false), ("http://localhost:9", "localhost", false),
        ("http://LOCALHOST/", "LOCALHOST", false),
        ("http://127.1/", "127.0.0.1", false), ("http://2130706433/", "127.0.0.1", false),
    ])
    func `accepts https, and http to loopback addresses`(url: String, host: String, isSecure: Bool) throws {
        let target = try FetchTarget(url)
        #expect(target.host == host && target.isSecure == isSecure)
    }

    static let rejected: [(String, ErrorCode)] = [
        ("http://example.com/", .fetchInsecure), ("http://127.0.0.1.example.com/", .fetchInsecure),
        ("http://localhost.example.com/", .fetchInsecure), ("http://10.0.0.1/", .fetchInsecure),
        ("http://[::2]/", .fetchInsecure), ("http://[::ffff:127.0.0.1]/", .fetchInsecure),
        ("http://0.0.0.0/", .fetchInsecure),
        ("http://128.0.0.1/", .fetchInsecure), ("http://127.0.0.1@example.com/", .fetchURLInvalid),
        ("https://user@example.com/", .fetchURLInvalid), ("https://user:pw@example.com/", .fetchURLInvalid),
        ("ftp://127.0.0.1/", .fetchURLInvalid), ("file:///etc/passwd", .fetchURLInvalid),
        ("gopher://127.0.0.1/", .fetchURLInvalid),
        ("", .fetchURLInvalid), ("example.com/keys", .fetchURLInvalid), ("https://", .fetchURLInvalid),
        ("https:///a", .fetchURLInvalid),
        ("https://exa mple.com/", .fetchURLInvalid), ("https://example.com/\r\nX: y", .fetchURLInvalid),
        ("https://example.com/\u{0}", .fetchURLInvalid), ("https://example.com:99999/", .fetchURLInvalid),
        ("https://bücher.example/", .fetchURLInvalid),
    ]

    @Test(arguments: rejected)
    func `rejects all other URLs`(url: String, code: ErrorCode) {
        let failure = #expect(throws: HTTPCallError.self) { try FetchTarget(url) }
        #expect(failure?.code == code)
    }

    @Test func `encodes form fields so that they cannot break out`() {
        let fields = [(name: "a b", value: "x&y=z"), (name: "é", value: "~-._+%"), (name: "", value: "")]
        #expect(String(decoding: encodeForm(fields), as: UTF8.self) == "a%20b=x%26y%3Dz&%C3%A9=~-._%2B%25&=")
        #expect(encodeForm([]) == [])
    }
}
