import Foundation
import MartletTesting
import Testing

/// Active health checks of upstream endpoints: who is probed, what is logged and counted, and what a reload keeps.
@Suite struct `Health checks` {
    private static let check = "health_check: { path: /up, interval: 100ms, unhealthy: 2 }"

    /// The log lines about an endpoint.
    private func lines(_ gateway: Gateway, _ event: String, _ url: String) -> [LogLine] {
        gateway.log.filter { $0["event"] == "upstream endpoint \(event)" && $0["endpoint"] == url }
    }

    @Test func `an endpoint that fails its probes is reported, and again when it has recovered`() throws {
        let good = try ScriptedUpstream()
        let bad = try ScriptedUpstream { try $0.respond($0.request.target == "/up" ? 503 : 200) }
        let config = GatewayConfig(endpoints: [good.url, bad.url], upstream: Self.check)
        try withMartlet(config.text) { gateway throws in
            try waitUntil("the other is unhealthy") { !lines(gateway, "unhealthy", bad.url).isEmpty }
            let line = try #require(lines(gateway, "unhealthy", bad.url).first)
            #expect(line["level"] == "warning" && line["upstream"] == "api" && line["reason"] == "status 503")
            let page = try gateway.askAdmin("/metrics").text
            #expect(page.contains("martlet_upstream_endpoints_unhealthy{upstream=\"api\"} 1\n"))
            #expect(page.contains("martlet_upstream_health_checks_total{upstream=\"api\",result=\"failure\"}"))
            // A reload keeps the state: there is no second line.
            try gateway.reload(config.text + "\n")
            try waitUntil("it is reloaded") {
                try gateway.askAdmin("/metrics").text.contains("martlet_server_reloads_total{result=\"success\"} 1\n")
            }
            let probes = bad.requests.count
            try waitUntil("it is probed further") { bad.requests.count > probes + 3 }
            #expect(lines(gateway, "unhealthy", bad.url).count == 1)
            #expect(
                try gateway.askAdmin("/metrics").text.contains(
                    "martlet_upstream_endpoints_unhealthy{upstream=\"api\"} 1\n"))
            bad.respond { try $0.respond(204) }
            try waitUntil("it is healthy again") { !lines(gateway, "healthy again", bad.url).isEmpty }
            #expect(lines(gateway, "unhealthy", good.url).isEmpty)
        }
        #expect(good.requests.allSatisfy { $0.target == "/up" && $0["host"] == "\(good.endpoint)" })
    }

    @Test func `an endpoint that speaks HTTP/2 with prior knowledge is probed again and again`() throws {
        let upstream = try GRPCUpstream()
        try withMartlet(GatewayConfig(endpoints: [upstream.url], upstream: Self.check).text) { gateway throws in
            try waitUntil("it was probed some times") { upstream.heads.value.count > 4 }
            #expect(gateway.log.allSatisfy { $0["event"] != "upstream endpoint unhealthy" })
            #expect(try !gateway.askAdmin("/metrics").text.contains("{upstream=\"api\",result=\"failure\"} 1"))
        }
    }

    /// Whether the gateway has a thread that probes.
    private func hasThread(_ gateway: Gateway) throws -> Bool {
        let folder = "/proc/\(gateway.process.identifier)/task"
        return try FileManager.default.contentsOfDirectory(atPath: folder).contains { thread in
            let name = try? String(contentsOfFile: "\(folder)/\(thread)/comm", encoding: .utf8)
            return name == "martlet-health\n"
        }
    }

    @Test func `a gateway has a thread for checks only while there are any`() throws {
        let upstream = try ScriptedUpstream()
        let without = GatewayConfig(endpoints: [upstream.url]).text
        let with = GatewayConfig(endpoints: [upstream.url], upstream: Self.check).text
        try withMartlet(without) { gateway throws in
            #expect(try gateway.get("/").status == 200)
            #expect(try !hasThread(gateway) && !gateway.askAdmin("/metrics").text.contains("upstream_health_checks"))
            #expect(upstream.requests.count == 1)
            try gateway.reload(with)
            try waitUntil("it is probed") { upstream.requests.count > 3 }
            #expect(try hasThread(gateway))
            try gateway.reload(without)
            try waitUntil("there is no thread any more") { try !hasThread(gateway) }
        }
    }

    @Test func `a gRPC health service is called`() throws {
        let upstream = try GRPCUpstream()
        let config = GatewayConfig(
            endpoints: [upstream.url], upstream: "health_check: { grpc: true, interval: 200ms, unhealthy: 1 }")
        try withMartlet(config.text) { gateway throws in
            // This server echoes the empty message, which is the status UNKNOWN, and does not end its response.
            try waitUntil("it is unhealthy") { !lines(gateway, "unhealthy", upstream.url).isEmpty }
            let head = try #require(upstream.heads.value.first)
            #expect(head.hasPrefix("POST /grpc.health.v1.Health/Check "))
        }
    }
}
