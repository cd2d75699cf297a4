import MartletTesting
import Testing

/// Several endpoints of one upstream: balance, ejection, another try where that is safe.
@Suite struct `Endpoints` {
    @Test func `requests are spread over the endpoints`() throws {
        for balance in ["least_requests", "round_robin"] {
            let upstreams = try (0..<3).map { _ in try ScriptedUpstream() }
            let config = GatewayConfig(
                endpoints: upstreams.map(\.url), upstream: "balance: \(balance)", server: "workers: 1")
            try withMartlet(config.text) { gateway throws in
                let client = try gateway.connect()
                for _ in 0..<30 { #expect(try client.exchange("GET", "/").status == 200) }
                let counts = upstreams.map(\.requests.count)
                if balance == "round_robin" { #expect(counts == [10, 10, 10]) }
                #expect(counts.reduce(0, +) == 30)
            }
        }
    }

    @Test func `least_requests avoids the endpoint that is busy`() throws {
        let slow = try ScriptedUpstream {
            pause(.milliseconds(800))
            try $0.respond(200, body: "slow")
        }
        let fast = try ScriptedUpstream { try $0.respond(200, body: "fast") }
        let config = GatewayConfig(
            endpoints: [slow.url, fast.url], upstream: "balance: least_requests", server: "workers: 1")
        try withMartlet(config.text) { gateway throws in
            let held = try (0..<2).map { _ in
                let client = try gateway.connect()
                try client.send("GET", "/")
                return client
            }
            try waitUntil("both are asked") { slow.requests.count + fast.requests.count >= 2 }
            for _ in 0..<10 { #expect(try gateway.get("/").text == "fast") }
            for client in held { #expect(try client.response().status == 200) }
        }
    }

    @Test func `a header decides where hash sends a request, always to the same endpoint`() throws {
        let upstreams = try (0..<3).map { index in try ScriptedUpstream { try $0.respond(200, body: "\(index)") } }
        let config = GatewayConfig(endpoints: upstreams.map(\.url), upstream: "balance: hash:X-Tenant")
        try withMartlet(config.text) { gateway throws in
            var chosen: Set<String> = []
            for tenant in 0..<20 {
                let first = try gateway.get("/", [("X-Tenant", "t\(tenant)")]).text
                for _ in 0..<3 { #expect(try gateway.get("/", [("x-tenant", "t\(tenant)")]).text == first) }
                chosen.insert(first)
            }
            #expect(chosen.count >= 2)
        }
    }

    @Test func `an endpoint that refuses is passed over, and asked again when its time has come`() throws {
        let good = try ScriptedUpstream { try $0.respond(200, body: "good") }
        let port = try refusedPort()
        let config = GatewayConfig(
            endpoints: ["http://127.0.0.1:\(port)", good.url], upstream: "balance: round_robin", server: "workers: 1")
        try withMartlet(config.text) { gateway throws in
            for method in ["GET", "POST"] {
                // Nothing was sent to the endpoint that refused, so that even a POST may go elsewhere.
                for _ in 0..<10 { #expect(try gateway.exchange(method, "/", body: [1, 2, 3]).text == "good") }
            }
            let revived = try ScriptedUpstream(on: .loopback(port)) { try $0.respond(200, body: "revived") }
            try waitUntil("the endpoint gets its trial", within: .seconds(15)) {
                try gateway.get("/").text == "revived"
            }
            _ = revived
        }
    }

    @Test func `an idempotent request that met a dead connection goes to another endpoint`() throws {
        let bad = try ScriptedUpstream { $0.closes = true }
        let good = try ScriptedUpstream { try $0.respond(200, body: "good") }
        let config = GatewayConfig(
            endpoints: [bad.url, good.url], upstream: "balance: round_robin", server: "workers: 1")
        try withMartlet(config.text) { gateway throws in
            for _ in 0..<8 { #expect(try gateway.get("/").text == "good") }
            #expect(bad.requests.count <= 5, "\(bad.requests.count)")
        }
    }

    @Test func `a POST that an endpoint has seen is not sent again`() throws {
        let bad = try ScriptedUpstream { $0.closes = true }
        let good = try ScriptedUpstream { try $0.respond(200, body: "good") }
        let config = GatewayConfig(
            endpoints: [bad.url, good.url], upstream: "balance: round_robin", server: "workers: 1")
        try withMartlet(config.text) { gateway throws in
            var statuses: [Int] = []
            for index in 0..<4 {
                statuses.append(try gateway.exchange("POST", "/\(index)", body: Payload.bytes(10)).status)
            }
            let targets = (bad.requests + good.requests).map(\.target)
            #expect(Set(targets).count == targets.count, "sent twice: \(targets)")
            #expect(statuses.contains(502) && statuses.contains(200))
        }
    }

    @Test func `an idle connection that the endpoint closed is replaced without a word`() throws {
        let upstream = try ScriptedUpstream {
            try $0.respond(200, body: "ok")
            // Ends the kept connection without having said so.
            $0.closes = true
        }
        try withMartlet(GatewayConfig(endpoints: [upstream.url]).text) { gateway throws in
            let client = try gateway.connect()
            for index in 0..<20 {
                let response = try client.exchange(index % 2 == 0 ? "GET" : "POST", "/\(index)", body: [1])
                #expect(response.status == 200, "\(index): \(response)")
                pause(.milliseconds(20))
            }
        }
    }

    @Test func `when every endpoint refuses it is 502`() throws {
        let ports = try (0..<2).map { _ in try refusedPort() }
        try withMartlet(GatewayConfig(endpoints: ports.map { "http://127.0.0.1:\($0)" }).text) { gateway throws in
            for _ in 0..<5 { expectRejection(try gateway.get("/"), 502, "upstream_unavailable") }
        }
    }

    @Test func `an endpoint that fails five times in a row rests for a while`() throws {
        let bad = try ScriptedUpstream {
            try $0.send("garbage\r\n\r\n")
            $0.closes = true
        }
        let good = try ScriptedUpstream { try $0.respond(200, body: "good") }
        let config = GatewayConfig(
            endpoints: [bad.url, good.url], upstream: "balance: round_robin", server: "workers: 1")
        try withMartlet(config.text) { gateway throws in
            for _ in 0..<40 { _ = try gateway.exchange("POST", "/", body: [1]) }
            #expect(bad.requests.count < 12, "\(bad.requests.count) requests to an endpoint that never responds well")
        }
    }

    @Test func `a name is resolved, an IPv6 address and a unix socket are reached`() throws {
        let folder = try TemporaryFolder()
        let six = try? ScriptedUpstream(on: .tcp(host: "::1", port: 0))
        let unix = try ScriptedUpstream(on: .unix(folder.file("upstream.sock")))
        let four = try ScriptedUpstream()
        var urls = ["http://localhost:\(four.port)", unix.url]
        if let six { urls.append(six.url) }
        for url in urls {
            try withMartlet(GatewayConfig(endpoints: [url]).text) { gateway throws in
                let response = try gateway.exchange("POST", "/a", body: Payload.bytes(100_000))
                #expect(response.text == "ok", "\(url): \(response)")
            }
        }
    }

    @Test func `the gateway listens on several addresses, unix sockets among them`() throws {
        let folder = try TemporaryFolder()
        let upstream = try ScriptedUpstream()
        var config = GatewayConfig(endpoints: [upstream.url])
        config.listen = "- address: 127.0.0.1:0\n- address: unix:\(folder.file("front.sock"))\n- address: \"[::1]:0\""
        try withMartlet(config.text) { gateway throws in
            try waitUntil("all three are there") { gateway.endpoints.count == 3 }
            for endpoint in gateway.endpoints {
                #expect(try HTTPClient(to: endpoint).exchange("GET", "/").text == "ok", "\(endpoint)")
            }
        }
        #expect(throws: TestFailure.self) { try RawSocket(connectingTo: .unix(folder.file("front.sock"))) }
    }

    @Test func `nginx behind the gateway sees an ordinary client`() throws {
        let text = String(repeating: "a line of text\n", count: 50_000)
        let nginx = try NginxUpstream(files: ["big.txt": text])
        let apple = try AppleFixture()
        let config = GatewayConfig(endpoints: [nginx.url], providers: apple.provider(), routes: GatewayConfig.closed)
        try withMartlet(config.text) { gateway throws in
            let client = try gateway.connect()
            let token = try apple.token()
            for _ in 0..<20 {
                let response = try client.exchange("GET", "/v1?x=1", bearer(token) + [("X-Auth-Subject", "forged")])
                let expected = "uri=/v1?x=1 host=localhost subject=apple:\(`Identity headers`.subject) auth="
                #expect(response.text.hasPrefix("\(expected) by=HTTP/1.1 "))
            }
            let file = try client.exchange("GET", "/files/big.txt", bearer(token))
            let isSame = file.text == text
            #expect(isSame && file.end == .complete)
            let part = try client.exchange("GET", "/files/big.txt", bearer(token) + [("Range", "bytes=0-5")])
            #expect(part.status == 206 && part.text == "a line")
            let same = try client.exchange(
                "GET", "/files/big.txt", bearer(token) + [("If-None-Match", file["ETag"] ?? "")])
            #expect(same.status == 304)
            #expect(
                try client.exchange("HEAD", "/files/big.txt", bearer(token))["Content-Length"] == "\(text.utf8.count)")
        }
    }

    @Test func `builtin:echo responds with what it received, as JSON`() throws {
        let apple = try AppleFixture()
        let config = GatewayConfig(
            endpoints: ["builtin:echo"], providers: apple.provider(), routes: GatewayConfig.closed)
        try withMartlet(config.text) { gateway throws in
            let response = try gateway.exchange("POST", "/v1/a?b=c", bearer(apple.token()), body: Array("hello".utf8))
            #expect(response.status == 200 && response["Content-Type"]?.contains("json") == true)
            for part in ["/v1/a", "b=c", "POST", "apple:\(`Identity headers`.subject)"] {
                let isContained =
                    response.text.contains(part) || response.text.replacing("\\/", with: "/").contains(part)
                #expect(isContained, "\(part)")
            }
        }
    }
}
