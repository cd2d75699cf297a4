import Glibc
import MartletAuthenticator
import MartletCore
import MartletHTTP
import MartletIO
import MartletResponder
import Testing

@testable import MartletDecisions
@testable import MartletProxy

/// Responses in the gateway's own name, and responses that cannot be completed.
@Suite struct LoopRejectionTests {
    private static let unrouted = "GET /none HTTP/1.1\r\nHost: a\r\n\r\n"
    private static let notFound = BenchText.problem(404, "Not Found", "no_route")
    private static let notFoundBytes = BenchText.problemBody(404, "Not Found", "no_route").utf8.count

    // MARK: Before a response has started

    @Test func `a rejected request gets the failure, and its connection waits for the next one`() throws {
        let bench = try LoopBench()
        let client = bench.openClient()
        let exchange = bench.begin(Self.unrouted, on: client.downstream)
        let before = bench.due(client.downstream)
        bench.advance(milliseconds: 5)
        bench.run { $0.reject(exchange, .noRoute) }
        let text = client.end.text()
        #expect(before == nil)
        #expect(text == Self.notFound)
        #expect(!bench.isAlive(exchange) && bench.phase(client.downstream) == .head)
        #expect(bench.due(client.downstream) == 75_005)
        #expect(client.end.state == .open)
        #expect(
            bench.log() == [
                "192.0.2.1 GET a 404 router.no_route route=- upstream= in=0 out=\(Self.notFoundBytes) us=5000"
            ])
        let counted = bench.counted()
        #expect(bench.requests() == ["- 404 1"] && counted.reasons == ["router.no_route": 1])
    }

    @Test func `every request gets an ID of its own`() throws {
        let bench = try LoopBench()
        let client = bench.openClient()
        for number in 1...3 {
            let exchange = bench.begin(Self.unrouted, on: client.downstream)
            bench.run { $0.reject(exchange, .noRoute) }
            let text = client.end.text()
            #expect(text == BenchText.problem(404, "Not Found", "no_route", request: number))
        }
        #expect(bench.requests() == ["- 404 3"])
    }

    @Test func `a response to HEAD has no body`() throws {
        let bench = try LoopBench()
        let client = bench.openClient()
        let exchange = bench.begin("HEAD /none HTTP/1.1\r\nHost: a\r\n\r\n", on: client.downstream)
        bench.run { $0.reject(exchange, .noRoute) }
        let text = client.end.text()
        #expect(text == String(Self.notFound.dropLast(Self.notFoundBytes)))
        #expect(bench.log() == ["192.0.2.1 HEAD a 404 router.no_route route=- upstream= in=0 out=0 us=0"])
    }

    @Test(arguments: [
        "GET / HTTP/1.0\r\nHost: a\r\n\r\n", "GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n",
    ])
    func `the connection closes after a client's last request`(_ head: String) throws {
        let bench = try LoopBench()
        let client = bench.openClient()
        let counted = bench.connections.count
        let exchange = bench.begin(head, on: client.downstream)
        bench.run { $0.reject(exchange, .noRoute) }
        let text = client.end.text()
        #expect(text == BenchText.problem(404, "Not Found", "no_route", closes: true))
        #expect(client.end.state == .closed && !bench.isAlive(client.downstream))
        #expect(counted == 1 && bench.connections.count == 0)
    }

    @Test func `the connection closes after the response to a request that could not be parsed`() throws {
        let bench = try LoopBench()
        let client = bench.openClient()
        let exchange = bench.begin(Self.unrouted, on: client.downstream)
        bench.run { $0.reject(exchange, .head(.badRequestLine)) }
        let text = client.end.text()
        #expect(text == BenchText.problem(400, "Bad Request", "request_invalid", closes: true))
        #expect(client.end.state == .closed && !bench.isAlive(client.downstream))
    }

    @Test func `the connection closes after a response while the loop drains`() throws {
        let bench = try LoopBench()
        let client = bench.openClient()
        let exchange = bench.begin(Self.unrouted, on: client.downstream)
        bench.run { _ = $0.context.schedule.drain(until: .max - 1) }
        bench.run { $0.reject(exchange, .noRoute) }
        let text = client.end.text()
        #expect(text == BenchText.problem(404, "Not Found", "no_route", closes: true))
        #expect(!bench.isAlive(client.downstream))
    }

    @Test func `a client that is still sending is read on after the response`() throws {
        let bench = try LoopBench()
        let client = bench.openClient()
        let exchange = bench.begin(BenchText.post(5), on: client.downstream)
        bench.run { $0.reject(exchange, .noRoute) }
        let text = client.end.text()
        #expect(text == BenchText.problem(404, "Not Found", "no_route", closes: true))
        #expect(client.end.state == .closed)
        #expect(bench.isAlive(client.downstream) && bench.phase(client.downstream) == .lingering)
        #expect(bench.due(client.downstream) == 2_000 && bench.ready() == ["downstream 0"])
    }

    @Test func `a rejected request leaves its endpoint`() throws {
        let bench = try LoopBench()
        let forwarded = bench.forward(BenchText.post(5))
        let before = bench.active()
        bench.run { $0.reject(forwarded.exchange, .displaced) }
        let text = forwarded.client.end.text()
        #expect(
            text
                == BenchText.problem(
                    503, "Service Unavailable", "overloaded", fields: "Retry-After: 1\r\n", closes: true))
        #expect(before == 1 && bench.active() == 0)
        #expect(!bench.isAlive(forwarded.upstream) && forwarded.server.end.state == .closed)
    }

    @Test func `a gRPC caller gets a status`() throws {
        let bench = try LoopBench()
        let client = bench.openClient()
        let exchange = bench.begin(Self.unrouted, on: client.downstream)
        bench.run { loop in
            loop.exchanges[exchange].request.isGRPC = true
            loop.reject(exchange, .noRoute)
        }
        let text = client.end.text()
        let lines = "HTTP/1.1 200 OK\r\nContent-Type: application/grpc\r\nGrpc-Status: 12\r\nGrpc-Message: no_route\r\n"
        #expect(text == BenchText.head(lines))
        #expect(bench.log() == ["192.0.2.1 GET a 404 router.no_route route=- upstream= in=0 out=0 us=0"])
    }

    @Test func `a listener's strict transport applies to rejections`() throws {
        let bench = try LoopBench()
        var rules = ListenerRules()
        rules.strictTransportSeconds = 60
        let client = bench.openClient(rules: rules)
        let exchange = bench.begin(Self.unrouted, on: client.downstream)
        bench.run { $0.reject(exchange, .noRoute) }
        let text = client.end.text()
        let field = "Strict-Transport-Security: max-age=60\r\n"
        #expect(text == BenchText.problem(404, "Not Found", "no_route", fields: field))
    }

    @Test(arguments: [false, true])
    func `a challenge offers Basic where the route accepts it`(_ offersBasic: Bool) throws {
        let bench = try LoopBench()
        let client = bench.openClient()
        let exchange = bench.begin(Self.unrouted, on: client.downstream)
        bench.run { loop in
            loop.exchanges[exchange].credential.offersBasic = offersBasic
            loop.reject(exchange, .credentialMissing)
        }
        let text = client.end.text()
        let bearer = "WWW-Authenticate: Bearer realm=\"martlet\"\r\n"
        let basic = "WWW-Authenticate: Basic realm=\"martlet\", charset=\"UTF-8\"\r\n"
        let fields = offersBasic ? bearer + basic : bearer
        #expect(text == BenchText.problem(401, "Unauthorized", "credential_missing", fields: fields))
    }

    @Test func `a client that left before its response is logged as such`() throws {
        let bench = try LoopBench()
        let client = bench.openClient()
        let exchange = bench.begin(Self.unrouted, on: client.downstream)
        client.end.leave()
        bench.run { $0.reject(exchange, .noRoute) }
        #expect(!bench.isAlive(client.downstream) && !bench.isAlive(exchange))
        #expect(
            bench.log() == [
                "192.0.2.1 GET a 404 request.client_left route=- upstream= in=0 out=\(Self.notFoundBytes) us=0"
            ])
        #expect(bench.counted().reasons == ["request.client_left": 1])
    }

    // MARK: Failures

    @Test func `a failure before the response has started becomes the response`() throws {
        let bench = try LoopBench()
        let forwarded = bench.forward(BenchText.post(5))
        bench.run { $0.fail(forwarded.exchange, .bodyTooLarge) }
        let text = forwarded.client.end.text()
        #expect(text == BenchText.problem(413, "Content Too Large", "request_too_large", closes: true))
        #expect(!bench.isAlive(forwarded.upstream) && bench.active() == 0)
        #expect(bench.requests() == ["api 413 1"])
        #expect(bench.counted().reasons == ["request.body_too_large": 1])
    }

    @Test func `a failure after the response has started resets the connection`() throws {
        let bench = try LoopBench()
        let forwarded = bench.forward()
        let copy = try Socket.duplicate(bench.run { $0.downstreams[forwarded.downstream].transport.fd })
        defer { Glibc.close(copy) }
        bench.run { loop in
            loop.exchanges[forwarded.exchange].response.start(status: 200, closes: false)
            loop.fail(forwarded.exchange, .upstreamInvalid("upstream.truncated"))
        }
        let text = forwarded.client.end.text()
        #expect(text.isEmpty && BenchEnd.isResetOnClose(copy))
        #expect(!bench.isAlive(forwarded.downstream) && !bench.isAlive(forwarded.upstream))
        let endpoint = "upstream=unix:/nonexistent/martlet-1"
        #expect(
            bench.log() == ["192.0.2.1 GET a/api/x 200 upstream.truncated route=api \(endpoint) in=0 out=0 us=0"])
    }

    @Test func `an orderly end does not reset the connection`() throws {
        let bench = try LoopBench()
        let client = bench.openClient()
        let copy = try Socket.duplicate(bench.run { $0.downstreams[client.downstream].transport.fd })
        defer { Glibc.close(copy) }
        let exchange = bench.begin(Self.unrouted, on: client.downstream)
        bench.run { $0.fail(exchange, .head(.badRequestLine)) }
        #expect(!bench.isAlive(client.downstream) && !BenchEnd.isResetOnClose(copy))
    }

    @Test func `a failure cancels the handler of the request`() throws {
        let bench = try LoopBench()
        let client = bench.openClient()
        let exchange = bench.begin(Self.unrouted, on: client.downstream)
        let task = Task { while !Task.isCancelled { await Task.yield() } }
        defer { task.cancel() }
        bench.run { loop in
            loop.exchanges[exchange].responder = .local
            loop.exchanges[exchange].local.task = task
            loop.fail(exchange, .localFailed)
        }
        let text = client.end.text()
        #expect(task.isCancelled)
        #expect(
            text == BenchText.problem(503, "Service Unavailable", "auth_unavailable", fields: "Retry-After: 1\r\n"))
        #expect(bench.counted().reasons == ["server.handler_timed_out": 1])
    }
}
