import MartletCore
import MartletHTTP
import MartletTraffic
import Testing

@testable import MartletDecisions
@testable import MartletProxy

@Suite struct `The hash of a header` {
    /// The hash of a request with these fields, where an earlier request left another one.
    private func hash(of header: String, _ fields: String) -> UInt64 {
        let bytes = Array("GET / HTTP/1.1\r\nHost: a\r\n\(fields)\r\n\r\n".utf8)
        var head = RequestHead(maximumFields: 50)
        var parser = RequestParser(maximumHeadBytes: 16_384)
        guard case .complete = parser.parse(bytes.span, into: &head) else { fatalError("not a head") }
        var forwarding = Forwarding()
        forwarding.hash = 99
        unsafe bytes.withUnsafeBufferPointer { unsafe forwarding.setHash(of: header, in: head, $0) }
        return forwarding.hash
    }

    static let vectors: [(String, UInt64)] = [
        ("X-User: a", 0xAF63_DC4C_8601_EC8C), ("X-User: foobar", 0x8594_4171_F739_67E8),
        ("X-User: foo\r\nX-User: bar", 0x8594_4171_F739_67E8), ("X-User:   foobar  ", 0x8594_4171_F739_67E8),
        ("X-User:\r\nX-User: foobar\r\nX-User:", 0x8594_4171_F739_67E8),
        ("X-User: foobar\r\nX-Users: b\r\nX-Use: c", 0x8594_4171_F739_67E8),
    ]

    @Test(arguments: vectors)
    func `is FNV-1a of all its values`(_ fields: String, _ expected: UInt64) {
        #expect(hash(of: "x-user", fields) == expected)
    }

    @Test(arguments: ["X-User:", "X-Users: a", "X-Use: a", "User: a", "X-User-X: a", "X_User: a", "Accept: X-User"])
    func `is 0 where the header is absent or empty`(_ fields: String) {
        #expect(hash(of: "x-user", fields) == 0)
    }

    @Test func `of an address is that of the IPv4 address, or of the IPv6 network`() {
        func hash(_ bytes: [UInt8]) -> UInt64 {
            var forwarding = Forwarding()
            forwarding.hash = 99
            forwarding.setHash(ofAddress: bytes)
            return forwarding.hash
        }
        let mapped: [UInt8] = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF]
        #expect(hash(mapped + [10, 0, 0, 1]) == RendezvousHash.hash([10, 0, 0, 1]))
        let network: [UInt8] = [0x20, 1, 0xD, 0xB8, 0, 0, 0, 1]
        let hosts = [[UInt8](repeating: 1, count: 8), [UInt8](repeating: 2, count: 8)].map { hash(network + $0) }
        #expect(hosts == [RendezvousHash.hash(network), RendezvousHash.hash(network)])
        #expect(hash([]) == 0)
    }

    @Test(arguments: ["x-user", "X-User", "X-USER"])
    func `does not depend on the case of the name`(_ header: String) {
        let hashes = ["x-user", "X-User", "x-USER"].map { hash(of: header, "\($0): a") }
        #expect(hashes == [UInt64](repeating: 0xAF63_DC4C_8601_EC8C, count: 3))
    }

    @Test func `depends on the case, the bytes and the order of the values`() {
        let values = ["a", "A", "b", "ab", "ba", "a b", "a,b"]
        let hashes = Set(values.map { hash(of: "x-user", "X-User: \($0)") })
        #expect(hashes.count == values.count)
        let inOrder = hash(of: "x-user", "X-User: a\r\nX-User: b")
        let reversed = hash(of: "x-user", "X-User: b\r\nX-User: a")
        #expect(inOrder == hash(of: "x-user", "X-User: ab") && inOrder != reversed)
    }
}

@Suite struct `A forwarded request` {
    @Test func `begins without an endpoint, attempts and a head`() {
        var forwarding = Forwarding()
        forwarding.cluster = ClusterIndex(rawValue: 1)
        forwarding.endpoint = EndpointIndex(rawValue: 2)
        forwarding.attempts = 3
        forwarding.hash = 4
        forwarding.head = UpstreamHead("GET / HTTP/1.1\r\n\r\n".utf8)
        forwarding.head.sent = 5
        forwarding.begin()
        let (cluster, endpoint) = (forwarding.cluster, forwarding.endpoint)
        let (attempts, hash) = (forwarding.attempts, forwarding.hash)
        let (head, headSent) = (forwarding.head.count, forwarding.head.sent)
        #expect(cluster == ClusterIndex.none && endpoint == EndpointIndex.none)
        #expect(attempts == 0 && hash == 0 && head == 0 && headSent == 0)
    }

    /// The head and the `Host` line after the names of several endpoints were filled in.
    private func fillIn(
        _ names: [String], _ head: String, line: (start: Int, end: Int)
    ) -> (head: String, line: String, start: Int) {
        var head = UpstreamHead(head.utf8, hostLine: line)
        var scratch = ByteBuffer()
        for name in names { head.fillInHost(Array(name.utf8), scratch: &scratch) }
        let bytes = unsafe Array(head.bytes)
        let (start, end) = head.hostLine
        let hostLine = String(decoding: bytes[start..<end], as: UTF8.self)
        return (String(decoding: bytes, as: UTF8.self), hostLine, start)
    }

    @Test(arguments: [["b"], ["b", "a.longer.example:8080"], ["a.longer.example:8080", "b"], ["", "b"]])
    func `knows where its Host line is after each attempt`(_ names: [String]) {
        let text = "GET /a HTTP/1.1\r\nHost: \r\nAccept: x\r\n\r\n"
        let filled = fillIn(names, text, line: (17, 25))
        let last = names[names.count - 1]
        #expect(filled.head == "GET /a HTTP/1.1\r\nHost: \(last)\r\nAccept: x\r\n\r\n")
        #expect(filled.line == "Host: \(last)\r\n")
        #expect(filled.start == 17)
    }

    @Test func `may have its Host line first or last`() {
        let first = fillIn(["b", "c:81"], "Host: \r\nAccept: x\r\n\r\n", line: (0, 8))
        #expect(first.head == "Host: c:81\r\nAccept: x\r\n\r\n" && first.line == "Host: c:81\r\n")
        let last = fillIn(["b", "c:81"], "GET / HTTP/1.1\r\nHost: old\r\n", line: (16, 27))
        #expect(last.head == "GET / HTTP/1.1\r\nHost: c:81\r\n" && last.line == "Host: c:81\r\n")
    }

    @Test func `keeps a Host line that the gateway did not write`() {
        let text = "GET / HTTP/1.1\r\nHost: client\r\n\r\n"
        let filled = fillIn(["b", "c"], text, line: (0, 0))
        #expect(filled.head == text && filled.line == "" && filled.start == 0)
    }
}
