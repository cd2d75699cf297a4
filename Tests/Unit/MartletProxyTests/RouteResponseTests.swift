import MartletConfig
import MartletDecisionsTesting
import MartletHTTP
import MartletResponder
import MartletTesting
import Testing

@testable import MartletDecisions
@testable import MartletProxy

/// Routes that have a response of their own.
@Suite struct RouteResponseTests {
    private static func bench() throws -> LoopBench {
        var redirect = SampleSettings.route("old")
        redirect.upstream = nil
        let target = Located("https://new.example$path?$query", at: redirect.name.location)
        redirect.response = .redirect(RedirectConfiguration(target: target))
        var relative = SampleSettings.route("relative")
        relative.upstream = nil
        relative.response = .redirect(RedirectConfiguration(target: Located("$path", at: redirect.name.location)))
        var closed = SampleSettings.route("closed")
        closed.upstream = nil
        var fixed = FixedResponseConfiguration()
        (fixed.status, fixed.body, fixed.contentType) = (503, Array("soon".utf8), "text/html")
        closed.response = .fixed(fixed)
        var empty = SampleSettings.route("empty")
        empty.upstream = nil
        fixed = FixedResponseConfiguration()
        fixed.status = 204
        empty.response = .fixed(fixed)
        let routes = [redirect, relative, closed, empty]
        return try LoopBench { $0.routes = routes }
    }

    @Test(arguments: [
        (
            "GET /old/x?a=b", "307 Temporary Redirect", "Location: https://new.example/old/x?a=b\r\n",
            "Content-Length: 0\r\n", ""
        ),
        (
            "GET /old/%78", "307 Temporary Redirect", "Location: https://new.example/old/x\r\n",
            "Content-Length: 0\r\n", ""
        ),
        ("HEAD /old/", "307 Temporary Redirect", "Location: https://new.example/old/\r\n", "Content-Length: 0\r\n", ""),
        ("GET /closed/", "503 Service Unavailable", "Content-Type: text/html\r\n", "Content-Length: 4\r\n", "soon"),
        ("HEAD /closed/", "503 Service Unavailable", "Content-Type: text/html\r\n", "Content-Length: 4\r\n", ""),
        ("GET /empty/", "204 No Content", "", "", ""),
    ])
    func `a route responds, and the connection is kept`(
        _ request: String, _ status: String, _ fields: String, _ own: String, _ body: String
    ) throws {
        let bench = try Self.bench()
        let client = bench.openClient()
        bench.admit("\(request) HTTP/1.1\r\nHost: a\r\n\r\n", on: client.downstream)
        let text = client.end.text()
        #expect(text == BenchText.head("HTTP/1.1 \(status)\r\n\(fields)", own: own) + body)
        #expect(bench.isAlive(client.downstream) && bench.due(client.downstream) == 75_000 && bench.active() == 0)
        let log = bench.log()
        #expect(log.count == 1 && log.allSatisfy { $0.contains(" ok route=") && $0.contains("upstream= ") })
    }

    @Test func `a body is received and discarded before`() throws {
        let bench = try Self.bench()
        for (head, pieces) in [
            ("Content-Length: 5", ["he", "llo"]),
            ("Transfer-Encoding: chunked", ["2\r\nhe\r\n", "3\r\nllo\r\n0\r\n\r\n"]),
        ] {
            let client = bench.openClient()
            let exchange = bench.admit("POST /old/x HTTP/1.1\r\nHost: a\r\n\(head)\r\n\r\n", on: client.downstream)
            bench.receive(pieces[0], for: exchange)
            #expect(bench.isAlive(exchange) && client.end.text().isEmpty)
            let held = bench.run { $0.exchanges[exchange].heldBody.isEmpty }
            #expect(held)
            bench.receive(pieces[1], for: exchange)
            let text = client.end.text()
            #expect(text.hasPrefix("HTTP/1.1 307 ") && !text.contains("Connection"))
            #expect(bench.isAlive(client.downstream) && bench.active() == 0)
        }
    }

    @Test(arguments: ["Content-Length: 65537", "Content-Length: 5\r\nExpect: 100-continue"])
    func `a body that is not worth it is not waited for`(_ head: String) throws {
        let bench = try Self.bench()
        let client = bench.openClient()
        bench.admit("POST /closed/x HTTP/1.1\r\nHost: a\r\n\(head)\r\n\r\n", on: client.downstream)
        let text = client.end.text()
        #expect(
            text.hasPrefix("HTTP/1.1 503 ") && text.contains("Connection: close\r\n") && text.hasSuffix("\r\n\r\nsoon"))
        #expect(bench.active() == 0)
    }

    @Test func `an upgrade is not made where no upstream could make it`() throws {
        let bench = try Self.bench()
        let client = bench.openClient()
        let upgrade = "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
        let key = "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
        bench.admit("GET /old/x HTTP/1.1\r\nHost: a\r\n\(upgrade)\(key)\r\n", on: client.downstream)
        let text = client.end.text()
        #expect(text.hasPrefix("HTTP/1.1 400 ") && bench.counted().reasons == ["request.upgrade_not_allowed": 1])
    }

    @Test(
        arguments: [
            (.none, true, false, .now), (.length(0), true, true, .now), (.length(9), false, false, .afterBody),
            (.length(65_536), false, false, .afterBody), (.length(65_537), false, false, .insteadOfBody),
            (.chunked, false, false, .afterBody), (.chunked, false, true, .insteadOfBody),
            (.length(1), false, true, .insteadOfBody), (.length(65_537), true, false, .now),
        ] as [(BodyFraming, Bool, Bool, ResponseMoment)])
    func `the moment of the response depends on the body`(
        _ framing: BodyFraming, _ isComplete: Bool, _ expectsContinue: Bool, _ expected: ResponseMoment
    ) {
        #expect(ResponseMoment(framing, isComplete: isComplete, expectsContinue: expectsContinue) == expected)
    }
}
