import MartletConfig
import MartletHTTP
import MartletIO
import Testing

@testable import MartletDecisions

@Suite struct `The client behind trusted proxies` {
    private static func range(_ literal: String, _ prefixLength: Int) -> AddressRange {
        AddressRange(
            network: SocketEndpoint(literal: literal, port: 0)?.addressBytes ?? [], prefixLength: prefixLength)
    }

    /// 10.0.0.0/8, as an IPv4-mapped range, and a range of IPv6.
    private static let trusted = [range("10.0.0.0", 104), range("2001:db8:ffff::", 48)]

    /// The client that a request with these fields names.
    private func client(_ fields: String, trusting ranges: [AddressRange]) -> (text: String, octets: [UInt8])? {
        let bytes = Array("GET / HTTP/1.1\r\nHost: a\r\n\(fields)\r\n\r\n".utf8)
        var head = RequestHead(maximumFields: 50)
        var parser = RequestParser(maximumHeadBytes: 16_384)
        guard case .complete = parser.parse(bytes.span, into: &head) else { fatalError("not a head") }
        let found = unsafe bytes.withUnsafeBufferPointer {
            unsafe ForwardedChain.client(of: head, $0, trusting: ranges)
        }
        guard let found else { return nil }
        return (String(decoding: found.text, as: UTF8.self), found.octets)
    }

    static let chains: [(String, String?)] = [
        ("X-Forwarded-For: 198.51.100.1", "198.51.100.1"),
        ("X-Forwarded-For: 198.51.100.1, 10.0.0.1, 10.0.0.2", "198.51.100.1"),
        ("X-Forwarded-For: 203.0.113.9, 198.51.100.1, 10.0.0.2", "198.51.100.1"),
        ("X-Forwarded-For: 203.0.113.9,198.51.100.1,10.0.0.2", "198.51.100.1"),
        ("X-Forwarded-For: 10.0.0.3, 198.51.100.1", "198.51.100.1"),
        ("X-Forwarded-For: 198.51.100.1,,10.0.0.2,", "198.51.100.1"),
        // Every address is trusted: the first one is the client.
        ("X-Forwarded-For: 10.0.0.1, 10.0.0.2", "10.0.0.1"),
        // What is not an address ends the chain.
        ("X-Forwarded-For: 198.51.100.1, unknown, 10.0.0.2", "10.0.0.2"),
        ("X-Forwarded-For: 10.0.0.3, 10.0.0.256, 10.0.0.2", "10.0.0.2"),
        ("X-Forwarded-For: 198.51.100.1, _hidden", nil), ("X-Forwarded-For: unknown", nil),
        ("X-Forwarded-For:", nil), ("X-Forwarded-For: ,", nil), ("Accept: 198.51.100.1", nil),
        // Ports and brackets.
        ("X-Forwarded-For: 198.51.100.1:4711, 10.0.0.1:80", "198.51.100.1"),
        ("X-Forwarded-For: [2001:db8::1]:4711", "2001:db8::1"), ("X-Forwarded-For: 2001:db8::1", "2001:db8::1"),
        ("X-Forwarded-For: 198.51.100.1:x", nil),
        // Ranges of IPv6, and IPv4 within IPv6.
        ("X-Forwarded-For: 198.51.100.1, 2001:db8:ffff::5", "198.51.100.1"),
        ("X-Forwarded-For: 198.51.100.1, 2001:db8:fffe::5", "2001:db8:fffe::5"),
        ("X-Forwarded-For: 198.51.100.1, ::ffff:10.0.0.1", "198.51.100.1"),
        // Several fields are one list.
        ("X-Forwarded-For: 203.0.113.9\r\nX-Forwarded-For: 198.51.100.1\r\nX-Forwarded-For: 10.0.0.2", "198.51.100.1"),
        ("X-Forwarded-For: 10.0.0.2\r\nAccept: x\r\nX-Forwarded-For: 198.51.100.1", "198.51.100.1"),
        ("X-Forwarded-For: 198.51.100.1\r\nX-Forwarded-For: unknown, 10.0.0.2", "10.0.0.2"),
        ("x-forwarded-for: 198.51.100.1\r\nX-FORWARDED-FOR: 10.0.0.2", "198.51.100.1"),
    ]

    @Test(arguments: chains)
    func `is the last address of the list that is not trusted`(_ fields: String, _ expected: String?) {
        let found = client(fields, trusting: Self.trusted)
        #expect(found?.text == expected)
    }

    static let forwarded: [(String, String?)] = [
        ("Forwarded: for=198.51.100.1", "198.51.100.1"),
        ("Forwarded: for=198.51.100.1;proto=https, for=10.0.0.1;by=10.0.0.2", "198.51.100.1"),
        ("Forwarded: for=\"[2001:db8::1]:4711\", for=10.0.0.1", "2001:db8::1"),
        ("Forwarded: for=198.51.100.1\r\nForwarded: for=10.0.0.1", "198.51.100.1"),
        ("Forwarded: for=10.0.0.1, for=10.0.0.2", "10.0.0.1"),
        ("Forwarded: for=198.51.100.1, proto=https, for=10.0.0.1", "10.0.0.1"),
        ("Forwarded: for=198.51.100.1, for=10.0.0.1;for=10.0.0.2", nil),
        ("Forwarded: for=\"_hidden\"", nil), ("Forwarded: proto=https", nil),
        // X-Forwarded-For counts alone where it is present.
        ("Forwarded: for=203.0.113.9\r\nX-Forwarded-For: 198.51.100.1", "198.51.100.1"),
        ("X-Forwarded-For: 198.51.100.1\r\nForwarded: for=203.0.113.9", "198.51.100.1"),
        ("X-Forwarded-For: 10.0.0.1\r\nForwarded: for=203.0.113.9", "10.0.0.1"),
        ("X-Forwarded-For: unknown\r\nForwarded: for=203.0.113.9", nil),
        ("X-Forwarded-For:\r\nForwarded: for=203.0.113.9", nil),
    ]

    @Test(arguments: forwarded)
    func `is named in Forwarded where there is no other list`(_ fields: String, _ expected: String?) {
        let found = client(fields, trusting: Self.trusted)
        #expect(found?.text == expected)
    }

    @Test func `is the last address where no other proxy is trusted`() {
        let found = client("X-Forwarded-For: 198.51.100.1, 10.0.0.1, 10.0.0.2", trusting: [])
        #expect(found?.text == "10.0.0.2")
    }

    @Test func `is the first address where every proxy is trusted`() {
        let ranges = [AddressRange(network: [UInt8](repeating: 0, count: 16), prefixLength: 0)]
        let found = client("X-Forwarded-For: 2001:db8::1, 198.51.100.1, 10.0.0.2", trusting: ranges)
        #expect(found?.text == "2001:db8::1")
    }

    @Test func `has sixteen octets`() {
        let mapped = client("X-Forwarded-For: 198.51.100.1:80", trusting: [])?.octets
        #expect(mapped == [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF, 198, 51, 100, 1])
        let native = client("Forwarded: for=\"[2001:db8::fe]\"", trusting: [])?.octets
        #expect(native == [0x20, 0x01, 0x0D, 0xB8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xFE])
    }
}

@Suite struct `Nodes at the edges of their grammar` {
    @Test(arguments: [
        ("for", [""]), ("for=", [""]), ("for=\"\"", [""]), ("for=\"", [""]), ("for=a\"b\"", [""]),
        ("for=\"a\"b", [""]), ("\"for\"=a", [""]), (" for =\t a ", ["a"]), (";;for=a;", ["a"]), ("for=a,", ["a", ""]),
        (",for=a", ["", "a"]), ("for=a=b", ["a=b"]), ("forx=a;xfor=b;for=c", ["c"]), ("FOR=a;for=a", [""]),
        ("for=a;for=b, for=c", ["", "c"]), ("by=\"a\\\",for=b\";for=c", ["c"]), ("for=\"a b\"", ["a b"]),
    ])
    func `are empty where an element is malformed`(_ text: String, _ expected: [String]) {
        let nodes = ForwardedNodes.elements(of: Array(text.utf8)).map { String(decoding: $0.node, as: UTF8.self) }
        #expect(nodes == expected)
    }

    @Test(arguments: [
        (" ", ""), (":80", ""), ("[", nil), ("[]", ""), ("[]:80", ""), ("\t[::1] ", "::1"), ("[::1]:0", "::1"),
        ("[::1]:65536", "::1"), ("[::1]:123456", nil), ("[::1] :80", nil), ("[::1]80", nil), ("[::1]:8a", nil),
        ("::", "::"), ("a:b:c", "a:b:c"), ("192.0.2.1:0", "192.0.2.1"), ("192.0.2.1:99999", "192.0.2.1"),
        ("192.0.2.1:-1", nil), ("192.0.2.1:8/", nil), ("unknown", "unknown"), ("_node:80", "_node"),
    ])
    func `lose brackets and up to five digits of a port`(_ text: String, _ expected: String?) {
        let address = ForwardedNodes.address(in: Array(text.utf8)).map { String(decoding: $0, as: UTF8.self) }
        #expect(address == expected)
    }
}
