import MartletConfig
import MartletCore
import MartletDecisionsTesting
import MartletTesting
import MartletUpstreams
import Testing

@testable import MartletDecisions
@testable import MartletProxy

/// What a loop copies of requests.
@Suite struct `Copies of requests` {
    /// Records what it gets.
    private final class Receiver: MirrorReceiving {
        let sent = Box<[MirrorRequest]>([])
        let asked = Box(0)
        let released = Box(0)
        let room: Int

        init(room: Int = .max) { self.room = room }

        func admit(for upstream: String) -> MirrorPermit? {
            asked.withLock { $0 += 1 }
            guard asked.value <= room else { return nil }
            return MirrorPermit { [released] in released.withLock { $0 += 1 } }
        }

        func send(_ request: MirrorRequest) { sent.withLock { $0.append(request) } }

        var heads: [String] { sent.value.map { String(decoding: $0.head, as: UTF8.self) } }
        var bodies: [String?] { sent.value.map { $0.body.map { String(decoding: $0, as: UTF8.self) } } }
    }

    private static func bench(
        _ receiver: Receiver, percentage: SamplePercentage = .all,
        configure: (inout RouteConfiguration) -> Void = { _ in }
    ) throws -> LoopBench {
        var route = SampleSettings.route("copied")
        let location = route.name.location
        route.upgrade.protocols = ["websocket"]
        route.mirror = MirrorConfiguration(upstream: Located("shadow", at: location))
        route.mirror?.percentage = percentage
        configure(&route)
        return try LoopBench { [route] in
            $0.routes = [route]
            $0.upstreams = ["shadow"]
            $0.mirror = receiver
        }
    }

    private static func post(_ length: Int) -> String {
        "POST /copied/x HTTP/1.1\r\nHost: a\r\nContent-Length: \(length)\r\n\r\n"
    }

    @Test func `a request without a body is handed over with the head of its own upstream`() throws {
        let receiver = Receiver()
        let bench = try Self.bench(receiver)
        let exchange = bench.forward("GET /copied/x?y HTTP/1.1\r\nHost: a\r\nX-Own: 1\r\n\r\n")
        #expect(exchange.sent.hasPrefix("GET /copied/x?y HTTP/1.1\r\n"))
        #expect(receiver.heads == [exchange.sent])
        let copy = try #require(receiver.sent.value.first)
        #expect(copy.upstream == "shadow" && copy.body == nil && copy.isRepeatable && receiver.asked.value == 0)
        // The bench's other upstreams have a host of their own.
        #expect(copy.host == Array("shadow.test".utf8))
    }

    @Test func `the mark is no field of a client`() throws {
        let bench = try Self.bench(Receiver())
        let sent = bench.forward("GET /copied/x HTTP/1.1\r\nHost: a\r\nx_mirrored: 1\r\nX-B: 2\r\n\r\n").sent
        #expect(!sent.lowercased().contains("mirrored") && sent.contains("X-B: 2"))
    }

    @Test func `a body is collected until it is complete`() throws {
        let receiver = Receiver()
        let bench = try Self.bench(receiver)
        let exchange = bench.forward(Self.post(5))
        bench.receive("ab", for: exchange.exchange)
        #expect(receiver.sent.value.isEmpty)
        bench.receive("cde", for: exchange.exchange)
        #expect(receiver.bodies == ["abcde"] && receiver.sent.value.first?.isRepeatable == false)
        #expect(receiver.released.value == 1)
    }

    @Test func `chunks become content`() throws {
        let receiver = Receiver()
        let bench = try Self.bench(receiver)
        let exchange = bench.forward("POST /copied/x HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n")
        bench.receive("2\r\nab\r\n1\r\nc\r\n", for: exchange.exchange)
        #expect(receiver.sent.value.isEmpty)
        bench.receive("0\r\n\r\n", for: exchange.exchange)
        #expect(receiver.bodies == ["abc"])
    }

    @Test func `an empty body is none that is waited for`() throws {
        let receiver = Receiver()
        _ = try Self.bench(receiver).forward(Self.post(0))
        #expect(receiver.bodies == [""] && receiver.asked.value == 0)
    }

    @Test func `long bodies are not copied at all`() throws {
        let receiver = Receiver()
        let bench = try Self.bench(receiver)
        _ = bench.forward(Self.post(MirrorRequest.maximumBodyBytes + 1))
        #expect(receiver.asked.value == 0)
        let chunked = bench.forward("POST /copied/x HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n")
        let chunk = "8000\r\n" + String(repeating: "x", count: 0x8000) + "\r\n"
        for _ in 0..<3 { bench.receive(chunk, for: chunked.exchange) }
        #expect(receiver.released.value == 1)
        bench.receive("0\r\n\r\n", for: chunked.exchange)
        #expect(receiver.sent.value.isEmpty)
        let largest = bench.forward(Self.post(MirrorRequest.maximumBodyBytes))
        bench.receive([UInt8](repeating: 0x78, count: MirrorRequest.maximumBodyBytes), for: largest.exchange)
        #expect(receiver.sent.value.map { $0.body?.count } == [MirrorRequest.maximumBodyBytes])
    }

    @Test func `a client that stops in the middle sends no copy`() throws {
        let receiver = Receiver()
        let bench = try Self.bench(receiver)
        let exchange = bench.forward(Self.post(5))
        bench.receive("ab", for: exchange.exchange)
        bench.run { $0.abandon(exchange.downstream) }
        #expect(receiver.sent.value.isEmpty && receiver.released.value == 1)
    }

    @Test func `nothing is collected where there is no room`() throws {
        let receiver = Receiver(room: 0)
        let bench = try Self.bench(receiver)
        let exchange = bench.forward(Self.post(3))
        bench.receive("abc", for: exchange.exchange)
        #expect(receiver.asked.value == 1 && receiver.sent.value.isEmpty)
        #expect(exchange.server.end.text().hasSuffix("abc"))
    }

    @Test func `upgrades, other routes and 0 percent have no copies`() throws {
        let receiver = Receiver()
        let bench = try Self.bench(receiver)
        let upgrade = BenchText.upgrade.replacing("/api/", with: "/copied/")
        #expect(bench.forward(upgrade).sent.contains("Upgrade: websocket"))
        _ = bench.forward(BenchText.get)
        _ = try Self.bench(receiver, percentage: SamplePercentage(millionths: 0)).forward(
            "GET /copied/x HTTP/1.1\r\nHost: a\r\n\r\n")
        #expect(receiver.sent.value.isEmpty && receiver.asked.value == 0)
    }

    @Test func `as many are copied as the route says`() throws {
        let receiver = Receiver()
        let bench = try Self.bench(receiver, percentage: SamplePercentage(millionths: 250_000))
        bench.run { $0.context.scratch.samples = SampleNumbers(seed: 1) }
        for _ in 0..<400 { _ = bench.forward("GET /copied/x HTTP/1.1\r\nHost: a\r\n\r\n") }
        #expect((70...130).contains(receiver.sent.value.count), "\(receiver.sent.value.count)")
    }

    @Test func `the host is that of the route, or as the other upstream has it`() throws {
        let receiver = Receiver()
        _ = try Self.bench(receiver) { $0.rewrite.host = "internal.test" }.forward(
            "GET /copied/x HTTP/1.1\r\nHost: a\r\n\r\n")
        #expect(receiver.sent.value.map(\.host) == [Array("internal.test".utf8)])
    }
}
