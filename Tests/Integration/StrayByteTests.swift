import MartletTesting
import Testing

/// Bytes end where they belong: what one exchange leaves behind is never part of another.
@Suite struct `Stray bytes` {
    @Test func `a response that ends with its connection holds nothing of other requests`() throws {
        let isOver = Box(false)
        let script: ScriptedUpstream.Script = { exchange in
            if exchange.request.target == "/until-close" {
                try exchange.send("HTTP/1.1 200 OK\r\n\r\nhello")
                try waitUntil("the other request is under way") { isOver.value }
                exchange.closes = true
            } else {
                isOver.withLock { $0 = true }
                pause(.milliseconds(500))
                try exchange.respond(200, body: "other")
            }
        }
        try withOpenGateway(server: "workers: 1", script: script) { gateway, _ throws in
            let client = try gateway.connect()
            try client.send("GET", "/until-close")
            let other = try gateway.connect()
            try other.send("GET", "/other", [("X-Secret", "s3cret")])
            #expect(try client.response().text == "hello")
            #expect(try other.response().text == "other")
        }
    }

    @Test(arguments: [true, false])
    func `what an upstream sends behind its response is not the response to another request`(inPieces: Bool) throws {
        let extra = "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil"
        let script: ScriptedUpstream.Script = { exchange in
            try exchange.send("HTTP/1.1 200 OK\r\nContent-")
            if inPieces { pause(.milliseconds(100)) }
            try exchange.send("Length: 2\r\n\r\nok" + extra)
        }
        try withOpenGateway(server: "workers: 1", script: script) { gateway, upstream throws in
            let client = try gateway.connect()
            for count in 1...3 {
                #expect(try client.exchange("GET", "/").text == "ok")
                try waitUntil("the connection is not used again") { upstream.endedConnections == count }
            }
        }
    }

    @Test func `a response that fills a read to its last byte hides nothing behind it`() throws {
        let head = "HTTP/1.1 200 OK\r\nContent-Length: 65494\r\n\r\n"
        let response = head + String(repeating: "x", count: 65_536 - head.utf8.count)
        try #require(response.utf8.count - head.utf8.count == 65_494)
        let script: ScriptedUpstream.Script = { exchange in
            try exchange.send(response + "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil")
        }
        try withOpenGateway(server: "workers: 1", script: script) { gateway, _ throws in
            for _ in 0..<10 {
                #expect(try gateway.get("/").body.count == 65_494)
                // So that what comes behind has come, whether or not in the same read.
                pause(.milliseconds(50))
            }
        }
    }

    @Test func `a response that came before its request is not overlooked`() throws {
        let listener = try Listener(on: .loopback(0))
        let serving = Background { () -> [RawSocket] in
            var kept: [RawSocket] = []
            while kept.count < 20, let socket = listener.accept(within: .seconds(10)) {
                try socket.send("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 5\r\n\r\nearly")
                kept.append(socket)
            }
            return kept
        }
        let config = GatewayConfig(endpoints: ["http://\(listener.endpoint)"], server: "workers: 1")
        try withMartlet(config.text) { gateway throws in
            for _ in 0..<20 { #expect(try gateway.get("/").text == "early") }
        }
        #expect(try serving.value().count == 20)
    }
}
