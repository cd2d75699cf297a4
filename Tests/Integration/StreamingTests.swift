import MartletTesting
import Testing

/// Bodies stream both ways, whole, in order, and never look complete when they are not.
@Suite struct `Streaming` {
    static let unlimited = "limits: { body_bytes: 100MiB }"
    static let echo: ScriptedUpstream.Script = { try $0.respond(200, bytes: $0.request.body) }

    @Test(arguments: [0, 1, 1023, 65_536, 1 << 20])
    func `a body with a length comes through and back`(count: Int) throws {
        let payload = Payload.bytes(count)
        try withOpenGateway(script: Self.echo) { gateway, upstream throws in
            let response = try gateway.exchange("POST", "/", body: payload)
            let isSame = response.body == payload && upstream.requests.first?.body == payload
            #expect(isSame && response.end == .complete && response["Content-Length"] == "\(count)")
            #expect(upstream.requests.first?["Content-Length"] == "\(count)")
        }
    }

    @Test(arguments: [1, 7, 4096, 100_000])
    func `a chunked body comes through and back`(size: Int) throws {
        let payload = Payload.bytes(size * 23 + 5)
        let script: ScriptedUpstream.Script = { exchange in
            try exchange.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: X-Sum\r\n\r\n")
            try exchange.send(Payload.chunked(exchange.request.body, size: size, trailers: "X-Sum: 7\r\n"))
        }
        try withOpenGateway(script: script) { gateway, upstream throws in
            let client = try gateway.connect()
            try client.send("PUT", "/", [("Transfer-Encoding", "chunked")])
            try client.send(Payload.chunked(payload, size: size))
            let response = try client.response()
            let isSame = response.body == payload && upstream.requests.first?.body == payload
            #expect(isSame && response.end == .complete && response["Transfer-Encoding"] == "chunked")
            #expect(response.trailers.map(\.description) == ["X-Sum: 7"])
        }
    }

    @Test func `64 MiB go both ways, with and without a length`() throws {
        let payload = Payload.bytes(64 << 20)
        try withOpenGateway(server: Self.unlimited, script: Self.echo) { gateway, upstream throws in
            let client = try gateway.connect()
            let socket = client.socket
            let sent = Background {
                try socket.send("POST /a HTTP/1.1\r\nHost: a\r\nContent-Length: \(payload.count)\r\n\r\n")
                try socket.send(payload, within: .seconds(60))
            }
            let response = try client.response(within: .seconds(90))
            try sent.value()
            let isSame = response.body == payload && response.end == .complete
            #expect(isSame)
            let coded = Payload.chunked(payload, size: 50_000)
            let sentAgain = Background {
                try socket.send("POST /b HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n")
                try socket.send(coded, within: .seconds(60))
            }
            let second = try client.response(within: .seconds(90))
            try sentAgain.value()
            let isSameAgain = second.body == payload && upstream.requests.last?.body == payload
            #expect(isSameAgain)
        }
    }

    @Test func `the first bytes of a response arrive before its last are made`() throws {
        let script: ScriptedUpstream.Script = { exchange in
            try exchange.send(
                "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n")
            try exchange.send("3\r\none\r\n")
            _ = try exchange.socket.receive()
            exchange.closes = true
        }
        try withOpenGateway(script: script) { gateway, _ throws in
            let client = try gateway.connect()
            try client.send("GET", "/")
            guard let head = try client.reader.readHead() else { throw TestFailure("no head") }
            #expect(head.status == 200)
            var seen = client.reader.pending
            while !String(decoding: seen, as: UTF8.self).contains("one") { seen += try client.socket.receive() }
        }
    }

    @Test func `the first bytes of a request arrive before its last are sent`() throws {
        let first = Box("")
        let script: ScriptedUpstream.Script = { exchange in
            first.withLock { $0 = "called" }
            try exchange.readBody()
            try exchange.respond(200, body: "done")
        }
        try withOpenGateway(readsBodies: false, script: script) { gateway, upstream throws in
            let client = try gateway.connect()
            try client.send("POST", "/", [("Transfer-Encoding", "chunked")])
            try client.send("3\r\none\r\n")
            try waitUntil("the upstream is asked") { first.value == "called" }
            try client.send("3\r\ntwo\r\n0\r\n\r\n")
            #expect(try client.response().text == "done")
            #expect(try upstream.onlyRequest().text == "onetwo")
        }
    }

    @Test func `a slow reader slows the upstream down instead of filling memory`() throws {
        let sent = Box(0)
        // Twice what the kernel's buffers take: tcp_rmem lets one socket grow to 32 MiB on some machines.
        let total = 128 << 20
        let script: ScriptedUpstream.Script = { exchange in
            try exchange.send("HTTP/1.1 200 OK\r\nContent-Length: \(total)\r\n\r\n")
            let piece = Payload.bytes(1 << 16)
            for _ in 0..<(total >> 16) {
                try exchange.send(piece)
                sent.withLock { $0 += piece.count }
            }
        }
        try withOpenGateway(script: script) { gateway, _ throws in
            let client = try HTTPClient(to: gateway.endpoint, receiveBuffer: 16_384)
            try client.send("GET", "/")
            _ = try client.reader.readHead()
            pause(.seconds(1))
            let early = sent.value
            #expect(early < total / 2, "\(early) of \(total) bytes had left the upstream")
            let rest = try client.socket.receiveToEndOf(total - client.reader.pending.count)
            #expect(rest)
        }
    }

    @Test func `a response without a length ends with its connection, and the client can tell`() throws {
        let script: ScriptedUpstream.Script = { exchange in
            try exchange.send("HTTP/1.1 200 OK\r\n\r\nuntil the end")
            exchange.closes = true
        }
        try withOpenGateway(script: script) { gateway, _ throws in
            let response = try gateway.get("/")
            #expect(response.text == "until the end" && response.end != .truncated)
            let old = try gateway.connect()
            try old.send("GET / HTTP/1.0\r\nHost: a\r\n\r\n")
            let oldResponse = try old.response()
            #expect(oldResponse.text == "until the end" && oldResponse["Transfer-Encoding"] == nil)
        }
    }

    static let truncated = [
        ("a length", "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc"),
        ("chunks", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n"),
        ("within a chunk", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n9\r\nabc"),
        (
            "before the end of trailers",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\nA: b\r\n"
        ),
        ("a bad chunk", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\nzz\r\n"),
        ("a chunk with LF", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\n\n"),
    ]

    @Test func `an upstream that dies in the middle is never made to look complete`() throws {
        let bytes = Box("")
        let script: ScriptedUpstream.Script = {
            try $0.send(bytes.value)
            $0.closes = true
        }
        try withOpenGateway(script: script) { gateway, _ throws in
            for (what, response) in Self.truncated {
                bytes.withLock { $0 = response }
                for version in ["1.1", "1.0"] {
                    let client = try gateway.connect()
                    try client.send("GET / HTTP/\(version)\r\nHost: a\r\n\r\n")
                    let raw = try client.socket.receiveToEnd()
                    let text = String(decoding: raw, as: UTF8.self)
                    #expect(!text.hasSuffix("0\r\n\r\n"), "\(what), \(version): \(text)")
                    if text.contains("Content-Length: 10") {
                        #expect(!text.hasSuffix("abc") || text.contains("\r\n\r\nabc"))
                    }
                }
            }
        }
    }

    @Test(arguments: [
        "zz\r\n", "3\r\nabc\r\nzz\r\n", "3\r\nabcd\r\n", "0\r\nBad Name: 1\r\n\r\n", "3\nabc\r\n0\r\n\r\n",
    ])
    func `chunks that are bad in the segment of the head are a bad response, reported as one`(_ chunks: String) throws {
        let script: ScriptedUpstream.Script = {
            try $0.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + chunks)
            $0.closes = true
        }
        try withOpenGateway(script: script) { gateway, _ throws in
            expectRejection(try gateway.get("/"), 502, "upstream_invalid", chunks)
            let peer = try HTTP2Peer(to: gateway.endpoint)
            let stream = try peer.outcome(of: try peer.request(["GET / HTTP/1.1", "Host: a"], ends: true))
            #expect(stream.head.hasPrefix("HTTP/1.1 502") && stream.hasEnded && stream.reset == nil, "\(stream)")
        }
    }

    @Test func `HEAD has the fields of a response and no body`() throws {
        let script: ScriptedUpstream.Script = { try $0.respond(200, [("X-A", "1")], body: "12345") }
        try withOpenGateway(script: script) { gateway, upstream throws in
            let client = try gateway.connect()
            let response = try client.exchange("HEAD", "/")
            #expect(response["Content-Length"] == "5" && response["X-A"] == "1" && response.body.isEmpty)
            #expect(try client.exchange("GET", "/").text == "12345")
            #expect(upstream.requests.map(\.method) == ["HEAD", "GET"])
        }
    }

    @Test(arguments: [204, 304]) func `a response that can have no body has none`(status: Int) throws {
        let script: ScriptedUpstream.Script = { try $0.send("HTTP/1.1 \(status) X\r\nETag: \"a\"\r\n\r\n") }
        try withOpenGateway(script: script) { gateway, _ throws in
            let client = try gateway.connect()
            for _ in 0..<2 {
                let response = try client.exchange("GET", "/")
                #expect(response.status == status && response["ETag"] == "\"a\"")
            }
        }
    }
}

extension RawSocket {
    /// Reads so many bytes and drops them; `false` where the stream ends before.
    func receiveToEndOf(_ count: Int) throws -> Bool {
        var left = count
        while left > 0 {
            let bytes = try receive(atMost: 1 << 18)
            if bytes.isEmpty { return false }
            left -= bytes.count
        }
        return true
    }
}
