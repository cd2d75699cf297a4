import MartletCore
import Testing

@testable import MartletUpstreams

/// The head of a copy, from that of the original.
@Suite struct `Heads of copies` {
    private static let fields = MirrorFields(dropping: ["X-Api-Key", "X-Auth-Assertion"], mark: "X-Mirrored")

    private func lines(_ head: String, host: String = "shadow.test") -> (request: String, lines: [String])? {
        let request = MirrorRequest(
            upstream: "shadow", head: Array(head.utf8), host: nil, fields: Self.fields, body: nil, isRepeatable: true)
        return MirrorHead(request, host: Array(host.utf8)).map {
            ("\(text($0.method)) \(text($0.target))", $0.lines.map(text))
        }
    }

    private func text(_ text: [CChar]) -> String {
        #expect(text.last == 0)
        return String(decoding: text.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
    }

    @Test func `keep what the client sent, who it is, and where the request has been`() throws {
        let head = try #require(
            lines(
                "GET /a/../b?c=%2F HTTP/1.1\r\nHost: a.test\r\nAccept: */*\r\nUser-Agent: u\r\nContent-Type: t\r\n"
                    + "X-Twice: 1\r\nX-Twice:  2 \r\nX-Empty:\r\nVia: 1.1 martlet-01234567\r\nX-Auth-Subject: usr_1\r\n"
                    + "X-Request-Id: r\r\n\r\n"))
        #expect(head.request == "GET /a/../b?c=%2F")
        #expect(
            head.lines == [
                "Host: shadow.test", "Accept: */*", "User-Agent: u", "Content-Type: t", "X-Twice: 1", "X-Twice: 2",
                "X-Empty;", "Via: 1.1 martlet-01234567", "X-Auth-Subject: usr_1", "X-Request-Id: r", "X-Mirrored: 1",
                "expect:",
            ])
    }

    @Test(arguments: [
        "Authorization: Bearer x", "AUTHORIZATION: Basic x", "Cookie: a=b", "DPoP: x", "Proxy-Authorization: x",
        "X-Api-Key: x", "x_api.key: x", "X-Auth-Assertion: x", "X-Mirrored: 0", "Content-Length: 3",
        "Transfer-Encoding: chunked", "Trailer: X-T", "Expect: 100-continue", "Connection: keep-alive", "TE: trailers",
    ])
    func `have no credential, and no framing of the original`(_ line: String) throws {
        let head = try #require(lines("POST /a HTTP/1.1\r\n\(line)\r\nX-Last: 1\r\n\r\n"))
        #expect(
            head.lines == [
                "Host: shadow.test", "X-Last: 1", "X-Mirrored: 1", "accept:", "content-type:", "user-agent:", "expect:",
            ])
    }

    @Test(arguments: [
        "", "GET\r\n\r\n", "GET /\r\n\r\n", "GET  HTTP/1.1\r\n\r\n", "GET / HTTP/1.1\r\nx\r\n\r\n",
        "GET /\0 HTTP/1.1\r\n\r\n",
    ])
    func `are none where the original is none`(_ head: String) {
        #expect(lines(head) == nil)
    }

    @Test func `keep bytes that are no text`() throws {
        let head: [UInt8] = Array("GET / HTTP/1.1\r\nX-B: ".utf8) + [0xFF, 0x80] + Array("\r\n\r\n".utf8)
        let request = MirrorRequest(
            upstream: "shadow", head: head, host: nil, fields: Self.fields, body: nil, isRepeatable: true)
        let found = try #require(MirrorHead(request, host: []))
        #expect(found.lines.contains(Array("X-B: ".utf8).map { CChar(bitPattern: $0) } + [-1, -128, 0]))
    }
}
