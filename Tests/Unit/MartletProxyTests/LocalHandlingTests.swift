import MartletConfig
import MartletCore
import MartletHTTP
import MartletIO
import MartletProvider
import MartletResponder
import MartletTesting
import Testing

@testable import MartletDecisions
@testable import MartletDecisionsTesting
@testable import MartletProxy

/// Requests that are handled in this process, and requests that never reach a route.
@Suite struct LocalHandlingTests {
    private static let own = "GET /own/x?a=b HTTP/1.1\r\nHost: a\r\nX-Name: Value\r\n\r\n"
    private static let text = LocalResponse(
        status: 200, fields: [("Content-Type", "text/plain")], body: Array("hello".utf8))

    /// A bench whose handler stores what it gets.
    private func recording(_ request: Box<LocalRequest?>) throws -> LoopBench {
        try LoopBench {
            $0.handler = { received in
                request.withLock { $0 = received }
                return LocalHandlingTests.text
            }
        }
    }

    /// Waits for the handler, and lets the loop take its response.
    private func respond(_ bench: LoopBench, _ exchange: Handle<Exchange>) async {
        if let task = bench.run({ $0.exchanges[exchange].local.task }) { await task.value }
        for message in bench.mailbox.drain() {
            guard case .localResponse(let exchange, let response) = message else { continue }
            bench.run { RequestForwarder.localResponded(exchange, response, &$0) }
        }
    }

    // MARK: The request

    @Test func `a handler gets the request, and its response is sent`() async throws {
        let received = Box<LocalRequest?>(nil)
        let bench = try recording(received)
        let client = bench.openClient()
        let exchange = bench.admit(Self.own, on: client.downstream)
        #expect(bench.due(client.downstream) == 10_000 && bench.isAlive(exchange))
        await respond(bench, exchange)
        let request = try #require(received.value)
        #expect(request.method == "GET" && request.path == "/own/x" && request.query == "a=b")
        #expect(request.fields.map { "\($0.name): \($0.value)" } == ["Host: a", "X-Name: Value"])
        #expect(request.body.isEmpty && request.bodyBytes == 0 && request.requestID == BenchText.requestID(1))
        #expect(request.client == "192.0.2.1" && request.address == BenchAddress.client && request.local == nil)
        #expect(request.network == ClientNetwork(address: BenchAddress.client))
        let text = client.end.text()
        let head = BenchText.head("HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n", own: "Content-Length: 5\r\n")
        #expect(text == head + "hello" && bench.due(client.downstream) == 75_000)
        #expect(bench.log() == ["192.0.2.1 GET a/own/x 200 ok route=own upstream= in=0 out=5 us=0"])
    }

    @Test func `a handler starts when the body is complete`() async throws {
        let received = Box<LocalRequest?>(nil)
        let bench = try recording(received)
        let client = bench.openClient()
        let head = "POST /own/x HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\n"
        let exchange = bench.admit(head, on: client.downstream)
        bench.receive("he", for: exchange)
        let early = bench.run { $0.exchanges[exchange].local.task }
        #expect(early == nil && bench.due(client.downstream) == 30_000)
        bench.receive("llo", for: exchange)
        #expect(bench.due(client.downstream) == 10_000)
        await respond(bench, exchange)
        let request = try #require(received.value)
        #expect(request.body == Array("hello".utf8) && request.bodyBytes == 5)
        #expect(bench.requests() == ["own 200 1"])
    }

    @Test func `a client that waits for 100 Continue gets it from the gateway`() throws {
        let bench = try LoopBench()
        let client = bench.openClient()
        let head = "POST /own/x HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nExpect: 100-continue\r\n\r\n"
        let exchange = bench.admit(head, on: client.downstream)
        let text = client.end.text()
        let handler = bench.run { $0.exchanges[exchange].local.handler != nil }
        #expect(text == "HTTP/1.1 100 Continue\r\n\r\n" && handler)
    }

    @Test func `a mount has a limit for bodies`() throws {
        let bench = try LoopBench()
        let client = bench.openClient()
        bench.admit("POST /own/x HTTP/1.1\r\nHost: a\r\nContent-Length: 101\r\n\r\n", on: client.downstream)
        let text = client.end.text()
        #expect(text == BenchText.problem(413, "Content Too Large", "request_too_large", closes: true))
    }

    @Test func `a handler sees the client that trusted proxies name`() async throws {
        let received = Box<LocalRequest?>(nil)
        let bench = try recording(received)
        let client = bench.openClient(isTrusted: true)
        let head = "GET /own/x HTTP/1.1\r\nHost: a\r\nX-Forwarded-For: 198.51.100.7\r\n\r\n"
        let exchange = bench.admit(head, on: client.downstream)
        await respond(bench, exchange)
        let request = try #require(received.value)
        #expect(request.client == "198.51.100.7" && request.address == BenchAddress.other)
    }

    @Test func `the echo shows the head for the upstream`() async throws {
        let bench = try LoopBench { $0.endpoints = [.echo] }
        let client = bench.openClient()
        let exchange = bench.admit("GET /api/x?a=b HTTP/1.1\r\nHost: a\r\n\r\n", on: client.downstream)
        await respond(bench, exchange)
        let text = client.end.text()
        #expect(text.hasPrefix("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"))
        #expect(text.contains("\"x-forwarded-for\":\"192.0.2.1\"") && text.contains("\"query\":\"a=b\""))
        #expect(bench.active() == 0 && bench.requests() == ["api 200 1"])
    }

    // MARK: The response

    private func responded(
        _ head: String, _ response: LocalResponse
    ) throws -> (bench: LoopBench, client: BenchClient, text: String) {
        let bench = try LoopBench()
        let client = bench.openClient()
        let exchange = bench.begin(head, on: client.downstream)
        bench.run { loop in
            loop.exchanges[exchange].responder = .local
            RequestForwarder.localResponded(exchange, response, &loop)
        }
        return (bench, client, client.end.text())
    }

    @Test(arguments: [
        ("HEAD / HTTP/1.1\r\nHost: a\r\n\r\n", "Content-Length: 5\r\n", "", true),
        ("GET / HTTP/1.0\r\nHost: a\r\n\r\n", "Content-Length: 5\r\nConnection: close\r\n", "hello", false),
        (
            "GET / HTTP/1.0\r\nHost: a\r\nConnection: keep-alive\r\n\r\n",
            "Content-Length: 5\r\nConnection: keep-alive\r\n", "hello", true
        ),
    ])
    func `a handler's response fits the request`(
        _ head: String, _ own: String, _ body: String, _ keepsAlive: Bool
    ) throws {
        let (bench, client, text) = try responded(head, Self.text)
        #expect(text == BenchText.head("HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n", own: own) + body)
        #expect(bench.isAlive(client.downstream) == keepsAlive)
        #expect(bench.log()[0].contains("out=\(body.utf8.count) "))
    }

    @Test func `a response without content has no length`() throws {
        let (_, _, text) = try responded(BenchText.get, LocalResponse(status: 204, fields: [], body: []))
        #expect(text == BenchText.head("HTTP/1.1 204 No Content\r\n"))
    }

    @Test func `a handler's failure is written by the gateway`() throws {
        let (bench, _, text) = try responded(BenchText.get, LocalResponse(refusing: .noRoute))
        #expect(text == BenchText.problem(404, "Not Found", "no_route"))
        #expect(bench.counted().reasons == ["router.no_route": 1])
    }

    @Test func `a handler may give a reason for the log`() throws {
        var response = Self.text
        response.reason = "auth.throttled"
        let (bench, _, text) = try responded(BenchText.get, response)
        #expect(text.hasSuffix("\r\n\r\nhello") && bench.counted().reasons == ["auth.throttled": 1])
    }

    @Test func `a response that comes too late is ignored`() throws {
        let bench = try LoopBench()
        let client = bench.openClient()
        let exchange = bench.begin(BenchText.get, on: client.downstream)
        bench.run { loop in
            RequestForwarder.localResponded(exchange, Self.text, &loop)
            loop.exchanges[exchange].responder = .local
            loop.exchanges[exchange].response.start(status: 200, closes: false)
            RequestForwarder.localResponded(exchange, Self.text, &loop)
        }
        #expect(bench.isAlive(exchange) && client.end.state == .open)
    }

    @Test func `a request without a handler, or with a head that cannot be read, fails`() throws {
        let bench = try LoopBench()
        for number in 1...2 {
            let client = bench.openClient()
            let exchange = bench.begin(BenchText.get, on: client.downstream)
            bench.run { loop in
                if number == 2 { loop.exchanges[exchange].local.handler = { _ in LocalHandlingTests.text } }
                loop.exchanges[exchange].local.head = Array("no head".utf8)
                loop.exchanges[exchange].responder = .local
                RequestForwarder.startLocal(exchange, &loop)
            }
            let text = client.end.text()
            let fields = "Retry-After: 1\r\n"
            #expect(
                text
                    == BenchText.problem(
                        503, "Service Unavailable", "auth_unavailable", request: number, fields: fields))
        }
        #expect(bench.counted().reasons == ["server.handler_timed_out": 2])
    }
}
