import MartletHTTP2
import MartletTesting
import Testing

/// An upstream of HTTP/2 in clear text, whose responses a script gives.
final class FrameUpstream: Sendable {
    typealias Script = @Sendable (HTTP2Peer, Int32, HTTP2Peer.Stream) throws -> Void

    private let listener: Listener

    /// - Parameter script: is called once for each stream, when its request is whole.
    init(_ script: @escaping Script) throws {
        listener = try Listener(on: .loopback(0))
        let listener = listener
        _ = Background {
            while let socket = listener.accept() {
                _ = Background { try? Self.serve(socket, script) }
            }
        }
    }

    deinit { listener.close() }

    var url: String { "h2c://\(listener.endpoint)" }

    private static func serve(_ socket: RawSocket, _ script: Script) throws {
        let peer = try HTTP2Peer(serving: socket)
        var done: Set<Int32> = []
        while true {
            func next() -> Int32? { peer.streams.first { $0.value.hasEnded && !done.contains($0.key) }?.key }
            try peer.wait(for: "a request", within: .seconds(60)) { next() != nil }
            guard let stream = next() else { continue }
            done.insert(stream)
            try script(peer, stream, peer.streams[stream] ?? HTTP2Peer.Stream())
        }
    }
}

/// What happens between protocols: streams on one side, connections or streams on the other.
@Suite struct `Streams to upstreams` {
    /// Says how much came, and which trailers.
    private static let telling: FrameUpstream.Script = { peer, stream, request in
        try peer.respond(stream, ["HTTP/1.1 200 OK"])
        try peer.send(stream, Array("\(request.body.count) \(request.trailers)".utf8))
        try peer.end(stream)
    }

    @Test func `a head that is the whole response ends it for an HTTP/1 client`() throws {
        let upstream = try FrameUpstream { peer, stream, _ in
            try peer.respond(stream, ["HTTP/1.1 200 OK", "X-A: b"], ends: true)
        }
        try withMartlet(GatewayConfig(endpoints: [upstream.url]).text) { gateway throws in
            let client = try gateway.connect()
            for _ in 0..<2 {
                let response = try client.exchange("GET", "/")
                #expect(response.status == 200 && response["Content-Length"] == "0" && response.end == .complete)
            }
            let peer = try HTTP2Peer(to: gateway.endpoint)
            let stream = try peer.request(["GET / HTTP/1.1", "Host: localhost"], ends: true)
            let response = try peer.outcome(of: stream)
            #expect(response.value(of: "x-a") == "b" && response.value(of: "content-length") == nil)
        }
    }

    @Test func `a stream that is refused in the middle of its response is cut, not retried`() throws {
        let requests = Box(0)
        let upstream = try FrameUpstream { peer, stream, _ in
            requests.withLock { $0 += 1 }
            try peer.respond(stream, ["HTTP/1.1 200 OK", "Content-Length: 10"])
            try peer.send(stream, Array("abc".utf8))
            try peer.reset(stream, .refusedStream)
        }
        try withMartlet(GatewayConfig(endpoints: [upstream.url]).text) { gateway throws in
            let response = try gateway.connect().exchange("GET", "/")
            #expect(response.end != .complete && response.body.count <= 3)
            #expect(requests.value == 1)
        }
    }

    @Test func `trailers behind a body of known length pass`() throws {
        let upstream = try FrameUpstream(Self.telling)
        try withMartlet(GatewayConfig(endpoints: [upstream.url]).text) { gateway throws in
            let peer = try HTTP2Peer(to: gateway.endpoint)
            let stream = try peer.request(["POST / HTTP/1.1", "Host: localhost", "Content-Length: 5"], ends: false)
            try peer.send(stream, Array("hello".utf8))
            try peer.end(stream, trailers: "x-sum: 1\r\n")
            let response = try peer.outcome(of: stream)
            #expect(String(decoding: response.body, as: UTF8.self) == "5 x-sum: 1\r\n")
        }
    }

    @Test func `trailers that come before the decision pass`() throws {
        let upstream = try FrameUpstream(Self.telling)
        let apple = try AppleFixture()
        let config = GatewayConfig(
            endpoints: [upstream.url], providers: apple.provider(""), routes: GatewayConfig.closed)
        try withMartlet(config.text) { gateway throws in
            let peer = try HTTP2Peer(to: gateway.endpoint)
            let credential = "Authorization: Bearer \(try apple.token())"
            let stream = try peer.request(["POST / HTTP/1.1", "Host: localhost", credential], ends: false)
            try peer.send(stream, Array("hello".utf8))
            try peer.end(stream, trailers: "x-sum: 1\r\n")
            let response = try peer.outcome(of: stream)
            #expect(String(decoding: response.body, as: UTF8.self) == "5 x-sum: 1\r\n")
        }
    }

    @Test(arguments: ["Content-Length: 5", "X-Unknown: length"])
    func `a request whose endpoint is no use takes its body to the next one`(length: String) throws {
        let upstream = try FrameUpstream(Self.telling)
        // Takes the first bytes of a handshake and hangs up, when the request's body has long come.
        let listener = try Listener(on: .loopback(0))
        _ = Background {
            while let socket = listener.accept() {
                _ = try? socket.receive()
                _ = socket.isSilent(for: .milliseconds(300))
                socket.close()
            }
        }
        defer { listener.close() }
        let plain = try ScriptedUpstream { try $0.respond(200, body: "\($0.request.body.count) ") }
        for next in [upstream.url, plain.url] {
            let endpoints = ["https://\(listener.endpoint)", next]
            for keys in ["", "protocol: h2"] where keys.isEmpty || next == upstream.url {
                try withMartlet(GatewayConfig(endpoints: endpoints, upstream: keys, server: "workers: 1").text) {
                    let peer = try HTTP2Peer(to: $0.endpoint)
                    // Both endpoints have their turn; the last one already has a connection then.
                    for _ in 0..<3 {
                        let stream = try peer.request(["POST / HTTP/1.1", "Host: localhost", length], ends: false)
                        try peer.send(stream, Array("hello".utf8))
                        try peer.end(stream)
                        let response = try peer.outcome(of: stream)
                        #expect(String(decoding: response.body, as: UTF8.self) == "5 ", "\(next) \(keys)")
                    }
                }
            }
        }
    }
}
