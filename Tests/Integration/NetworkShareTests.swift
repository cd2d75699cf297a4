import Foundation
import MartletTesting
import Testing

/// What requests of one network of clients leave to those of others, where an operator has bounded them.
@Suite struct `Bounds of upstreams and routes` {
    /// A bound of 64.
    struct Bound: CustomTestStringConvertible, Sendable {
        let testDescription: String
        var upstream = ""
        var route = ""
        /// Whether requests beyond it wait.
        var waits = false
    }

    static let bounds = [
        Bound(testDescription: "max_requests", upstream: "breaker: { max_requests: 64 }"),
        Bound(
            testDescription: "max_connections",
            upstream: "breaker: { max_connections: 64, max_pending: 64, queue_timeout: 30s }", waits: true),
        Bound(testDescription: "concurrency", route: ", limits: { concurrency: 64 }"),
    ]

    private func routes(_ more: String) -> String {
        "- { name: all, match: { path: /** }, auth: none, upstream: api\(more) }"
    }

    /// Has a client behind a trusted proxy send a request.
    private func send(_ target: String, from address: String, to gateway: Gateway) throws -> HTTPClient {
        let client = try gateway.connect()
        try client.send("GET \(target) HTTP/1.1\r\nHost: a\r\nX-Forwarded-For: \(address)\r\n\r\n")
        return client
    }

    @Test(arguments: bounds) func `leave an eighth to other networks`(_ bound: Bound) throws {
        let gate = DispatchSemaphore(value: 0)
        let upstream = try ScriptedUpstream { exchange in
            if exchange.request.target == "/held" { gate.wait() }
            try exchange.respond(200, body: "ok")
        }
        let config = GatewayConfig(
            endpoints: [upstream.url], upstream: bound.upstream,
            server: "workers: 1\ntrusted_proxies: [127.0.0.1/32]", routes: routes(bound.route))
        try withMartlet(config.text) { gateway throws in
            let flood = try (0..<64).map { _ in try send("/held", from: "10.0.0.1", to: gateway) }
            try waitUntil("seven eighths are under way") { upstream.requests.count == 56 }
            let others = try (2..<10).map { try send("/", from: "10.0.0.\($0)", to: gateway) }
            for other in others { #expect(try other.response().status == 200) }
            for _ in flood { gate.signal() }
            let statuses = try flood.map { try $0.response().status }
            #expect(statuses.count { $0 == 200 } == (bound.waits ? 64 : 56), "\(statuses)")
            #expect(statuses.allSatisfy { $0 == 200 || $0 == 503 })
        }
    }

    @Test func `leave streams to other networks where connections carry many`() throws {
        let state = Box((held: [Int32](), isOpen: false))
        let upstream = try FrameUpstream { peer, stream, request in
            let isHeld = request.head.contains("/held")
            let due = state.withLock { state -> [Int32] in
                if isHeld, !state.isOpen {
                    state.held.append(stream)
                    return []
                }
                guard request.head.contains("/open") else { return [stream] }
                defer { state.held = [] }
                state.isOpen = true
                return state.held + [stream]
            }
            for stream in due { try peer.respond(stream, ["HTTP/1.1 200 OK"], ends: true) }
        }
        let config = GatewayConfig(
            endpoints: [upstream.url], upstream: "breaker: { max_connections: 1, queue_timeout: 30s }",
            server: "workers: 1\ntrusted_proxies: [127.0.0.1/32]", routes: routes(""))
        try withMartlet(config.text) { gateway throws in
            let flood = try (0..<120).map { _ in try send("/held", from: "10.0.0.1", to: gateway) }
            // Of 100 streams, half and three quarters of the other half.
            try waitUntil("seven eighths are under way") { state.value.held.count == 88 }
            #expect(try send("/", from: "10.0.0.2", to: gateway).response().status == 200)
            #expect(try send("/open", from: "10.0.0.3", to: gateway).response().status == 200)
            #expect(try flood.allSatisfy { try $0.response().status == 200 })
        }
    }
}
