import MartletConfig
import MartletCore
import MartletHTTP
import Testing

@testable import MartletDecisions
@testable import MartletProxy

@Suite struct `What a request's head says` {
    /// Parses a head with these fields, and lends it with its bytes.
    private func read<Result>(
        _ fields: String, _ body: (inout RequestHead, UnsafeBufferPointer<UInt8>) -> Result
    ) -> Result? {
        let bytes = Array("GET / HTTP/1.1\r\nHost: a\r\n\(fields)\r\n\r\n".utf8)
        var head = RequestHead(maximumFields: 50)
        var parser = RequestParser(maximumHeadBytes: 16_384)
        guard case .complete = parser.parse(bytes.span, into: &head) else { return nil }
        return unsafe bytes.withUnsafeBufferPointer { unsafe body(&head, $0) }
    }

    @Test(arguments: [
        ("Content-Type: application/grpc", true), ("content-type: Application/gRPC+proto", true),
        ("Content-Type: application/grpcx", false), ("Content-Type: text/plain", false), ("Accept: x", false),
    ])
    func `gRPC is detected by the content type`(_ field: String, _ expected: Bool) {
        var properties = RequestProperties()
        _ = unsafe read(field) { unsafe properties.detectGRPC(in: &$0, $1) }
        #expect(properties.isGRPC == expected)
    }

    @Test(arguments: [("TE: trailers", true), ("te: Trailers", true), ("TE: gzip", false), ("Accept: x", false)])
    func `the client says whether it reads trailers`(_ field: String, _ expected: Bool) {
        var properties = RequestProperties()
        _ = unsafe read(field) { unsafe properties.detectTrailerSupport(in: &$0, $1) }
        #expect(properties.acceptsTrailers == expected)
    }

    @Test(arguments: [
        ("X-Request-Id: abc-1", "abc-1"), ("X-Request-Id: a b", "own"), ("X-Request-Id: a\"b", "own"),
        ("X-Request-Id: a\\b", "own"), ("X-Request-Id:", "own"), ("Accept: x", "own"),
        ("X-Request-Id: " + String(repeating: "a", count: 128), String(repeating: "a", count: 128)),
        ("X-Request-Id: " + String(repeating: "a", count: 129), "own"),
        ("X-Request-Id: a b\r\nX-Request-Id: c", "c"),
    ])
    func `a trusted proxy's ID is adopted if it is a printable word`(_ fields: String, _ expected: String) {
        var record = ExchangeRecord()
        let own = Array("own".utf8)
        let peer = AddressText("192.0.2.1".utf8)
        unsafe own.withUnsafeBufferPointer { unsafe record.texts.begin(requestID: $0, client: peer) }
        _ = unsafe read(fields) { unsafe record.applyProxyFields(of: $0, $1, from: peer, trusting: []) }
        let adopted = unsafe String(decoding: record.texts.requestID, as: UTF8.self)
        let client = unsafe String(decoding: record.texts.client, as: UTF8.self)
        #expect(adopted == expected)
        #expect(client == "192.0.2.1")
    }

    @Test(arguments: [
        ("X-Forwarded-For: 198.51.100.9", "198.51.100.9"), ("X-Forwarded-For: 1.2.3.4, 198.51.100.9", "198.51.100.9"),
        ("Forwarded: for=198.51.100.9", "198.51.100.9"), ("X-Forwarded-For: unknown", ""), ("Accept: x", ""),
    ])
    func `a trusted proxy's chain names the client`(_ field: String, _ expected: String) {
        var record = ExchangeRecord()
        record.forwardedClient = Array("earlier".utf8)
        let peer = AddressText("192.0.2.1".utf8)
        _ = unsafe read(field) { unsafe record.applyProxyFields(of: $0, $1, from: peer, trusting: []) }
        let (client, octets) = (String(decoding: record.forwardedClient, as: UTF8.self), record.forwardedNetwork.count)
        let logged = unsafe String(decoding: record.texts.client, as: UTF8.self)
        #expect(client == expected)
        #expect(logged == (expected.isEmpty ? "192.0.2.1" : expected))
        #expect(octets == (expected.isEmpty ? 0 : 16))
    }

    @Test func `a trusted proxy's ID and its client stand side by side`() {
        var record = ExchangeRecord()
        let fields = "X-Request-Id: abc-1\r\nX-Forwarded-For: 198.51.100.9"
        let peer = AddressText("192.0.2.1".utf8)
        _ = unsafe read(fields) { unsafe record.applyProxyFields(of: $0, $1, from: peer, trusting: []) }
        let members = unsafe String(decoding: record.texts.members, as: UTF8.self)
        #expect(members == #"abc-1","client":"198.51.100.9","method":"","host":"","path":""#)
    }

    @Test func `the hash for balancing covers all values of one header`() {
        func hash(_ fields: String) -> UInt64 {
            var forwarding = Forwarding()
            _ = unsafe read(fields) { unsafe forwarding.setHash(of: "x-user", in: $0, $1) }
            return forwarding.hash
        }
        #expect(hash("Accept: x") == 0)
        // FNV-1a of "a".
        #expect(hash("X-User: a") == 0xAF63_DC4C_8601_EC8C)
        #expect(hash("X-USER: a") == hash("x-user: a"))
        #expect(hash("X-User: a") != hash("X-User: b"))
        #expect(hash("X-User: ab") == hash("X-User: a\r\nAccept: x\r\nX-User: b"))
    }
}

@Suite struct `Host of an endpoint` {
    private func filled(_ names: [String], line: (start: Int, end: Int)) -> String {
        var head = UpstreamHead("GET / HTTP/1.1\r\nHost: \r\nAccept: x\r\n\r\n".utf8, hostLine: line)
        var scratch = ByteBuffer()
        scratch.append("left from before")
        for name in names { head.fillInHost(Array(name.utf8), scratch: &scratch) }
        return unsafe String(decoding: head.bytes, as: UTF8.self)
    }

    @Test(arguments: [["b"], ["b:8080", "c"], ["b", "a.longer.example", "c"]])
    func `is that of the last one that was tried`(_ names: [String]) {
        let last = names[names.count - 1]
        #expect(filled(names, line: (16, 24)) == "GET / HTTP/1.1\r\nHost: \(last)\r\nAccept: x\r\n\r\n")
    }

    @Test func `is the client's where its line was forwarded`() {
        #expect(filled(["b"], line: (0, 0)) == "GET / HTTP/1.1\r\nHost: \r\nAccept: x\r\n\r\n")
    }
}
