import Foundation
import MartletTesting
import Testing

/// Interim responses, responses before the end of a request, and requests for something else than a page.
@Suite struct `Unusual exchanges` {
    @Test func `interim responses of the upstream do not disturb the final one`() throws {
        let script: ScriptedUpstream.Script = { exchange in
            try exchange.send("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n")
            try exchange.send("HTTP/1.1 102 Processing\r\n\r\n")
            try exchange.respond(200, body: "final")
        }
        try withOpenGateway(script: script) { gateway, _ throws in
            let client = try gateway.connect()
            for _ in 0..<2 { #expect(try client.exchange("GET", "/").text == "final") }
            let old = try gateway.connect()
            try old.send("GET / HTTP/1.0\r\nHost: a\r\n\r\n")
            guard let head = try old.reader.readHead() else { throw TestFailure("no head") }
            #expect(head.status == 200, "1.0 knows no interim responses: \(head)")
        }
    }

    @Test func `interim responses without end are not waited for without end`() throws {
        let script: ScriptedUpstream.Script = { exchange in
            while true {
                try exchange.send("HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n")
                pause(.milliseconds(50))
            }
        }
        try withOpenGateway(upstream: "timeouts: { response_head: 500ms }", script: script) { gateway, _ throws in
            let response = try gateway.get("/")
            #expect([502, 504].contains(response.status), "\(response)")
        }
    }

    @Test func `a response before the end of the request comes through`() throws {
        let script: ScriptedUpstream.Script = { exchange in
            try exchange.respond(403, [("Connection", "close")], body: "not you")
            exchange.closes = true
        }
        try withOpenGateway(readsBodies: false, script: script) { gateway, _ throws in
            let client = try gateway.connect()
            try client.send("POST", "/", [("Content-Length", "1000000")])
            try client.send(Payload.bytes(1000))
            let response = try client.response()
            #expect(response.status == 403 && response.text == "not you")
        }
    }

    @Test func `an Upgrade that no route allows is ignored or refused, and never made`() throws {
        let script: ScriptedUpstream.Script = { exchange in
            guard exchange.request["Upgrade"] == nil else {
                return try exchange.send("HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n\r\nraw bytes")
            }
            try exchange.respond(200, body: "ok")
        }
        try withOpenGateway(script: script) { gateway, upstream throws in
            let fields = [
                ("Connection", "Upgrade"), ("Upgrade", "chat/2"), ("Sec-WebSocket-Version", "13"),
                ("Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ=="),
            ]
            let client = try gateway.connect()
            try client.send("GET", "/chat", fields)
            try client.send("GET /early HTTP/1.1\r\nHost: a\r\n\r\n")
            #expect([200, 400].contains(try client.response().status))
            #expect(upstream.requests.allSatisfy { $0["Upgrade"] == nil })
            let ignored = try gateway.get("/", [("Connection", "Upgrade, HTTP2-Settings"), ("Upgrade", "h2c")])
            #expect(ignored.status == 200)
        }
    }

    @Test func `a switch of protocols that the upstream makes by itself is refused`() throws {
        let script: ScriptedUpstream.Script = {
            try $0.send("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\nraw bytes")
        }
        try withOpenGateway(script: script) { gateway, _ throws in
            let fields = [("Connection", "Upgrade"), ("Upgrade", "h2c")]
            expectRejection(try gateway.exchange("POST", "/", fields, body: []), 502, "upstream_invalid")
        }
    }

    @Test func `CONNECT and the asterisk reach no upstream`() throws {
        try withOpenGateway { gateway, upstream throws in
            let (connect, _) = try gateway.raw("CONNECT localhost:22 HTTP/1.1\r\nHost: localhost:22\r\n\r\n")
            #expect([400, 404, 405, 501].contains(connect.status), "\(connect)")
            let (star, _) = try gateway.raw("OPTIONS * HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
            #expect(star.status != 502, "\(star)")
            let (get, _) = try gateway.raw("GET * HTTP/1.1\r\nHost: a\r\n\r\n")
            expectRejection(get, 400, "request_invalid")
            #expect(!upstream.requests.contains { $0.method == "CONNECT" || $0.method == "GET" })
        }
    }

    @Test func `an unknown method goes through where the route takes any`() throws {
        try withOpenGateway { gateway, upstream throws in
            for method in ["PROPFIND", "QUERY", "M-SEARCH", "purge", "DELETE", "PATCH", "OPTIONS"] {
                #expect(try gateway.exchange(method, "/").status == 200, "\(method)")
                #expect(upstream.requests.last?.method == method)
            }
        }
    }

    @Test func `an absolute target decides the Host that the upstream sees`() throws {
        try withOpenGateway { gateway, upstream throws in
            let (response, _) = try gateway.raw(
                "GET http://a.test/x HTTP/1.1\r\nHost: a.test\r\nConnection: close\r\n\r\n")
            #expect(response.status == 200)
            let request = try upstream.onlyRequest()
            #expect(request.all("Host") == ["a.test"] && request.target == "/x")
        }
    }

    @Test func `a request id that could forge a log line is not kept, even from a trusted proxy`() throws {
        try withOpenGateway(server: "trusted_proxies: [127.0.0.0/8]") { gateway, upstream throws in
            for value in [String(repeating: "a", count: 4000), "a b\"c", "a{b}", "", "\u{e9}"] {
                let response = try gateway.get("/", [("X-Request-Id", value)])
                guard response.status == 200 else { continue }
                let kept = upstream.requests.last?["X-Request-Id"] ?? ""
                #expect(
                    kept == response["X-Request-Id"] && !kept.isEmpty && kept.utf8.count <= 256, "\(value.prefix(20))")
                #expect(kept.utf8.allSatisfy { $0 > 0x20 && $0 < 0x7F && $0 != 0x22 }, "\(kept)")
            }
        }
    }

    @Test func `an empty body stays empty and a missing one missing`() throws {
        try withOpenGateway { gateway, upstream throws in
            let client = try gateway.connect()
            #expect(try client.exchange("POST", "/1", body: []).status == 200)
            try client.send("PUT /2 HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n")
            #expect(try client.response().status == 200)
            #expect(try client.exchange("GET", "/3").status == 200)
            #expect(upstream.requests.allSatisfy { $0.body.isEmpty && $0.end == .complete })
            #expect(upstream.requests[0]["Content-Length"] == "0")
            #expect(upstream.requests[2]["Content-Length"] == nil && upstream.requests[2]["Transfer-Encoding"] == nil)
        }
    }

    @Test func `--listen stands for the listeners of the file`() throws {
        let upstream = try ScriptedUpstream()
        let folder = try TemporaryFolder()
        let socket = folder.file("other.sock")
        let gateway = try Gateway(
            GatewayConfig(endpoints: [upstream.url]).text, arguments: ["--listen", "unix:\(socket)"], in: folder)
        #expect(gateway.endpoints == [.unix(socket)])
        #expect(try gateway.get("/").text == "ok")
        try gateway.stop()
    }

    @Test func `a socket file is kept by a reload and gone after the end`() throws {
        let upstream = try ScriptedUpstream()
        let folder = try TemporaryFolder()
        let path = folder.file("front.sock")
        var config = GatewayConfig(endpoints: [upstream.url])
        config.listen = "- address: unix:\(path)\n- address: unix:\(path)2"
        try withMartlet(config.text) { gateway throws in
            config.listen = "- address: unix:\(path)"
            config.admin = "address: \(gateway.admin)"
            try gateway.reload(config.text)
            try waitUntil("the other is gone") { !FileManager.default.fileExists(atPath: path + "2") }
            #expect(try gateway.get("/").text == "ok")
        }
        #expect(!FileManager.default.fileExists(atPath: path))
    }

    @Test func `a file that is no socket is not taken away`() throws {
        let upstream = try ScriptedUpstream()
        let folder = try TemporaryFolder()
        let path = try folder.write("precious", to: "front.sock")
        var config = GatewayConfig(endpoints: [upstream.url])
        config.listen = "- address: unix:\(path)"
        #expect(throws: TestFailure.self) { try Gateway(config.text) }
        #expect(try String(contentsOfFile: path, encoding: .utf8) == "precious")
    }

    @Test func `a socket file that a dead process left behind is no obstacle, a living one's is`() throws {
        let upstream = try ScriptedUpstream()
        let folder = try TemporaryFolder()
        var config = GatewayConfig(endpoints: [upstream.url])
        config.listen = "- address: unix:\(folder.file("front.sock"))"
        let dead = try Gateway(config.text)
        dead.process.kill(9)
        _ = try dead.process.wait()
        try withMartlet(config.text) { gateway throws in
            #expect(try gateway.get("/").text == "ok")
            #expect(throws: TestFailure.self) { try Gateway(config.text) }
            #expect(try gateway.get("/").text == "ok")
        }
    }

    @Test func `a file that is no socket is never removed to listen at its path`() throws {
        let upstream = try ScriptedUpstream()
        let folder = try TemporaryFolder()
        let path = try folder.write("somebody's", to: "front.sock")
        var config = GatewayConfig(endpoints: [upstream.url])
        config.listen = "- address: unix:\(path)"
        #expect(throws: TestFailure.self) { try Gateway(config.text) }
        #expect(try String(contentsOfFile: path, encoding: .utf8) == "somebody's")
    }
}
