import MartletTesting
import Testing

/// The PROXY protocol on both sides of the gateway.
@Suite struct `The PROXY protocol` {
    private static let signature: [UInt8] = [
        0x0D, 0x0A, 0x0D, 0x0A, 0x00, 0x0D, 0x0A, 0x51, 0x55, 0x49, 0x54, 0x0A,
    ]
    private static let line = Array("PROXY TCP4 192.0.2.1 198.51.100.7 56324 443\r\n".utf8)
    private static let request = Array("GET /a HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n".utf8)

    /// A header that is written, and who the client is then.
    struct Case: CustomTestStringConvertible, Sendable {
        let testDescription: String
        let header: [UInt8]
        let client: String
    }

    private static let cases: [Case] = [
        Case(testDescription: "version 1", header: line, client: "192.0.2.1"),
        Case(
            testDescription: "version 1 with IPv6", header: Array("PROXY TCP6 2001:db8::1 ::1 80 443\r\n".utf8),
            client: "2001:db8::1"),
        Case(testDescription: "version 1, unknown", header: Array("PROXY UNKNOWN\r\n".utf8), client: "127.0.0.1"),
        Case(
            testDescription: "version 2",
            header: signature + [0x21, 0x11, 0, 12, 192, 0, 2, 1, 198, 51, 100, 7, 0xDC, 0x04, 1, 0xBB],
            client: "192.0.2.1"),
        Case(
            testDescription: "version 2 of the proxy itself", header: signature + [0x20, 0, 0, 0], client: "127.0.0.1"),
    ]

    private static func config(
        _ upstream: ScriptedUpstream, trusted: String = "127.0.0.0/8", server: String = "", listen: String = ""
    ) -> String {
        var config = GatewayConfig(
            endpoints: [upstream.url], server: "workers: 1\ntrusted_proxies: [\(trusted)]\n\(server)")
        config.listen = "- { address: 127.0.0.1:0, proxy_protocol: true }\n\(listen)"
        return config.text
    }

    @Test(arguments: cases)
    func `tells who the client is`(_ test: Case) throws {
        let upstream = try ScriptedUpstream()
        try withMartlet(Self.config(upstream)) { gateway throws in
            // All together, and with a pause within the header and behind it.
            for cut in [0, 3, test.header.count] {
                let bytes = test.header + Self.request
                let socket = try RawSocket(connectingTo: gateway.endpoint)
                try socket.send(Array(bytes[..<cut]))
                if cut > 0 { pause(.milliseconds(30)) }
                try socket.send(Array(bytes[cut...]))
                let response = String(decoding: try socket.receiveToEnd(), as: UTF8.self)
                #expect(response.hasPrefix("HTTP/1.1 200 "), "\(response)")
            }
            let received = upstream.requests.map { $0["X-Forwarded-For"] }
            #expect(received == [test.client, test.client, test.client])
            try waitUntil("the log names the client") {
                gateway.log.filter { $0["event"] == "request" && $0["client"] == test.client }.count == 3
            }
        }
    }

    @Test(arguments: [
        ("a request", "GET /a HTTP/1.1\r\nHost: a\r\n\r\n", "bad_signature"),
        ("TLS", "\u{16}\u{3}\u{1}", "bad_signature"),
        ("a bad address", "PROXY TCP4 1.2.3.4.5 1.2.3.4 1 2\r\n", "bad_address"),
        ("a line without end", "PROXY " + String(repeating: "x", count: 120), "bad_line"),
    ])
    func `closes a connection that does not begin with it without a response`(
        _ name: String, _ bytes: String, _ reason: String
    ) throws {
        let upstream = try ScriptedUpstream()
        try withMartlet(Self.config(upstream)) { gateway throws in
            let socket = try RawSocket(connectingTo: gateway.endpoint)
            try socket.send(bytes)
            #expect(try socket.receiveToEnd() == [])
            let metrics = try gateway.askAdmin("/metrics").text
            #expect(
                metrics.contains("martlet_proxy_header_refusals_total{reason=\"proxy_protocol.\(reason)\"} 1"),
                "\(metrics)")
            #expect(upstream.requests.isEmpty)
            let lines = gateway.log.filter { $0["event"] == "PROXY header rejected" }
            #expect(lines.count == 1 && lines.first?["level"] == "warning" && lines.first?["client"] == "127.0.0.1")
            #expect(lines.first?["code"] == "proxy_protocol.\(reason)")
        }
    }

    @Test func `may have 4 KiB of extensions, and not more`() throws {
        let upstream = try ScriptedUpstream()
        try withMartlet(Self.config(upstream)) { gateway throws in
            for (count, isAccepted) in [(600, true), (4081, true), (4082, false)] {
                let length = 12 + 3 + count
                let addresses: [UInt8] = [192, 0, 2, 1, 198, 51, 100, 7, 0xDC, 0x04, 1, 0xBB]
                let more = [0xEE, UInt8(count >> 8), UInt8(count & 0xFF)] + [UInt8](repeating: 1, count: count)
                let socket = try RawSocket(connectingTo: gateway.endpoint)
                let head = Self.signature + [0x21, 0x11, UInt8(length >> 8), UInt8(length & 0xFF)]
                try socket.send(head + addresses + more + Self.request)
                let response = String(decoding: try socket.receiveToEnd(), as: UTF8.self)
                #expect(response.hasPrefix("HTTP/1.1 200 ") == isAccepted, "\(count)")
            }
            try waitUntil("the log has it") { gateway.log.contains { $0["code"] == "proxy_protocol.bad_length" } }
        }
    }

    @Test func `is believed of trusted proxies alone`() throws {
        let upstream = try ScriptedUpstream()
        try withMartlet(Self.config(upstream, trusted: "10.0.0.0/8")) { gateway throws in
            let socket = try RawSocket(connectingTo: gateway.endpoint)
            try? socket.send(Self.line + Self.request)
            #expect(try socket.receiveToEnd() == [])
            #expect(upstream.requests.isEmpty)
        }
    }

    @Test func `is believed of whoever may open a Unix socket`() throws {
        let upstream = try ScriptedUpstream()
        let listen = "- { address: unix:m.sock, proxy_protocol: true, mode: \"0600\" }"
        try withMartlet(Self.config(upstream, trusted: "10.0.0.0/8", listen: listen)) { gateway throws in
            let socket = try RawSocket(connectingTo: .unix(gateway.folder.file("m.sock")))
            try socket.send(Self.line + Self.request)
            #expect(String(decoding: try socket.receiveToEnd(), as: UTF8.self).hasPrefix("HTTP/1.1 200 "))
            #expect(upstream.requests.first?["X-Forwarded-For"] == "192.0.2.1")
        }
    }

    private static let asking = Array(
        "GET /a HTTP/1.1\r\nHost: a\r\nConnection: close\r\nX-Forwarded-For: 6.6.6.6\r\nX-Forwarded-User: eve\r\n\r\n"
            .utf8)

    @Test func `lets the balancer alone speak of others, and not for whom it cannot name`() throws {
        let unix = Self.signature + [0x21, 0x31, 0, 216] + [UInt8](repeating: 0x2F, count: 216)
        let datagram = Self.signature + [0x21, 0x12, 0, 12, 192, 0, 2, 1, 198, 51, 100, 7, 0xDC, 0x04, 1, 0xBB]
        let rows: [(header: [UInt8], chain: String, user: String?)] = [
            (Self.signature + [0x20, 0, 0, 0], "6.6.6.6, 127.0.0.1", "eve"),
            (Array("PROXY UNKNOWN\r\n".utf8), "127.0.0.1", nil),
            (Self.signature + [0x21, 0, 0, 0], "127.0.0.1", nil), (unix, "127.0.0.1", nil),
            (datagram, "127.0.0.1", nil),
            (Self.line, "192.0.2.1", nil),
        ]
        let upstream = try ScriptedUpstream()
        try withMartlet(Self.config(upstream)) { gateway throws in
            for row in rows {
                let socket = try RawSocket(connectingTo: gateway.endpoint)
                try socket.send(row.header + Self.asking)
                _ = try socket.receiveToEnd()
                let request = try #require(upstream.requests.last)
                #expect(request["X-Forwarded-For"] == row.chain && request["X-Forwarded-User"] == row.user, "\(row)")
            }
            #expect(upstream.requests.count == rows.count)
        }
        try withMartlet(Self.config(upstream, trusted: "127.0.0.0/8, 192.0.2.0/24")) { gateway throws in
            let socket = try RawSocket(connectingTo: gateway.endpoint)
            try socket.send(Self.line + Self.asking)
            _ = try socket.receiveToEnd()
            #expect(upstream.requests.last?["X-Forwarded-For"] == "6.6.6.6, 192.0.2.1")
        }
    }

    @Test func `a Unix socket's peers speak of others where the listener trusts them`() throws {
        let upstream = try ScriptedUpstream()
        var config = GatewayConfig(endpoints: [upstream.url])
        config.listen =
            "- { address: 127.0.0.1:0 }\n- { address: unix:m.sock, trusted: true }\n- { address: unix:n.sock }"
        try withMartlet(config.text) { gateway throws in
            for (file, chain, user, client) in [
                ("m.sock", "6.6.6.6, unix", "eve", "6.6.6.6"), ("n.sock", "unix", nil, "unix"),
            ] as [(String, String, String?, String)] {
                let socket = try RawSocket(connectingTo: .unix(gateway.folder.file(file)))
                try socket.send(Self.asking)
                _ = try socket.receiveToEnd()
                #expect(
                    upstream.requests.last?["X-Forwarded-For"] == chain
                        && upstream.requests.last?["X-Forwarded-User"] == user)
                try waitUntil("the log names \(client)") { gateway.log.contains { $0["client"] == client } }
            }
        }
    }

    @Test func `is not waited for longer than for a head`() throws {
        let upstream = try ScriptedUpstream()
        try withMartlet(Self.config(upstream, server: "timeouts: { request_head: 300ms }")) { gateway throws in
            let silent = try RawSocket(connectingTo: gateway.endpoint)
            let slow = try RawSocket(connectingTo: gateway.endpoint)
            try slow.send("PROXY TCP4 192")
            #expect(silent.isEnded(within: .seconds(5)) && slow.isEnded(within: .seconds(5)))
        }
    }

    @Test func `counts the connections of the address that it tells`() throws {
        let upstream = try ScriptedUpstream()
        let limits = "limits: { connections_per_address: 1 }"
        // It does not hold for the proxy, whose connections they all are.
        try withMartlet(Self.config(upstream, server: limits)) { gateway throws in
            let first = try RawSocket(connectingTo: gateway.endpoint)
            let silent = try RawSocket(connectingTo: gateway.endpoint)
            try first.send(Self.line)
            try waitUntil("the first has its address") {
                let other = try RawSocket(connectingTo: gateway.endpoint)
                try? other.send(
                    "PROXY TCP4 192.0.2.2 198.51.100.7 1 2\r\n" + String(decoding: Self.request, as: UTF8.self))
                return try other.receiveToEnd().starts(with: Array("HTTP/1.1 200".utf8))
            }
            let second = try RawSocket(connectingTo: gateway.endpoint)
            try? second.send(Self.line + Self.request)
            #expect(try !second.receiveToEnd().starts(with: Array("HTTP/1.1 200".utf8)))
            try silent.send(Self.request)
            #expect(silent.isEnded(within: .seconds(5)))
        }
    }

    @Test func `tells the upstream who has connected, on a connection of its own`() throws {
        let listener = try Listener(on: .loopback(0))
        var config = GatewayConfig(
            endpoints: ["http://\(listener.endpoint)"], upstream: "proxy_protocol: v2", server: "workers: 1")
        config.listen = "- { address: 127.0.0.1:0 }\n- { address: unix:m.sock }"
        try withMartlet(config.text) { gateway throws in
            for _ in 0..<2 {
                let client = try HTTPClient(to: gateway.endpoint)
                try client.send("GET", "/a")
                let header = try receiveHeader(listener)
                #expect(Array(header.prefix(16)) == Self.signature + [0x21, 0x11, 0, 12])
                #expect(Array(header.suffix(12).prefix(8)) == [127, 0, 0, 1, 127, 0, 0, 1])
                #expect(port(header, 24) == client.socket.localPort && port(header, 26) == gateway.endpoint.port)
                #expect(try client.response().status == 200)
            }
            let client = try HTTPClient(to: .unix(gateway.folder.file("m.sock")))
            try client.send("GET", "/a")
            #expect(try receiveHeader(listener) == Self.signature + [0x20, 0, 0, 0])
            #expect(try client.response().status == 200)
        }
    }

    @Test func `is passed on`() throws {
        let listener = try Listener(on: .loopback(0))
        var config = GatewayConfig(
            endpoints: ["http://\(listener.endpoint)"], upstream: "proxy_protocol: v2",
            server: "workers: 1\ntrusted_proxies: [127.0.0.1]")
        config.listen = "- { address: 127.0.0.1:0, proxy_protocol: true }"
        try withMartlet(config.text) { gateway throws in
            let socket = try RawSocket(connectingTo: gateway.endpoint)
            try socket.send(Self.line + Self.request)
            let header = try receiveHeader(listener)
            #expect(Array(header.suffix(12).prefix(4)) == [192, 0, 2, 1] && port(header, 24) == 56_324)
            #expect(String(decoding: try socket.receiveToEnd(), as: UTF8.self).hasPrefix("HTTP/1.1 200 "))
        }
    }

    private func port(_ header: [UInt8], _ offset: Int) -> UInt16 {
        header.count > offset + 1 ? UInt16(header[offset]) << 8 | UInt16(header[offset + 1]) : 0
    }

    /// Accepts a connection, responds to the request on it, and returns the bytes before that request.
    private func receiveHeader(_ listener: Listener) throws -> [UInt8] {
        let socket = try #require(listener.accept(within: .seconds(10)))
        var bytes: [UInt8] = []
        let end = Array("\r\n\r\n".utf8)
        while !bytes.dropFirst(16).contains(Array("GET ".utf8)) || bytes.suffix(4) != end[...] {
            bytes += try socket.receive()
        }
        try socket.send("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
        let start = bytes.indices.first { bytes[$0...].starts(with: Array("GET ".utf8)) } ?? 0
        return Array(bytes[..<start])
    }
}
