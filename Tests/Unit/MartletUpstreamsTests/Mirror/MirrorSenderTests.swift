import MartletCore
import MartletFetch
import MartletTesting
import Testing

@testable import MartletUpstreams

/// Copies on their way, to servers that behave and to others.
@Suite struct `The sender of copies` {
    private static let fields = MirrorFields(dropping: [], mark: "X-Mirrored")

    private static func request(
        _ line: String = "GET /a?b HTTP/1.1", body: String? = nil, host: String? = nil, isRepeatable: Bool = false
    ) -> MirrorRequest {
        MirrorRequest(
            upstream: "shadow", head: Array("\(line)\r\nX-Own: 1\r\nContent-Length: 9\r\n\r\n".utf8),
            host: host.map { Array($0.utf8) }, fields: fields, body: body.map { Array($0.utf8) },
            isRepeatable: isRepeatable)
    }

    private func follow(_ sender: MirrorSender, _ port: UInt16, timeout: Duration = .seconds(10)) throws {
        var target = MirrorTarget("shadow")
        target.endpoints = [
            .init(
                EndpointLink(.tcp(address: "127.0.0.1", port: port), tls: nil, version: .http1),
                host: "own.test:\(port)")
        ]
        target.timeout = timeout
        try sender.follow([target])
    }

    private func wait(_ sender: MirrorSender, _ what: String, _ isDone: @escaping (MirrorCounts) -> Bool) throws {
        try waitUntil(what) { sender.counts["shadow"].map(isDone) ?? false }
    }

    @Test func `sends what was copied, byte for byte, and nothing of its own`() throws {
        let server = try ScriptedUpstream { try $0.respond(500, body: "dropped") }
        let sender = MirrorSender()
        defer { sender.shutdown() }
        try follow(sender, server.port)
        sender.send(Self.request("GET /a/./b?c HTTP/1.1"))
        sender.send(Self.request("POST /p HTTP/1.1", body: "body", host: "h.test"))
        sender.send(Self.request("DELETE /d HTTP/1.1", body: ""))
        sender.send(Self.request("HEAD /h HTTP/1.1"))
        try wait(sender, "all are sent") { $0.sent == 4 }
        let requests = server.requests.sorted { $0.target < $1.target }
        #expect(requests.map(\.target) == ["/a/./b?c", "/d", "/h", "/p"])
        #expect(requests.map(\.method) == ["GET", "DELETE", "HEAD", "POST"])
        let own = "own.test:\(server.port)"
        #expect(requests.map { $0["Host"] } == [own, own, own, "h.test"])
        #expect(requests.map { $0["Content-Length"] } == [nil, "0", nil, "4"])
        #expect(requests[3].text == "body")
        for request in requests {
            let names = Set(request.fields.map { $0.name.lowercased() })
            #expect(names.subtracting(["content-length"]) == ["host", "x-own", "x-mirrored"], "\(request)")
        }
    }

    @Test func `counts failures, and goes on`() throws {
        let resets = try ScriptedUpstream { _ in throw TestFailure("reset") }
        let closed = try ScriptedUpstream()
        let port = closed.port
        closed.stop()
        let sender = MirrorSender()
        defer { sender.shutdown() }
        try follow(sender, resets.port)
        sender.send(Self.request(body: "x"))
        try wait(sender, "it failed") { $0.failed == 1 }
        try follow(sender, port)
        sender.send(Self.request())
        try wait(sender, "the next failed, too") { $0.failed == 2 }
        let good = try ScriptedUpstream()
        try follow(sender, good.port)
        sender.send(Self.request())
        try wait(sender, "the last is sent") { $0.sent == 1 }
        #expect(good.requests.count == 1)
    }

    @Test func `waits for a response as long as it may, and for no more than 64`() throws {
        let hanging = try Listener(on: .loopback(0))
        let sender = MirrorSender()
        defer { sender.shutdown() }
        try follow(sender, hanging.endpoint.port, timeout: .milliseconds(500))
        for _ in 0..<70 { sender.send(Self.request()) }
        #expect(sender.counts["shadow"]?.dropped == 6)
        #expect(sender.admit(for: "shadow") == nil)
        try wait(sender, "all others failed") { $0.failed == 64 }
        #expect(sender.admit(for: "shadow") != nil)
    }

    @Test func `reads an endless response to a bound`() throws {
        let endless = try ScriptedUpstream { exchange in
            try exchange.socket.send("HTTP/1.1 200 OK\r\nContent-Length: 1000000000\r\n\r\n")
            let piece = [UInt8](repeating: 0x78, count: 64 * 1024)
            for _ in 0..<10_000 { try exchange.socket.send(piece) }
        }
        let sender = MirrorSender()
        defer { sender.shutdown() }
        try follow(sender, endless.port)
        sender.send(Self.request())
        try wait(sender, "it is sent") { $0.sent == 1 }
    }

    @Test func `does not repeat what may have an effect`() throws {
        let server = try ScriptedUpstream()
        let sender = MirrorSender()
        defer { sender.shutdown() }
        try follow(sender, server.port)
        sender.send(Self.request())
        try wait(sender, "the first is sent") { $0.sent == 1 }
        // The kept connection is closed with the next request on it.
        server.respond { _ in throw TestFailure("close") }
        sender.send(Self.request("POST /p HTTP/1.1", body: "x"))
        try wait(sender, "it failed") { $0.failed == 1 }
        #expect(server.requests.count { $0.target == "/p" } == 1)
    }

    @Test func `has no thread without upstreams, and fails what comes late`() throws {
        let server = try ScriptedUpstream()
        let sender = MirrorSender()
        try sender.follow([])
        sender.send(Self.request())
        #expect(sender.counts.isEmpty)
        try follow(sender, server.port)
        try sender.follow([])
        try follow(sender, server.port)
        sender.shutdown()
        sender.send(Self.request())
        #expect(sender.counts["shadow"]?.failed == 1 && server.requests.isEmpty)
        // Nothing starts again.
        try follow(sender, server.port)
        sender.send(Self.request())
        #expect(sender.counts["shadow"]?.failed == 2)
    }
}
