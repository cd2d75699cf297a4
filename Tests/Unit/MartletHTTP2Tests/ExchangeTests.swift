import MartletHTTP2
import Testing

@Suite struct HTTP2ExchangeTests {
    @Test func `a request and its response pass as HTTP/1 text`() throws {
        let pair = try Pair()
        let id = try #require(pair.client.request("GET /a?b HTTP/1.1\nHost: example.com\nX-Name: Value\n\n"))
        let asked = pair.exchange().server
        #expect(
            asked == [
                .head(id, "GET /a?b HTTP/1.1\r\nHost: example.com\r\nx-name: Value\r\n\r\n", ends: true)
            ])
        pair.server.head(id, "HTTP/1.1 200 OK\nContent-Length: 5\nConnection: keep-alive\n\n")
        pair.server.body(id, "hello")
        pair.server.finish(id)
        let answered = pair.exchange()
        #expect(
            answered.client == [
                .head(id, "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n", ends: false), .data(id, "hello"),
                .other(.end(stream: id)), .other(.closed(stream: id, code: .noError)),
            ])
        #expect(answered.server == [.other(.closed(stream: id, code: .noError))])
        #expect(pair.server.streams == 0 && pair.client.streams == 0)
    }

    @Test func `bodies and trailers pass both ways`() throws {
        let pair = try Pair()
        let id = try #require(pair.client.request("POST / HTTP/1.1\nHost: a\n\n", ends: false))
        pair.client.body(id, "question")
        pair.client.finish(id, trailers: "x-sum: 1\n")
        let asked = pair.exchange().server
        #expect(
            asked == [
                .head(id, "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n", ends: false),
                .data(id, "question"), .trailers(id, "x-sum: 1\r\n"), .other(.end(stream: id)),
            ])
        pair.server.head(id, "HTTP/1.1 103 Early Hints\nLink: </a>\n\n")
        pair.server.head(id, "HTTP/1.1 200 OK\n\n")
        pair.server.body(id, "answer")
        pair.server.finish(id, trailers: "grpc-status: 0\n")
        #expect(
            pair.exchange().client == [
                .interim(id, "HTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\n"),
                .head(id, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", ends: false), .data(id, "answer"),
                .trailers(id, "grpc-status: 0\r\n"), .other(.end(stream: id)),
                .other(.closed(stream: id, code: .noError)),
            ])
    }

    @Test func `a long body waits for the windows and reports when it has drained`() throws {
        let pair = try Pair()
        let id = try #require(pair.client.request("GET / HTTP/1.1\nHost: a\n\n"))
        _ = pair.exchange()
        pair.server.head(id, "HTTP/1.1 200 OK\n\n")
        pair.server.body(id, String(repeating: "x", count: 300_000))
        var received = 0
        var drained = 0
        var rounds = 0
        while pair.server.hasOutput, rounds < 100 {
            rounds += 1
            for event in pair.client.take(pair.server.output(upTo: 20000)).events {
                if case .data(_, let text) = event { received += text.utf8.count }
            }
            for event in pair.server.events() + pair.server.take(pair.client.output()).events
            where event == .other(.drained(stream: id)) { drained += 1 }
        }
        #expect(received == 300_000)
        #expect(drained == 1)
        #expect(pair.server.unsent(id) == 0 && pair.server.unsentTotal == 0)
        pair.server.finish(id)
        #expect(pair.exchange().client == [.other(.end(stream: id)), .other(.closed(stream: id, code: .noError))])
    }
}
