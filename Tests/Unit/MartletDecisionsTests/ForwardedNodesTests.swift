import Testing

@testable import MartletDecisions

@Suite struct `Nodes that proxies name` {
    private func nodes(_ text: String) -> [String] {
        ForwardedNodes.elements(of: Array(text.utf8)).map { String(decoding: $0.node, as: UTF8.self) }
    }

    private func address(_ text: String) -> String? {
        ForwardedNodes.address(in: Array(text.utf8)).map { String(decoding: $0, as: UTF8.self) }
    }

    @Test(arguments: [
        ("for=192.0.2.1", ["192.0.2.1"]), ("For=192.0.2.1;proto=http;by=203.0.113.43", ["192.0.2.1"]),
        ("proto=http; FOR = 192.0.2.1", ["192.0.2.1"]),
        ("for=192.0.2.1, for=\"[2001:db8::17]:4711\"", ["192.0.2.1", "[2001:db8::17]:4711"]),
        ("for=unknown, for=_hidden", ["unknown", "_hidden"]), ("proto=http", [""]), ("", [""]), (",", ["", ""]),
        ("for=a;for=b", [""]), ("for=\"a,b;for=c\", for=d", ["a,b;for=c", "d"]),
        ("for=\"evil, for=192.0.2.1", [""]), ("for=\"evil, for=\"[2001:db8::1]\"", [""]),
        ("for=\"a\\\"b\", for=c", ["", "c"]), ("for=\"\\\\\", for=c", ["", "c"]), ("host=\"x;for=1\";for=2", ["2"]),
    ])
    func `are read element by element`(_ text: String, _ expected: [String]) {
        #expect(nodes(text) == expected)
    }

    @Test(arguments: [
        ("192.0.2.1", "192.0.2.1"), (" 192.0.2.1\t", "192.0.2.1"), ("192.0.2.1:80", "192.0.2.1"),
        ("[2001:db8::1]", "2001:db8::1"), ("[2001:db8::1]:65535", "2001:db8::1"), ("2001:db8::1", "2001:db8::1"),
        ("192.0.2.1:", nil), ("192.0.2.1:x", nil), ("192.0.2.1:123456", nil), ("[2001:db8::1", nil),
        ("[2001:db8::1]x", nil), ("[::1]:", nil), ("", ""),
    ])
    func `are addresses with or without a port`(_ text: String, _ expected: String?) {
        #expect(address(text) == expected)
    }
}
