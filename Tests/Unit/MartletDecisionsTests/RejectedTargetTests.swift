import MartletCore
import MartletHTTP
import Testing

@testable import MartletDecisions

@Suite struct RejectedTargetTests {
    private func read(_ head: String) -> [String]? {
        let bytes = Array(head.utf8)
        guard let found = RejectedTarget(bytes.span) else { return nil }
        return [String(decoding: bytes[found.method.bounds], as: UTF8.self), shown(Array(bytes[found.target.bounds]))]
    }

    private func shown(_ target: [UInt8]) -> String {
        var buffer = ByteBuffer()
        buffer.append("before")
        unsafe target.withUnsafeBufferPointer { unsafe RejectedTarget.append($0, to: &buffer) }
        return String(decoding: buffer.array.dropFirst(6), as: UTF8.self)
    }

    @Test(arguments: [
        ("GET //x HTTP/1.1\r\nHost: a\r\n\r\n", "//x"), ("GET /a b HTTP/1.1\r\n", "/a%20b"), ("GET /a\r\n", "/a"),
        ("GET /a?password=s3cr3t HTTP/1.1\r\n", "/a"), ("GET ?\u{540D}=x HTTP/1.1\r\n", ""),
        ("GET /\u{540D} HTTP/1.1\r\n", "/%E5%90%8D"),
        ("GET /a#b HTTP/1.1\r\n", "/a"), ("GET /a? HTTP/1.1\r\n", "/a"),
        ("GET http://u:p@host/a@b HTTP/1.1\r\n", "host/a@b"),
        ("GET http://host/a HTTP/9\n", "http://host/a"),
        ("GET /a", "/a"), ("GET  HTTP/1.1\r\n", ""),
    ])
    func `finds the target of a head that cannot be parsed`(_ head: String, _ target: String) {
        #expect(read(head) == ["GET", target])
    }

    @Test(arguments: [
        "", "GET", "\u{16}\u{3}\u{1} /", "Authorization: Bearer x", "{\"password\": \"s3cr3t\"}", "a=b&c=d /",
        " GET / HTTP/1.1",
        "GETGETGETGETGETGETGETGETGETGETGETGET / HTTP/1.1",
    ])
    func `finds nothing in what is not a request line`(_ head: String) { #expect(read(head) == nil) }

    @Test func `truncates at 256 bytes, and never within an escape`() {
        #expect(shown([UInt8](repeating: 0x61, count: 300)).utf8.count == 256)
        #expect(shown([UInt8](repeating: 0x80, count: 300)).utf8.count == 255)
    }
}
