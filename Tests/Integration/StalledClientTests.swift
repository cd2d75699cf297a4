import Foundation
import MartletTesting
import Testing

/// Clients that take nothing, or half-close: each wait has an end, and no client that still reads is cut off.
@Suite struct `Stalled clients` {
    /// A response without an end.
    private static let endless: ScriptedUpstream.Script = { exchange in
        try exchange.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
        let chunk = "10000\r\n" + String(repeating: "y", count: 65_536) + "\r\n"
        while true { try exchange.send(chunk) }
    }

    private func waitForNoExchange(_ gateway: Gateway) throws {
        try waitUntil("no exchange is open") {
            try gateway.askAdmin("/metrics").text.contains("martlet_proxy_exchanges_open 0\n")
        }
    }

    @Test func `a client that sends much and reads nothing does not fill the memory`() throws {
        let routes = "- { name: a, match: { path: /a }, auth: none, upstream: api }"
        try withOpenGateway(server: "workers: 1", routes: routes) { gateway, _ throws in
            _ = try gateway.get("/warm")
            let before = try gateway.memory("VmRSS")
            let client = try HTTPClient(to: gateway.endpoint, receiveBuffer: 4096)
            let requests = String(repeating: "GET /none HTTP/1.1\r\nHost: a\r\n\r\n", count: 2000)
            for _ in 0..<200 { guard (try? client.socket.send(requests, within: .seconds(1))) != nil else { break } }
            #expect(try gateway.memory("VmRSS") - before < 8 << 20)
            var sum = 0
            for _ in 0..<4000 { sum += try client.response().status == 404 ? 1 : 0 }
            #expect(sum == 4000)
        }
    }

    @Test func `neither side reading is not for ever`() throws {
        let server = "workers: 1\ntimeouts: { body_idle: 1s }"
        try withOpenGateway(server: server, readsBodies: false, script: Self.endless) { gateway, _ throws in
            let client = try HTTPClient(to: gateway.endpoint, receiveBuffer: 4096)
            try client.send("POST", "/", [("Content-Length", "90000000")])
            while (try? client.socket.send([UInt8](repeating: 1, count: 65_536), within: .seconds(1))) != nil {}
            try waitForNoExchange(gateway)
        }
    }

    @Test func `a client that half-closed and reads nothing is not kept for ever`() throws {
        let server = "workers: 1\ntimeouts: { body_idle: 1s }"
        try withOpenGateway(server: server, script: Self.endless) { gateway, _ throws in
            let first = try HTTPClient(to: gateway.endpoint, receiveBuffer: 4096)
            try first.send("GET", "/")
            pause(.milliseconds(200))
            first.socket.finishSending()
            let second = try HTTPClient(to: gateway.endpoint, receiveBuffer: 4096)
            try second.send("GET", "/")
            second.socket.finishSending()
            pause(.milliseconds(100))
            _ = try second.socket.receive()
            pause(.milliseconds(800))
            try waitForNoExchange(gateway)
        }
    }

    @Test func `a half-closed client gets the whole of a response that takes its time`() throws {
        let script: ScriptedUpstream.Script = { exchange in
            try exchange.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n")
            pause(.milliseconds(1200))
            try exchange.send("6\r\n world\r\n")
            pause(.milliseconds(100))
            try exchange.send("0\r\n\r\n")
        }
        try withOpenGateway(script: script) { gateway, _ throws in
            let client = try gateway.connect()
            try client.send("GET", "/")
            client.socket.finishSending()
            let response = try client.response()
            #expect(response.text == "hello world" && response.end == .complete)
        }
    }

    @Test func `a client that left a slow response is noticed within a second`() throws {
        let script: ScriptedUpstream.Script = { exchange in
            try exchange.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n")
            _ = exchange.waitForEnd()
        }
        try withOpenGateway(script: script) { gateway, upstream throws in
            let client = try gateway.connect()
            try client.send("GET", "/")
            #expect(try client.reader.readHead()?.status == 200)
            client.close()
            try waitUntil("the upstream's connection is closed", within: .seconds(1)) { upstream.endedConnections == 1 }
        }
    }

    @Test func `nothing is served behind a response that closes`() throws {
        let routes = "- { name: a, match: { path: /a/** }, auth: none, upstream: api }"
        try withOpenGateway(server: "workers: 1", routes: routes) { gateway, upstream throws in
            let one = "GET /none HTTP/1.1\r\nHost: a\r\n\r\n"
            let last = "GET /none HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\nGET /a/b HTTP/1.1\r\nHost: a\r\n\r\n"
            for count in stride(from: 5_000, to: 13_000, by: 500) {
                let client = try HTTPClient(to: gateway.endpoint, receiveBuffer: 4096)
                let socket = client.socket
                let sending = Background { try socket.send(String(repeating: one, count: count) + last) }
                pause(.milliseconds(100))
                let bytes = try socket.receiveToEnd(within: .seconds(20))
                let responses = String(decoding: bytes, as: UTF8.self).components(separatedBy: "HTTP/1.1 404").count - 1
                #expect(responses == count + 1)
                _ = try? sending.value()
            }
            #expect(upstream.requests.isEmpty)
        }
    }

    @Test func `a connection that a slow reader held back serves the next request`() throws {
        let script: ScriptedUpstream.Script = { exchange in
            let size = Int(exchange.request.target.dropFirst()) ?? 0
            try exchange.respond(200, bytes: [UInt8](repeating: 1, count: size))
        }
        let upstream = try ScriptedUpstream(script)
        let folder = try TemporaryFolder()
        var config = GatewayConfig(endpoints: [upstream.url], server: "workers: 1")
        // Its buffers have one size; some of these responses end just where the gateway begins to hold back.
        config.listen = "- address: unix:\(folder.file("front.sock"))"
        try withMartlet(config.text) { gateway throws in
            for size in stride(from: 440_000, to: 600_000, by: 8000) {
                let slow = try gateway.connect()
                try slow.send("GET", "/\(size)")
                pause(.milliseconds(50))
                let other = try gateway.connect()
                try other.send("GET", "/1")
                #expect(try other.response().status == 200, "\(size)")
                slow.close()
            }
        }
    }

    @Test func `a drain does not cut off a client that still takes a response`() throws {
        let sizes = [300_000, 1_000_000, 2_000_000, 2_600_000, 2_800_000, 3_000_000, 3_200_000, 4_000_000]
        let script: ScriptedUpstream.Script = { exchange in
            let size = Int(exchange.request.target.dropFirst()) ?? 0
            try exchange.respond(200, bytes: [UInt8](repeating: 1, count: size))
        }
        let upstream = try ScriptedUpstream(script)
        let gateway = try Gateway(GatewayConfig(endpoints: [upstream.url]).text)
        let clients = try sizes.map { size in
            let client = try HTTPClient(to: gateway.endpoint, receiveBuffer: 4096)
            try client.send("GET", "/\(size)")
            return client
        }
        pause(.milliseconds(500))
        gateway.process.kill(SIGTERM)
        pause(.seconds(1))
        for (client, size) in zip(clients, sizes) {
            #expect((try? client.response().body.count) == size)
        }
        #expect(try gateway.process.wait() == .exited(0))
    }
}
