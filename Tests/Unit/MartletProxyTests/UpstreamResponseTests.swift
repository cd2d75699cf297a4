import MartletHTTP
import Testing

@testable import MartletDecisions
@testable import MartletProxy

@Suite struct UpstreamResponseTests {
    // MARK: Framing

    /// How a response came: over a connection, or over a stream that its head ends or does not.
    enum Carrier {
        case connection, endedStream, openStream
    }

    /// The framing of a response's body, and whether the response is whole; in words, for the tables.
    private func start(_ lines: [String], to method: Method, over carrier: Carrier, forStream: Bool) -> String {
        let bytes = Array("\(lines.joined(separator: "\r\n"))\r\n\r\n".utf8)
        var parser = ResponseParser(maximumHeadBytes: 1024)
        var head = ResponseHead(maximumFields: 10)
        guard case .complete = parser.parse(bytes.span, requestMethod: method, into: &head) else { return "rejected" }
        var response = UpstreamResponse()
        let (framing, isWhole) = response.start(
            framing: head.framing, keepsAlive: head.keepsAlive, isStream: carrier != .connection,
            endsWithHead: carrier == .endedStream, forStream: forStream)
        let (stored, keepsAlive, remaining) = (response.framing, response.keepsAlive, response.remaining)
        let staysOpen = head.keepsAlive
        #expect(stored == framing)
        #expect(keepsAlive == staysOpen)
        if case .length(let count) = framing { #expect(remaining == count) } else { #expect(remaining == 0) }
        return "\(framing)" + (isWhole ? " whole" : "")
    }

    @Test(
        arguments: [
            (.get, ["HTTP/1.1 200 OK", "Content-Length: 5"], "length(5)"),
            (.get, ["HTTP/1.0 200 OK", "Content-Length: 5"], "length(5)"),
            (.get, ["HTTP/1.1 200 OK", "Content-Length: 0"], "length(0) whole"),
            (.get, ["HTTP/1.1 200 OK", "Transfer-Encoding: chunked"], "chunked"),
            (.get, ["HTTP/1.1 200 OK"], "untilClose"),
            (.get, ["HTTP/1.0 200 OK"], "untilClose"),
            (.head, ["HTTP/1.1 200 OK", "Content-Length: 5"], "none whole"),
            (.head, ["HTTP/1.1 200 OK", "Transfer-Encoding: chunked"], "none whole"),
            (.head, ["HTTP/1.1 200 OK"], "none whole"),
            (.connect, ["HTTP/1.1 200 OK", "Content-Length: 5"], "none whole"),
            (.connect, ["HTTP/1.1 407 No", "Content-Length: 5"], "length(5)"),
            (.get, ["HTTP/1.1 204 No Content"], "none whole"),
            (.get, ["HTTP/1.1 204 No Content", "Content-Length: 5"], "none whole"),
            (.get, ["HTTP/1.1 304 Not Modified", "Content-Length: 5"], "none whole"),
            (.post, ["HTTP/1.1 304 Not Modified", "Transfer-Encoding: chunked"], "none whole"),
            (.get, ["HTTP/1.1 500 No", "Content-Length: 5"], "length(5)"),
        ] as [(Method, [String], String)])
    func `a connection's head says where the body ends`(_ method: Method, _ lines: [String], _ expected: String) {
        for forStream in [false, true] {
            #expect(start(lines, to: method, over: .connection, forStream: forStream) == expected)
        }
    }

    @Test(
        arguments: [
            (.get, ["HTTP/1.1 200 OK"], "untilClose", "length(0) whole", "none whole"),
            (.get, ["HTTP/1.1 200 OK", "Content-Length: 5"], "length(5)", "length(0) whole", "length(0) whole"),
            (.get, ["HTTP/1.1 200 OK", "Content-Length: 0"], "length(0)", "length(0) whole", "length(0) whole"),
            (.get, ["HTTP/1.1 200 OK", "Transfer-Encoding: chunked"], "chunked", "length(0) whole", "none whole"),
            (.head, ["HTTP/1.1 200 OK", "Content-Length: 5"], "none", "none whole", "none whole"),
            (.get, ["HTTP/1.1 204 No Content"], "none", "none whole", "none whole"),
            (.get, ["HTTP/1.1 304 Not Modified"], "none", "none whole", "none whole"),
        ] as [(Method, [String], String, String, String)])
    func `a stream's frames can say that there is no body`(
        _ method: Method, _ lines: [String], _ unended: String, _ ended: String, _ endedForStream: String
    ) {
        #expect(start(lines, to: method, over: .openStream, forStream: false) == unended)
        #expect(start(lines, to: method, over: .openStream, forStream: true) == unended)
        #expect(start(lines, to: method, over: .endedStream, forStream: false) == ended)
        #expect(start(lines, to: method, over: .endedStream, forStream: true) == endedForStream)
    }

    @Test func `every chunked response gets a fresh decoder`() {
        var response = UpstreamResponse()
        for _ in 0..<2 {
            _ = response.start(
                framing: .chunked, keepsAlive: true, isStream: false, endsWithHead: false, forStream: false)
            let bytes = Array("1\r\na\r\n0\r\n\r\n".utf8)
            var offset = 0
            var events: [String] = []
            for _ in 0..<2 {
                switch response.decoder.next(bytes.span, from: &offset) {
                case .data(let range): events.append("data \(range.count)")
                case .end: events.append("end")
                case .trailer, .needMore, .failure: events.append("other")
                }
            }
            #expect(events == ["data 1", "end"])
        }
    }

    @Test func `the chunks of an upstream have errors of an upstream`() {
        var response = UpstreamResponse()
        _ = response.start(framing: .chunked, keepsAlive: true, isStream: false, endsWithHead: false, forStream: false)
        let bytes = Array("zz".utf8)
        var offset = 0
        guard case .failure(let failure) = response.decoder.next(bytes.span, from: &offset) else {
            Issue.record("the chunk is invalid")
            return
        }
        #expect(failure == .upstreamBadChunk)
    }

    @Test(
        arguments: [
            ("", nil), ("5\r\nhello\r\n0\r\n\r\n", nil), ("5\r\nhel", nil),
            ("5\r\nhello\r\n0\r\nA: 1\r\n\r\nnext", nil), ("5\r\nhello\r\n0\r\nA: 1", nil),
            ("g\r\n", .upstreamBadChunk), ("5\nhello", .upstreamBadChunk),
            ("5\r\nhello!\r\n", .upstreamBadChunk), ("5\r\nhello\r\nx", .upstreamBadChunk),
            ("0\r\nno trailer\r\n\r\n", .upstreamBadTrailer),
        ] as [(String, HeadError?)])
    func `an error in the chunks that came with a head is found`(_ text: String, _ expected: HeadError?) {
        for head in ["", "HTTP/1.1 200 OK\r\n\r\n"] {
            let bytes = Array((head + text).utf8)
            let found = UpstreamResponse.chunkError(in: bytes.span, from: head.utf8.count)
            #expect(found == expected)
        }
    }

    // MARK: Interim responses

    /// A client's request, with respect to interim responses.
    struct Client {
        var isHTTP10 = false
        var expectsContinue = false
        var hasContinued = false

        var request: RequestProperties {
            var request = RequestProperties()
            request.isHTTP10 = isHTTP10
            request.expectsContinue = expectsContinue
            request.hasContinued = hasContinued
            return request
        }
    }

    @Test(
        arguments: [
            (100, Client(expectsContinue: true), .forward, true),
            (100, Client(expectsContinue: true, hasContinued: true), .discard, true),
            (100, Client(), .discard, false),
            (100, Client(isHTTP10: true), .discard, false),
            (100, Client(isHTTP10: true, expectsContinue: true), .discard, false),
            (102, Client(), .forward, false),
            (103, Client(), .forward, false),
            (103, Client(expectsContinue: true), .forward, false),
            (103, Client(expectsContinue: true, hasContinued: true), .forward, true),
            (103, Client(isHTTP10: true), .discard, false),
            (199, Client(), .forward, false),
            (101, Client(), .reject, false),
            (101, Client(isHTTP10: true), .reject, false),
            (101, Client(expectsContinue: true), .reject, false),
        ] as [(Int, Client, UpstreamResponse.InterimAction, Bool)])
    func `an interim response passes to a client that understands it`(
        _ status: Int, _ client: Client, _ expected: UpstreamResponse.InterimAction, _ hasContinued: Bool
    ) {
        var response = UpstreamResponse()
        var request = client.request
        let action = response.interim(status: status, bytes: 1024, for: &request)
        #expect(action == expected)
        #expect(request.hasContinued == hasContinued)
    }

    @Test(arguments: [100, 103]) func `64 KiB of interim responses are allowed, discarded ones included`(_ status: Int)
    {
        var response = UpstreamResponse()
        var request = RequestProperties()
        for _ in 0..<2 {
            response.expect()
            for _ in 0..<64 {
                let action = response.interim(status: status, bytes: 1024, for: &request)
                #expect(action == (status == 100 ? .discard : .forward))
            }
            for _ in 0..<2 {
                let action = response.interim(status: status, bytes: 1024, for: &request)
                #expect(action == .reject)
            }
        }
    }

    @Test func `a client gets one 100, and further interim responses`() {
        var response = UpstreamResponse()
        var request = Client(expectsContinue: true).request
        var actions: [UpstreamResponse.InterimAction] = []
        for status in [103, 100, 103, 100] {
            actions.append(response.interim(status: status, bytes: 1024, for: &request))
        }
        #expect(actions == [.forward, .forward, .forward, .discard])
    }

    // MARK: Body

    @Test(
        arguments: [
            (.length(10), false, [4, 6], [.content(4, isLast: false), .content(6, isLast: true)]),
            (.length(10), false, [10], [.content(10, isLast: true)]),
            (.length(10), false, [25], [.content(10, isLast: true)]),
            (.length(10), false, [9, 9], [.content(9, isLast: false), .content(1, isLast: true)]),
            (.length(10), true, [10, 0], [.content(10, isLast: false), .content(0, isLast: false)]),
            (.length(10), true, [25], [.content(10, isLast: false)]),
            (.untilClose, false, [4, 6], [.content(4, isLast: false), .content(6, isLast: false)]),
            (.untilClose, true, [4], [.content(4, isLast: false)]),
            (.chunked, false, [4, 6], [.chunks, .chunks]),
            (.chunked, true, [4, 6], [.content(4, isLast: false), .content(6, isLast: false)]),
            (BodyFraming.none, true, [4], [.content(0, isLast: false)]),
            (BodyFraming.none, false, [4], [.content(0, isLast: false)]),
        ] as [(BodyFraming, Bool, [Int], [UpstreamResponse.BodyPart])])
    func `the framing says which bytes are of the body`(
        _ framing: BodyFraming, _ isStream: Bool, _ received: [Int], _ expected: [UpstreamResponse.BodyPart]
    ) {
        var response = UpstreamResponse()
        _ = response.start(
            framing: framing, keepsAlive: true, isStream: isStream, endsWithHead: false, forStream: false)
        var parts: [UpstreamResponse.BodyPart] = []
        for count in received { parts.append(response.consume(count, isStream: isStream)) }
        #expect(parts == expected)
    }

    // MARK: Reuse

    @Test func `a connection is used again only when nothing speaks against it`() {
        for number in 0..<32 {
            let has = (0..<5).map { number & 1 << $0 != 0 }
            var response = UpstreamResponse()
            response.keepsAlive = has[0]
            let canBeReused = response.canBeReused(
                isBodyComplete: has[1], isHeadSent: has[2], unsent: has[3] ? 0 : 1, isReadClosed: !has[4])
            #expect(canBeReused == (number == 31), "\(has)")
        }
    }

    @Test(
        arguments: [
            (.get, ["HTTP/1.1 200 OK", "Content-Length: 5"], true),
            (.get, ["HTTP/1.1 200 OK", "Transfer-Encoding: chunked"], true),
            (.get, ["HTTP/1.1 200 OK", "Content-Length: 5", "Connection: close"], false),
            (.get, ["HTTP/1.0 200 OK", "Content-Length: 5"], false),
            (.get, ["HTTP/1.0 200 OK", "Content-Length: 5", "Connection: keep-alive"], true),
            (.get, ["HTTP/1.1 200 OK"], false),
            (.head, ["HTTP/1.1 200 OK", "Content-Length: 5"], true),
            (.get, ["HTTP/1.1 304 Not Modified", "Content-Length: 5"], true),
            (.get, ["HTTP/1.1 204 No Content"], true),
            (.get, ["HTTP/1.1 204 No Content", "Content-Length: 5"], false),
        ] as [(Method, [String], Bool)])
    func `a head says whether the connection stays open`(_ method: Method, _ lines: [String], _ expected: Bool) {
        let bytes = Array("\(lines.joined(separator: "\r\n"))\r\n\r\n".utf8)
        var parser = ResponseParser(maximumHeadBytes: 1024)
        var head = ResponseHead(maximumFields: 10)
        let outcome = parser.parse(bytes.span, requestMethod: method, into: &head)
        #expect(outcome == .complete(bytes.count))
        var response = UpstreamResponse()
        _ = response.start(
            framing: head.framing, keepsAlive: head.keepsAlive, isStream: false, endsWithHead: false, forStream: false)
        let canBeReused = response.canBeReused(isBodyComplete: true, isHeadSent: true, unsent: 0, isReadClosed: false)
        #expect(canBeReused == expected)
    }
}
