import Foundation
import MartletCore
import Testing

@testable import MartletConfig

/// A text under `x:` and its decoded value.
private struct Reading<Value: Sendable>: CustomTestStringConvertible, Sendable {
    let testDescription: String
    let text: String
    let expected: Value?

    init(_ text: String, _ expected: Value?) {
        testDescription = text
        self.text = text
        self.expected = expected
    }
}

private func read<Value: ConfigurationValue>(_ text: String, as type: Value.Type) throws -> (Value?, [String]) {
    let (value, lines) = try readBlock("x: \(text)") { reader throws(ConfigurationError) in
        reader.optional("x", as: Value.self)
    }
    return (value ?? nil, lines)
}

@Suite struct `Values` {
    @Test(arguments: [
        ("https://a.example", "https://a.example"), ("https://A.example:443/x?y", "https://a.example"),
        ("http://a.example:443", "http://a.example:443"), ("http://[::1]:80/", "http://[::1]"),
        ("http://127.0.0.1:8080/x", "http://127.0.0.1:8080"),
    ])
    func `of URLs are origins as browsers write them`(text: String, origin: String) throws {
        #expect(try #require(URLText(text)).origin == origin)
    }

    @Test(arguments: [
        Reading("250ms", .milliseconds(250)), Reading("10s", .seconds(10)), Reading("15m", .seconds(900)),
        Reading("1h", .seconds(3600)), Reading("30d", .seconds(2_592_000)), Reading("0s", Duration.zero),
        Reading("'5s'", .seconds(5)), Reading("3650d", .seconds(315_360_000)), Reading("3651d", nil),
        Reading("10", nil),
        Reading("1.5s", nil), Reading("-1s", nil), Reading("+1s", nil), Reading("s", nil), Reading("1 s", nil),
        Reading("1h30m", nil), Reading("1H", nil), Reading("9999999999999999999999s", nil),
        Reading("999999999999999999d", nil), Reading("\u{0661}s", nil), Reading("[1s]", nil), Reading("''", nil),
    ])
    private func `are durations`(_ reading: Reading<Duration>) throws {
        let (value, lines) = try read(reading.text, as: Duration.self)
        #expect(value == reading.expected)
        #expect(lines.isEmpty == (reading.expected != nil))
    }

    @Test(arguments: [
        Reading("512B", 512), Reading("16KiB", 16_384), Reading("10MiB", 10_485_760), Reading("1GiB", 1_073_741_824),
        Reading("0B", 0), Reading("10MB", nil), Reading("10", nil), Reading("1kib", nil), Reading("-1B", nil),
        Reading("999999999999999999GiB", nil), Reading("1048577GiB", nil),
    ])
    private func `are sizes`(_ reading: Reading<Int>) throws {
        let (value, lines) = try read(reading.text, as: ByteSize.self)
        #expect(value?.bytes == reading.expected)
        #expect(lines.isEmpty == (reading.expected != nil))
    }

    @Test(arguments: [
        Reading("0", 0), Reading("-5", -5), Reading("42", 42), Reading("+5", nil), Reading("'5'", nil),
        Reading("5.0", nil),
        Reading("0x10", nil), Reading("1_000", nil), Reading("99999999999999999999", nil), Reading("~", nil),
        Reading("", nil),
    ])
    private func `are whole numbers`(_ reading: Reading<Int>) throws {
        let (value, lines) = try read(reading.text, as: Int.self)
        #expect(value == reading.expected)
        #expect(lines.isEmpty == (reading.expected != nil))
    }

    @Test(arguments: [
        Reading("true", true), Reading("false", false), Reading("yes", nil), Reading("True", nil), Reading("1", nil),
        Reading("\"true\"", nil), Reading("off", nil), Reading("null", nil),
    ])
    private func `are booleans`(_ reading: Reading<Bool>) throws {
        let (value, lines) = try read(reading.text, as: Bool.self)
        #expect(value == reading.expected)
        #expect(lines.isEmpty == (reading.expected != nil))
    }

    @Test(arguments: [
        Reading("https://Example.com", "https example.com 443 /"),
        Reading("https://appleid.apple.com/auth/keys", "https appleid.apple.com 443 /auth/keys"),
        Reading("http://127.0.0.1:8080?x=1", "http 127.0.0.1 8080 /?x=1"),
        Reading("http://[::1]:90/a", "http ::1 90 /a"),
        Reading("ftp://a", nil), Reading("https://", nil), Reading("https://u:p@a/", nil),
        Reading("'https://a/#x'", nil),
        Reading("https://a b", nil), Reading("https://a:99999", nil), Reading("https://a:/", nil), Reading("//a", nil),
        Reading("https://1.2.3", nil), Reading("https://[1.2.3.4]", nil), Reading("https://a..b", nil),
        Reading("https://caf\u{E9}.example", nil), Reading("https://a\\b", nil), Reading("HTTPS://a", nil),
    ])
    private func `are URLs`(_ reading: Reading<String>) throws {
        let (value, lines) = try read(reading.text, as: URLText.self)
        #expect(value.map { "\($0.scheme) \($0.host) \($0.port) \($0.target)" } == reading.expected)
        #expect(lines.isEmpty == (reading.expected != nil))
    }

    @Test(arguments: [
        ("https://example.com", true), ("http://example.com", false), ("http://127.0.0.1:1/", true),
        ("http://[::1]/", true),
        ("http://localhost/", true), ("http://127.evil.example/", false), ("http://localhost.evil.example/", false),
    ])
    func `are URLs that may be trusted`(_ text: String, _ isTrustworthy: Bool) throws {
        #expect(try #require(URLText(text)).isTrustworthy == isTrustworthy)
    }

    @Test(arguments: [
        ("/abs/key.pem", "etc/config.yaml", "/abs/key.pem"), ("key.pem", "etc/config.yaml", "etc/key.pem"),
        ("key.pem", "config.yaml", "key.pem"), ("../key.pem", "/etc/m/c.yaml", "/etc/m/../key.pem"),
    ])
    func `are paths relative to the file`(_ text: String, _ file: String, _ expected: String) {
        #expect(FilePath(text, relativeTo: file).text == expected)
    }

    @Test(arguments: [
        (Duration.milliseconds(1500), "1500ms"), (.seconds(60), "1m"), (.seconds(90), "90s"), (.seconds(86_400), "1d"),
        (.zero, "0s"),
    ])
    func `are printed as they are written`(_ duration: Duration, _ expected: String) {
        #expect(duration.configurationText == expected)
        #expect(ByteSize.mebibytes(1).configurationText == "1MiB" && ByteSize(bytes: 1025).configurationText == "1025B")
    }

    @Test(arguments: [
        ("127.0.0.1:80", SocketAddress.ip(host: "127.0.0.1", port: 80)), ("[::]:0", .ip(host: "::", port: 0)),
        ("unix:/run/m.sock", .unix(path: "/run/m.sock")), ("localhost:80", nil), ("::1:80", nil), ("[::1]", nil),
        ("fd:3", .descriptor(3)), ("fd:2", nil), ("fd:", nil), ("fd:+3", nil), ("fd:03", nil), ("fd:3000000000", nil),
        ("127.0.0.1:", nil), ("127.0.0.1:65536", nil), ("unix:", nil), ("", nil),
        ("unix:" + String(repeating: "x", count: 108), nil),
    ])
    func `are addresses to listen on`(_ text: String, _ expected: SocketAddress?) {
        #expect(SocketAddress(text) == expected)
        if let expected { #expect(expected.configurationText == text) }
    }
}
