import MartletTesting
import Testing

/// Requests that come back to a gateway, and gateways behind each other.
@Suite struct `Loops` {
    private static func config(on socket: String, to endpoint: String) -> String {
        var config = GatewayConfig(endpoints: [endpoint])
        config.listen = "- address: 127.0.0.1:0\n- { address: \"unix:\(socket)\" }"
        return config.text
    }

    @Test func `an endpoint that is the gateway itself is found in the second round`() throws {
        let folder = try TemporaryFolder()
        let socket = folder.file("own.sock")
        try withMartlet(Self.config(on: socket, to: "unix:\(socket)")) { gateway throws in
            let client = try gateway.connect()
            for method in ["GET", "POST"] {
                let response = try client.exchange(method, "/a", method == "POST" ? [("Content-Length", "0")] : [])
                // The one that found it wrote the body, and each round its own request ID into the head.
                #expect(response.status == 508 && response.member("code") == "loop_detected", "\(response)")
            }
            try waitUntil("each round is in the log") {
                gateway.log.count { $0["reason"] == "request.loop_detected" } == 2
                    && gateway.log.count { $0["status"] == "508" } == 4
            }
        }
    }

    @Test func `a loop through another gateway is found, and a chain is none`() throws {
        let folder = try TemporaryFolder()
        let (front, back) = (folder.file("front.sock"), folder.file("back.sock"))
        try withMartlet(Self.config(on: front, to: "unix:\(back)")) { gateway throws in
            try withMartlet(Self.config(on: back, to: "unix:\(front)")) { behind throws in
                let response = try gateway.get("/a")
                #expect(response.status == 508 && response.member("code") == "loop_detected", "\(response)")
                try waitUntil("the first gateway found it") {
                    gateway.log.count { $0["reason"] == "request.loop_detected" } == 1
                }
                #expect(behind.log.count { $0["reason"] == "request.loop_detected" } == 0)
            }
        }
        let upstream = try ScriptedUpstream { try $0.respond(200, body: "ok") }
        try withMartlet(Self.config(on: back, to: upstream.url)) { _ throws in
            try withMartlet(Self.config(on: front, to: "unix:\(back)")) { gateway throws in
                let response = try gateway.get("/a", [("Via", "1.0 fred")])
                #expect(response.text == "ok", "\(response)")
                let seen = try #require(upstream.requests.last).fields.filter { $0.name == "Via" }.map(\.value)
                #expect(seen.count == 3 && seen[0] == "1.0 fred" && seen[1] != seen[2], "\(seen)")
                #expect(seen[1...].allSatisfy { $0.hasPrefix("1.1 martlet-") }, "\(seen)")
                // Whoever claims to have been here harms that request alone.
                expectRejection(try gateway.get("/a", [("Via", seen[1])]), 508, "loop_detected")
                #expect(try gateway.get("/a").text == "ok")
            }
        }
    }
}
