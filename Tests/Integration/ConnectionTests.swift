import Foundation
import MartletTesting
import Testing

/// What RFC 9112 says about connections: keeping, pipelining, 1.0, expectations, ends.
@Suite struct `Connections` {
    @Test func `a connection carries many requests`() throws {
        try withOpenGateway { gateway, upstream throws in
            let client = try gateway.connect()
            for index in 0..<50 { #expect(try client.exchange("GET", "/\(index)").text == "ok") }
            #expect(upstream.requests.count == 50 && upstream.acceptedConnections <= 3)
        }
    }

    @Test func `pipelined requests get their responses in order`() throws {
        let script: ScriptedUpstream.Script = { try $0.respond(200, body: $0.request.target) }
        try withOpenGateway(script: script) { gateway, _ throws in
            let client = try gateway.connect()
            let count = 40
            try client.send((0..<count).map { "GET /\($0) HTTP/1.1\r\nHost: a\r\n\r\n" }.joined())
            for index in 0..<count { #expect(try client.response().text == "/\(index)") }
        }
    }

    @Test func `more pipelined requests than an iteration serves get their responses in order`() throws {
        let routes = "- { name: a, match: { path: /a }, auth: none, upstream: api }"
        try withOpenGateway(routes: routes) { gateway, _ throws in
            let client = try gateway.connect()
            let rejected = String(repeating: "GET /b HTTP/1.1\r\nHost: a\r\n\r\n", count: 3000)
            try client.send(rejected + "GET /a HTTP/1.1\r\nHost: a\r\n\r\n")
            for _ in 0..<3000 { expectRejection(try client.response(), 404, "no_route") }
            #expect(try client.response().text == "ok")
        }
    }

    @Test func `pipelined requests with bodies and rejections keep their order`() throws {
        let routes = "- { name: a, match: { path: /a/** }, auth: none, upstream: api }"
        let script: ScriptedUpstream.Script = { try $0.respond(200, body: $0.request.text) }
        try withOpenGateway(routes: routes, script: script) { gateway, _ throws in
            let client = try gateway.connect()
            try client.send(
                "POST /a/1 HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\noneGET /none HTTP/1.1\r\nHost: a\r\n\r\n")
            try client.send("POST /a/2 HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3\r\ntwo\r\n0\r\n\r\n")
            #expect(try client.response().text == "one")
            expectRejection(try client.response(), 404, "no_route")
            #expect(try client.response().text == "two")
        }
    }

    @Test func `a response is whole though the client sends more before it ends its half`() throws {
        let script: ScriptedUpstream.Script = { exchange in
            pause(.milliseconds(300))
            try exchange.respond(200, body: String(repeating: "x", count: 1000))
        }
        try withOpenGateway(script: script) { gateway, _ throws in
            let client = try gateway.connect()
            try client.send("GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
            pause(.milliseconds(100))
            try client.send("\r\n")
            client.socket.finishSending()
            #expect(try client.response().text == String(repeating: "x", count: 1000))
        }
    }

    @Test func `a request byte by byte is a request`() throws {
        try withOpenGateway { gateway, upstream throws in
            let client = try gateway.connect()
            for byte in Array(
                "POST /slow HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n".utf8)
            {
                try client.send([byte])
            }
            #expect(try client.response().status == 200)
            #expect(try upstream.onlyRequest().text == "abc")
        }
    }

    @Test func `Connection: close is heeded and said`() throws {
        try withOpenGateway { gateway, _ throws in
            let client = try gateway.connect()
            let response = try client.exchange("GET", "/", [("Connection", "close")])
            #expect(response.status == 200 && response["Connection"]?.lowercased() == "close")
            #expect(client.socket.isEnded(within: .seconds(2)))
        }
    }

    @Test func `an upstream that closes does not close the client's connection`() throws {
        let script: ScriptedUpstream.Script = {
            try $0.respond(200, [("Connection", "close")], body: "bye")
            $0.closes = true
        }
        try withOpenGateway(script: script) { gateway, upstream throws in
            let client = try gateway.connect()
            for _ in 0..<3 {
                let response = try client.exchange("GET", "/")
                #expect(response.text == "bye" && response["Connection"]?.lowercased() != "close")
            }
            #expect(upstream.acceptedConnections == 3)
        }
    }

    @Test func `HTTP/1.0 gets a response that it understands, and its connection closed`() throws {
        let script: ScriptedUpstream.Script = {
            try $0.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n")
        }
        try withOpenGateway(script: script) { gateway, upstream throws in
            let client = try gateway.connect()
            try client.send("GET /old HTTP/1.0\r\nHost: a\r\n\r\n")
            let response = try client.response()
            #expect(response.text == "abc" && response["Transfer-Encoding"] == nil && response.end == .closed)
            #expect(try upstream.onlyRequest().startLine.hasSuffix("HTTP/1.1"))
        }
    }

    @Test func `an expectation is met only after the decision`() throws {
        try withAppleGateway { gateway, upstream, apple throws in
            let refused = try gateway.connect()
            try refused.send("POST", "/v1", [("Expect", "100-continue"), ("Content-Length", "5")])
            expectUnauthorized(try refused.response(), "credential_missing")
            #expect(refused.interim.isEmpty && upstream.requests.isEmpty)

            let client = try gateway.connect()
            try client.send(
                "POST", "/v1", bearer(apple.token()) + [("Expect", "100-Continue"), ("Content-Length", "5")])
            let interim = try client.reader.readHead()
            #expect(interim?.status == 100)
            try client.send("hello")
            #expect(try client.response().status == 200)
            #expect(upstream.requests.last?.text == "hello")
        }
    }

    @Test func `an unknown expectation is rejected`() throws {
        try withOpenGateway { gateway, upstream throws in
            let response = try gateway.exchange("POST", "/", [("Expect", "200-maybe")], body: [1])
            #expect([400, 417].contains(response.status) && upstream.requests.isEmpty)
        }
    }

    @Test func `after an early rejection the rest is drained or the connection closed, never misread`() throws {
        try withAppleGateway { gateway, upstream, apple throws in
            let hidden = "GET /hidden HTTP/1.1\r\nHost: a\r\n\r\n"
            let client = try gateway.connect()
            try client.send("POST /v1 HTTP/1.1\r\nHost: a\r\nContent-Length: \(hidden.utf8.count)\r\n\r\n")
            expectUnauthorized(try client.response(), "credential_missing")
            try? client.send(hidden + "GET /public/next HTTP/1.1\r\nHost: a\r\n\r\n")
            let next = try? client.response(within: .seconds(3))
            #expect(next == nil || next?.status == 200)
            #expect(!upstream.requests.contains { $0.target == "/hidden" })
            _ = apple
        }
    }

    @Test func `a huge body behind a rejection is not read to its end`() throws {
        try withAppleGateway(server: "limits: { body_bytes: 1GiB }") { gateway, _, _ throws in
            let client = try gateway.connect()
            let socket = client.socket
            try client.send("POST", "/v1", [("Content-Length", "\(1 << 30)")])
            let flood = Background { () -> Int in
                let piece = Payload.bytes(1 << 20)
                var sent = 0
                while sent < 1 << 30, (try? socket.send(piece, within: .seconds(3))) != nil { sent += piece.count }
                return sent
            }
            expectUnauthorized(try client.response(), "credential_missing")
            #expect(try flood.value(within: .seconds(60)) < 1 << 28)
        }
    }

    @Test func `a client that leaves ends the upstream's exchange within a second`() throws {
        let script: ScriptedUpstream.Script = {
            _ = $0.waitForEnd()
            $0.closes = true
        }
        try withOpenGateway(script: script) { gateway, upstream throws in
            for leavesHard in [true, false] {
                let ended = upstream.endedConnections
                let client = try gateway.connect()
                try client.send("GET", "/")
                try waitUntil("the request arrives") { upstream.requests.count > ended }
                if leavesHard { client.socket.reset() } else { client.close() }
                // Not every way to leave differs from a half-closed client that still waits; a reset does.
                guard leavesHard else { continue }
                try waitUntil("the upstream's side ends", within: .milliseconds(1500)) {
                    upstream.endedConnections > ended
                }
            }
        }
    }

    @Test func `a client that leaves in the middle of a response ends the upstream's exchange`() throws {
        let script: ScriptedUpstream.Script = { exchange in
            try exchange.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
            while true {
                try exchange.send("3\r\nabc\r\n")
                pause(.milliseconds(20))
            }
        }
        try withOpenGateway(script: script) { gateway, upstream throws in
            let client = try gateway.connect()
            try client.send("GET", "/")
            _ = try client.reader.readHead()
            client.close()
            try waitUntil("the upstream's side ends", within: .milliseconds(1500)) { upstream.endedConnections == 1 }
        }
    }

    @Test func `a half-closed client still gets its response`() throws {
        let script: ScriptedUpstream.Script = {
            pause(.milliseconds(300))
            try $0.respond(200, body: "late")
        }
        try withOpenGateway(script: script) { gateway, _ throws in
            let client = try gateway.connect()
            try client.send("GET", "/")
            client.socket.finishSending()
            #expect(try client.response().text == "late")
            #expect(client.socket.isEnded(within: .seconds(2)))
        }
    }

    /// A response in chunks with a pause between them that is longer than a silent client is left alone.
    private static let slowChunks: ScriptedUpstream.Script = {
        try $0.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\none\r\n")
        pause(.milliseconds(1200))
        try? $0.send("3\r\ntwo\r\n0\r\n\r\n")
    }

    @Test func `a half-closed client still gets the rest of a chunked response`() throws {
        try withOpenGateway(script: Self.slowChunks) { gateway, _ throws in
            let client = try gateway.connect()
            try client.send("GET", "/")
            client.socket.finishSending()
            let response = try client.response()
            #expect(response.text == "onetwo" && response.end == .complete, "\(response)")
        }
    }

    @Test func `a client that leaves a silent stream ends the upstream's exchange within a second`() throws {
        let script: ScriptedUpstream.Script = {
            try $0.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\none\r\n")
            _ = $0.waitForEnd()
            $0.closes = true
        }
        try withOpenGateway(script: script) { gateway, upstream throws in
            let client = try gateway.connect()
            try client.send("GET", "/")
            _ = try client.socket.receive()
            client.close()
            try waitUntil("the upstream's side ends", within: .seconds(2)) { upstream.endedConnections == 1 }
        }
    }

    @Test func `a client that leaves in the middle of a body never makes a complete request`() throws {
        for bytes in ["Content-Length: 10\r\n\r\nabc", "Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n"] {
            try withOpenGateway { gateway, upstream throws in
                let client = try gateway.connect()
                try client.send("POST / HTTP/1.1\r\nHost: a\r\n" + bytes)
                try waitUntil("the request arrives") { upstream.requests.count == 1 }
                client.close()
                try waitUntil("the upstream's side ends", within: .seconds(3)) { upstream.endedConnections == 1 }
                #expect(try upstream.onlyRequest().end == .truncated)
            }
        }
    }

    @Test func `clients that leave before their responses keep no port towards an upstream taken`() throws {
        let script: ScriptedUpstream.Script = { _ = $0.waitForEnd(within: .seconds(10)) }
        try withOpenGateway(script: script) { gateway, upstream throws in
            for _ in 0..<20 {
                let number = upstream.requests.count
                let client = try gateway.connect()
                try client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n")
                try waitUntil("the request arrives") { upstream.requests.count > number }
                client.close()
            }
            try waitUntil("the upstream's sides end", within: .seconds(5)) { upstream.endedConnections == 20 }
            // The kernel's table has the remote address of a connection, its port as four digits, before its state.
            let remote = String(format: ":%04X", upstream.endpoint.port)
            try waitUntil("the kernel knows none any more", within: .seconds(5)) {
                let table = try String(contentsOfFile: "/proc/net/tcp", encoding: .utf8).split(separator: "\n")
                return !table.contains { $0.split(separator: " ").dropFirst(2).first?.hasSuffix(remote) == true }
            }
        }
    }

    @Test func `an upstream connection is not used again after a response that was cut short`() throws {
        let script: ScriptedUpstream.Script = { exchange in
            if exchange.request.target == "/bad" {
                try exchange.send(
                    "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nokHTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\npoison")
            } else {
                try exchange.respond(200, body: "fine")
            }
        }
        try withOpenGateway(script: script) { gateway, _ throws in
            #expect(try gateway.get("/bad").text == "ok")
            pause(.milliseconds(100))
            for _ in 0..<5 { #expect(try gateway.get("/good").text == "fine") }
        }
    }
}
