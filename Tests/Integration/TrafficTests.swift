import Foundation
import MartletTesting
import Testing

/// How requests are divided among endpoints, and what follows their failures, as clients and upstreams see it.
@Suite struct `Traffic` {
    private func counts(_ upstreams: [ScriptedUpstream]) -> [Int] { upstreams.map(\.requests.count) }

    // MARK: Balancing

    @Test func `requests are divided by weight, and a backup waits for its turn`() throws {
        let upstreams = [try ScriptedUpstream(), try ScriptedUpstream(), try ScriptedUpstream()]
        var config = GatewayConfig(endpoints: [], server: "workers: 1")
        config.upstreams = """
            api:
                endpoints:
                  - { url: "\(upstreams[0].url)", weight: 3 }
                  - "\(upstreams[1].url)"
                  - { url: "\(upstreams[2].url)", backup: true }
            """
        try withMartlet(config.text) { gateway throws in
            let client = try gateway.connect()
            for _ in 0..<40 { #expect(try client.exchange("GET", "/").status == 200) }
            #expect(counts(upstreams) == [30, 10, 0])
            upstreams[0].stop()
            upstreams[1].stop()
            for _ in 0..<10 { #expect(try client.exchange("GET", "/").status == 200) }
            #expect(upstreams[2].requests.count == 10)
        }
    }

    @Test func `the same address and the same header find the same endpoint`() throws {
        let upstreams = try (0..<4).map { _ in try ScriptedUpstream() }
        let config = GatewayConfig(
            endpoints: upstreams.map(\.url), upstream: "balance: { hash: header, name: X-Key }")
        try withMartlet(config.text) { gateway throws in
            for key in 0..<20 {
                let before = counts(upstreams)
                for _ in 0..<3 { #expect(try gateway.get("/", [("X-Key", "key \(key)")]).status == 200) }
                let changes = zip(counts(upstreams), before).map { $0 - $1 }
                #expect(changes.sorted() == [0, 0, 0, 3])
            }
            #expect(counts(upstreams).allSatisfy { $0 > 0 })
        }
    }

    @Test func `an unhealthy endpoint gets no requests`() throws {
        let upstreams = [try ScriptedUpstream(), try ScriptedUpstream()]
        let config = GatewayConfig(
            endpoints: upstreams.map(\.url),
            upstream: "health_check: { path: /up, interval: 100ms, unhealthy: 2, healthy: 1 }")
        try withMartlet(config.text) { gateway throws in
            upstreams[0].respond { try $0.respond($0.request.target == "/up" ? 500 : 200, body: "ok") }
            try waitUntil("it is unhealthy") { gateway.log.contains { $0["event"] == "upstream endpoint unhealthy" } }
            let client = try gateway.connect()
            for _ in 0..<20 { #expect(try client.exchange("GET", "/x").status == 200) }
            #expect(upstreams[0].requests.allSatisfy { $0.target == "/up" })
            upstreams[0].respond { try $0.respond(200, body: "ok") }
            try waitUntil("it gets requests again") {
                _ = try client.exchange("GET", "/x")
                return upstreams[0].requests.contains { $0.target == "/x" }
            }
        }
    }

    // MARK: Failures

    @Test func `no request is lost when one of two endpoints ends`() throws {
        let upstreams = [try ScriptedUpstream(), try ScriptedUpstream()]
        try withMartlet(GatewayConfig(endpoints: upstreams.map(\.url)).text) { gateway throws in
            let statuses = Box<[Int]>([])
            DispatchQueue.concurrentPerform(iterations: 4) { _ in
                guard let client = try? gateway.connect() else { return }
                for _ in 0..<100 {
                    let status = (try? client.exchange("GET", "/").status) ?? 0
                    let count = statuses.withLock { statuses in
                        statuses.append(status)
                        return statuses.count
                    }
                    if count == 100 { upstreams[0].stop() }
                }
            }
            #expect(statuses.value.count == 400 && statuses.value.allSatisfy { $0 == 200 })
            let ejections = gateway.log.filter { $0["event"] == "upstream endpoint ejected" }
            #expect(ejections.count == 1 && ejections.first?["endpoint"] == upstreams[0].url)
        }
    }

    @Test func `retries stay within the budget when every response is a failure`() throws {
        let upstreams = [try ScriptedUpstream { try $0.respond(503) }, try ScriptedUpstream { try $0.respond(503) }]
        let config = GatewayConfig(
            endpoints: upstreams.map(\.url),
            upstream: "retries: { attempts: 2, budget: 20%, min_per_second: 0, backoff: 0s }")
        try withMartlet(config.text) { gateway throws in
            DispatchQueue.concurrentPerform(iterations: 4) { _ in
                guard let client = try? gateway.connect() else { return }
                for _ in 0..<100 { #expect(throws: Never.self) { try client.exchange("GET", "/") } }
            }
            let arrivals = counts(upstreams).reduce(0, +)
            #expect((401...480).contains(arrivals))
        }
    }

    @Test func `a failed response is repeated for GET, after a wait, and not for POST`() throws {
        let upstream = try ScriptedUpstream { try $0.respond($0.index % 2 == 0 ? 503 : 200, body: "ok") }
        let config = GatewayConfig(
            endpoints: [upstream.url], upstream: "retries: { retry_on: [503], min_per_second: 10, backoff: 10ms }")
        try withMartlet(config.text) { gateway throws in
            #expect(try gateway.get("/").text == "ok")
            #expect(upstream.requests.count == 2)
            let client = try gateway.connect()
            #expect(try client.exchange("POST", "/", [], body: Array("x".utf8)).status == 503)
            #expect(upstream.requests.count == 3)
        }
    }

    @Test func `an attempt that takes too long is repeated elsewhere`() throws {
        let hanging = try ScriptedUpstream { exchange in _ = exchange.waitForEnd() }
        let good = try ScriptedUpstream()
        let config = GatewayConfig(
            endpoints: [hanging.url, good.url],
            upstream: "retries: { per_try_timeout: 200ms, min_per_second: 100, backoff: 0s }")
        try withMartlet(config.text) { gateway throws in
            for _ in 0..<4 { #expect(try gateway.get("/").status == 200) }
            #expect(!hanging.requests.isEmpty)
        }
    }

    // MARK: Breaker

    @Test func `more requests than the breaker allows are rejected`() throws {
        let gate = DispatchSemaphore(value: 0)
        let upstream = try ScriptedUpstream { exchange in
            if exchange.request.target == "/held" { gate.wait() }
            try exchange.respond(200, body: "ok")
        }
        let config = GatewayConfig(endpoints: [upstream.url], upstream: "breaker: { max_requests: 1 }")
        try withMartlet(config.text) { gateway throws in
            let held = try gateway.connect()
            try held.send("GET /held HTTP/1.1\r\nHost: a\r\n\r\n")
            try waitUntil("it is under way") { upstream.requests.count == 1 }
            let response = try gateway.get("/")
            expectRejection(response, 503, "overloaded")
            #expect(response["Retry-After"] == "1" && upstream.requests.count == 1)
            gate.signal()
            #expect(try held.response().status == 200)
            // A request counts until its loop has completed it, which may be a moment after its response.
            try waitUntil("another is let through") { try gateway.get("/").status == 200 }
        }
    }

    @Test func `a request waits for a connection with its body, and no longer than it may`() throws {
        let gate = DispatchSemaphore(value: 0)
        let upstream = try ScriptedUpstream { exchange in
            if exchange.request.target == "/held" { gate.wait() }
            try exchange.respond(200, body: "\(exchange.request.body.count)")
        }
        let config = GatewayConfig(
            endpoints: [upstream.url], upstream: "breaker: { max_connections: 1, max_pending: 1, queue_timeout: 1s }",
            server: "workers: 1")
        try withMartlet(config.text) { gateway throws in
            let held = try gateway.connect()
            try held.send("GET /held HTTP/1.1\r\nHost: a\r\n\r\n")
            try waitUntil("it is under way") { upstream.requests.count == 1 }
            // The first to wait finds no connection in time.
            expectRejection(try gateway.get("/"), 503, "overloaded")
            let waiting = try gateway.connect()
            let body = String(repeating: "x", count: 300_000)
            try waiting.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: \(body.utf8.count)\r\n\r\n\(body)")
            // Another one may not even wait.
            try waitUntil("the line is full") { try gateway.get("/").text.contains("overloaded") }
            gate.signal()
            #expect(try held.response().status == 200)
            let response = try waiting.response(to: "POST")
            #expect(response.status == 200 && response.text == "300000")
            #expect(upstream.acceptedConnections == 1)
        }
    }

    @Test func `no request waits while a connection of another event loop idles`() throws {
        let upstream = try ScriptedUpstream { exchange in
            if exchange.request.target == "/slow" { pause(.milliseconds(300)) }
            try exchange.respond(200, body: "ok")
        }
        let config = GatewayConfig(
            endpoints: [upstream.url],
            upstream: "breaker: { max_connections: 2, max_pending: 20, queue_timeout: 5s }", server: "workers: 3")
        try withMartlet(config.text) { gateway throws in
            let clients = try (0..<12).map { _ in try gateway.connect() }
            for client in clients { try client.send("GET", "/slow") }
            for client in clients { #expect(try client.response().status == 200) }
            let watch = Stopwatch()
            for _ in 0..<20 { #expect(try gateway.get("/").status == 200) }
            #expect(watch.undisturbed < .seconds(3))
            // They went from loop to loop.
            #expect(upstream.acceptedConnections == 2)
        }
    }

    @Test func `connections that many clients kept busy stay open`() throws {
        let upstream = try ScriptedUpstream { exchange in
            if exchange.request.target == "/slow" { pause(.milliseconds(500)) }
            try exchange.respond(200, body: "ok")
        }
        try withMartlet(GatewayConfig(endpoints: [upstream.url], server: "workers: 1").text) { gateway throws in
            let clients = try (0..<300).map { _ in try gateway.connect() }
            for _ in 0..<2 {
                for client in clients { try client.send("GET", "/slow") }
                for client in clients { #expect(try client.response().status == 200) }
            }
            #expect(upstream.acceptedConnections <= 300)
        }
    }

    // MARK: Draining

    @Test func `an operator takes endpoints out and back, over a reload`() throws {
        let upstreams = [try ScriptedUpstream(), try ScriptedUpstream()]
        let config = GatewayConfig(endpoints: upstreams.map(\.url))
        try withMartlet(config.text) { gateway throws in
            func change(_ action: String, _ upstream: ScriptedUpstream) throws {
                let result = try run(
                    try Executable.martlet(),
                    ["upstream", action, "api", upstream.url, "--admin", "\(gateway.operators)"])
                #expect(result.ending == .exited(0), "\(result)")
            }
            try change("drain", upstreams[0])
            for _ in 0..<4 { #expect(try gateway.get("/").status == 200) }
            #expect(counts(upstreams) == [0, 4])
            try gateway.reload(config.text + "\n")
            try waitUntil("it is reloaded") {
                try gateway.askAdmin("/metrics").text.contains("martlet_server_reloads_total{result=\"success\"} 1\n")
            }
            for _ in 0..<4 { #expect(try gateway.get("/").status == 200) }
            #expect(counts(upstreams) == [0, 8])
            #expect(try gateway.askAdmin("/upstreams").text.contains("\"state\":\"draining\""))
            try change("drain", upstreams[1])
            let response = try gateway.get("/")
            expectRejection(response, 503, "upstream_unavailable")
            #expect(response["Retry-After"] == "1")
            try change("restore", upstreams[0])
            #expect(try gateway.get("/").status == 200 && upstreams[0].requests.count == 1)
        }
    }

    // MARK: Removal

    @Test func `an endpoint that left the file finishes, and is cut off after its time`() throws {
        let old = try ScriptedUpstream { exchange in
            try exchange.send("HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\nx")
            _ = exchange.waitForEnd()
        }
        let new = try ScriptedUpstream()
        try withMartlet(GatewayConfig(endpoints: [old.url], upstream: "drain: 1s").text) { gateway throws in
            let client = try gateway.connect()
            try client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n")
            try waitUntil("it is under way") { old.requests.count == 1 }
            try gateway.reload(GatewayConfig(endpoints: [new.url], upstream: "drain: 1s").text)
            try waitUntil("it is reloaded") {
                try gateway.askAdmin("/metrics").text.contains("martlet_server_reloads_total{result=\"success\"} 1\n")
            }
            #expect(try gateway.get("/").status == 200 && new.requests.count == 1)
            let response = try client.response()
            #expect(response.status == 200 && response.end == .truncated && old.requests.count == 1)
        }
    }
}
