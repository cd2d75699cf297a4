import Foundation
import MartletTesting
import Testing

/// What clients can take of them, and what happens when there are none.
@Suite(.serialized, .timeLimit(.minutes(3))) struct `Descriptors` {
    /// An upstream whose `/slow/` never responds.
    private static let slow: ScriptedUpstream.Script = { exchange in
        guard exchange.request.target.hasPrefix("/slow") else { return try exchange.respond(200, body: "ok") }
        _ = exchange.waitForEnd(within: .seconds(60))
    }

    /// What a trusted proxy says of its client.
    private static func client(_ address: String) -> [(String, String)] { [("X-Forwarded-For", address)] }

    /// A gateway that may have 512: 128 connections to upstreams, of which one network may have 96.
    private func withFew(_ body: (Gateway) throws -> Void) throws {
        let upstream = try ScriptedUpstream(Self.slow)
        let config = GatewayConfig(endpoints: [upstream.url], server: "trusted_proxies: [127.0.0.1/32]")
        let gateway = try Gateway(config.text, launcher: ["/usr/bin/prlimit", "--nofile=512:512"])
        do { try body(gateway) } catch {
            throw TestFailure("\(error)\n--- the gateway wrote:\n\(gateway.everything.suffix(4000))")
        }
        try gateway.stop()
    }

    /// Opens streams that never end, and returns their connections.
    private func flood(_ gateway: Gateway, connections: Int = 3, streams: Int = 60) throws -> [HTTP2Caller] {
        try (0..<connections).map { _ in
            let caller = try HTTP2Caller(to: gateway)
            for _ in 0..<streams { _ = try caller.ask("GET", "/slow/x", Self.client("203.0.113.7")) }
            return caller
        }
    }

    @Test func `of streams that never end leave connections to others, and probes and operators are served`() throws {
        try withFew { gateway throws in
            let warning = gateway.log.first { $0["event"] == "open file limit too low for server.limits.connections" }
            #expect(warning?["limit"] == "512" && warning?["admitted"] == "128")
            let callers = try flood(gateway)
            try waitUntil("the flood has its share") {
                gateway.log.contains { $0["reason"] == "upstream.too_many_connections" }
            }
            let refused = try gateway.get("/x", Self.client("203.0.113.9"))
            #expect(refused.status == 200, "another network: \(refused)")
            let own = try gateway.get("/x", Self.client("203.0.113.7"))
            expectRejection(own, 503, "overloaded")
            #expect(own["Retry-After"] == "1")
            #expect(try gateway.askAdmin("/livez").status == 200)
            #expect(try gateway.askAdmin("/readyz").status == 200)
            #expect(try gateway.askAdmin("/metrics").status == 200)
            #expect(try gateway.openDescriptors() < 400)
            _ = consume callers
            try waitUntil("the network has its share again") {
                try gateway.get("/x", Self.client("203.0.113.7")).status == 200
            }
        }
    }
}
