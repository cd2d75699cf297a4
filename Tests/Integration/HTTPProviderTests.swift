import Foundation
import MartletTesting
import Testing

/// Credentials that a service of one's own verifies (`kind: http`), and headers that are credentials.
@Suite(.timeLimit(.minutes(2))) struct `A service that verifies credentials` {
    private static let block = """
        partner:
          kind: http
          url: "URL"
          accepts: [{ bearer_prefix: pt_ }, { header: X-Api-Key }, { basic: true }]
          sign_in: true
          timeout: TIMEOUT
          circuit: { failures: 3, open: 200ms }
        """

    private static let routes = """
        - { name: public, match: { path: /public/** }, auth: none, upstream: api }
        - { name: maybe, match: { path: /maybe/** }, auth: { providers: [partner], mode: optional }, upstream: api }
        - { name: forwarding, match: { path: /forwarding/** }, auth: { providers: [partner] }, forward_credentials: true, upstream: api }
        - { name: all, match: { path: /** }, auth: { providers: [partner] }, upstream: api }
        """

    /// Says that a credential is valid which begins as the last word of the path of its request does.
    private static let active: ScriptedUpstream.Script = {
        try $0.respond(200, body: #"{"active":true,"subject":"ada","claims":{"role":"admin"},"cache_for":60}"#)
    }

    private func withService(
        at endpoint: Endpoint = .loopback(0), path: String = "/verify", more: String = "", timeout: String = "5s",
        _ script: @escaping ScriptedUpstream.Script = active,
        _ body: (Gateway, ScriptedUpstream, ScriptedUpstream) throws -> Void
    ) throws {
        let service = try ScriptedUpstream(on: endpoint, script)
        let upstream = try ScriptedUpstream()
        let separator = service.url.hasPrefix("unix:") ? ":" : ""
        let block = Self.block.replacing("URL", with: "\(service.url)\(separator)\(path)")
        let provider = block.replacing("TIMEOUT", with: timeout) + "\n" + more
        let config = GatewayConfig(endpoints: [upstream.url], providers: provider, routes: Self.routes)
        try withMartlet(config.text) { try body($0, upstream, service) }
    }

    private func object(_ message: HTTPMessage) throws -> [String: Any] {
        try #require(try JSONSerialization.jsonObject(with: Data(message.body)) as? [String: Any])
    }

    @Test func `is asked once for a credential that may be reused, and upstreams get the identity alone`() throws {
        try withService { gateway, upstream, service throws in
            // On one connection: each event loop has a cache of its own.
            let client = try gateway.connect()
            for _ in 0..<3 {
                let response = try client.exchange("GET", "/b?secret=1", [("X-Api-Key", "k-1")])
                #expect(response.status == 200, "\(response)")
            }
            let asked = try service.onlyRequest()
            #expect(asked.startLine == "POST /verify HTTP/1.1" && asked["Content-Type"] == "application/json")
            let call = try object(asked)
            #expect(call["credential"] as? [String: String] == ["kind": "header", "value": "k-1"])
            #expect(call["provider"] as? String == "partner")
            let request = call["request"] as? [String: String]
            #expect(request?["method"] == "GET" && request?["path"] == "/b" && request?["client"] == "127.0.0.1")
            #expect(request?["host"] == "localhost")
            let received = try #require(upstream.requests.last)
            #expect(received["X-Auth-Subject"] == "partner:ada" && received["X-Api-Key"] == nil)
            #expect(!gateway.everything.contains("k-1"))
        }
    }

    @Test func `is asked about what it accepts alone, with one credential`() throws {
        try withService { gateway, upstream, service throws in
            let basic = ("Authorization", "Basic YTpi")
            let cases: [([(String, String)], Int, String)] = [
                ([("Authorization", "Bearer other")], 401, "credential_invalid"),
                ([("Authorization", "Bearer mat_1")], 401, "credential_invalid"),
                ([("X-Api-Key", "mat_1")], 401, "credential_invalid"), ([("X-Api-Key", "")], 401, "credential_invalid"),
                ([("X_Api_Key", "k")], 401, "credential_missing"), ([], 401, "credential_missing"),
                ([("X-Api-Key", "k"), basic], 400, "request_invalid"),
                ([("X-Api-Key", "k"), ("X-Api-Key", "k")], 400, "request_invalid"),
            ]
            for (fields, status, code) in cases {
                let response = try gateway.get("/a", fields)
                #expect(response.status == status && response.member("code") == code, "\(fields) \(response)")
            }
            #expect(service.requests.isEmpty && upstream.requests.isEmpty)
            for field in [basic, ("Authorization", "Bearer pt_1"), ("X-Api-Key", "k")] {
                #expect(try gateway.get("/a", [field]).status == 200)
            }
            let kinds = try service.requests.map { try object($0)["credential"] as? [String: String] }
            #expect(kinds.map { $0?["kind"] } == ["basic", "bearer", "header"])
            // The field is no upstream's on any route, in no spelling.
            _ = try gateway.get("/public/a", [("X-Api-Key", "k")])
            #expect(upstream.requests.last?.target == "/public/a" && upstream.requests.last?["X-Api-Key"] == nil)
            _ = try gateway.get("/maybe/a", [("X_Api_Key", "k")])
            #expect(upstream.requests.last?["X_Api_Key"] == nil && upstream.requests.last?["X-Auth-Subject"] == nil)
            _ = try gateway.get("/forwarding/a", [("X-Api-Key", "k")])
            #expect(upstream.requests.last?["X-Api-Key"] == "k")
        }
    }

    @Test func `is an outage where it says nothing, and a rejection where it says so`() throws {
        let responses: [(Int, String, Int, String)] = [
            (200, #"{"active":false,"code":"gone"}"#, 401, "credential_invalid"),
            (401, "", 401, "credential_invalid"), (403, "", 403, "not_allowed"),
            (200, #"{"active":true}"#, 503, "auth_unavailable"), (500, "", 503, "auth_unavailable"),
            (200, #"{"active":true,"subject":"ada","expires_at":1}"#, 401, "credential_invalid"),
            (
                200,
                "{\"active\":true,\"subject\":\"ada\",\"claims\":{\"a\":\"\(String(repeating: "a", count: 300_000))\"}}",
                503, "auth_unavailable"
            ),
            (302, "", 503, "auth_unavailable"),
        ]
        try withService(more: "") { gateway, upstream, service throws in
            for (status, body, expected, code) in responses {
                service.respond { try $0.respond(status, body: body) }
                let response = try gateway.get("/a", [("X-Api-Key", "k")])
                #expect(response.status == expected && response.member("code") == code, "\(status) \(body.prefix(60))")
            }
            #expect(upstream.requests.isEmpty)
        }
    }

    @Test func `one that hangs costs the time that is configured, and is then not called for a while`() throws {
        let hanging: ScriptedUpstream.Script = { _ in Thread.sleep(forTimeInterval: 2) }
        try withService(timeout: "500ms", hanging) { gateway, _, service throws in
            for _ in 0..<3 {
                let response = try gateway.get("/a", [("X-Api-Key", "k")])
                expectUnavailable(response)
            }
            #expect(service.requests.count == 3)
            expectUnavailable(try gateway.get("/a", [("X-Api-Key", "k")]))
            #expect(service.requests.count == 3)
            service.respond(with: Self.active)
            try waitUntil("it is called again") { try gateway.get("/a", [("X-Api-Key", "k")]).status == 200 }
        }
    }

    @Test func `may listen at a Unix socket`() throws {
        let folder = try TemporaryFolder()
        try withService(at: .unix(folder.file("service.sock")), path: "/v") { gateway, _, service throws in
            #expect(try gateway.get("/a", [("X-Api-Key", "k")]).status == 200)
            #expect(try service.onlyRequest().startLine == "POST /v HTTP/1.1")
        }
    }

    @Test func `verifies logins, too`() throws {
        try withService { gateway, upstream, service throws in
            let login = try gateway.exchange(
                "POST", "/auth/login/partner", [("Content-Type", "application/json")],
                body: Array(#"{"code":"c-1"}"#.utf8))
            #expect(login.status == 200, "\(login)")
            let call = try object(try service.onlyRequest())
            let credential = call["credential"] as? [String: Any]
            #expect(credential?["kind"] as? String == "sign_in")
            #expect((credential?["value"] as? [String: String])?["code"] == "c-1")
            let access = try #require(login.member("access_token"))
            #expect(try gateway.get("/a", bearer(access)).status == 200)
            #expect(upstream.requests.last?["X-Auth-Subject"] == "partner:ada")
        }
    }

    @Test func `decides by path where it says so`() throws {
        let byPath: ScriptedUpstream.Script = { exchange in
            let isOpen = String(decoding: exchange.request.body, as: UTF8.self).contains(#""path":"/open"#)
            try exchange.respond(
                200, body: #"{"active":\#(isOpen),"subject":"ada","cache_for":60,"cache_key":["path"]}"#)
        }
        try withService(more: "  cache_key: [path]", byPath) { gateway, _, service throws in
            let client = try gateway.connect()
            for _ in 0..<2 {
                #expect(try client.exchange("GET", "/open", [("X-Api-Key", "k")]).status == 200)
                #expect(try client.exchange("GET", "/closed", [("X-Api-Key", "k")]).status == 401)
            }
            #expect(service.requests.count == 2)
        }
    }

    @Test func `is kept apart by a bulkhead`() throws {
        let more = "  bulkhead: { concurrency: 1, queue: 0 }\n"
        let slow: ScriptedUpstream.Script = {
            Thread.sleep(forTimeInterval: 0.3)
            try Self.active($0)
        }
        try withService(more: more, slow) { gateway, _, _ throws in
            let results = Box<[Int]>([])
            for index in 0..<4 {
                Thread {
                    let status = (try? gateway.get("/a", [("X-Api-Key", "k\(index)")]))?.status ?? 0
                    results.withLock { $0.append(status) }
                }.start()
            }
            try waitUntil("all have a response") { results.value.count == 4 }
            #expect(results.value.contains(200) && results.value.contains(503), "\(results.value)")
            try waitUntil("it is logged") { gateway.log.contains { $0["reason"] == "provider.saturated" } }
            #expect(try gateway.askAdmin("/metrics").text.contains("martlet_bulkhead_failures_total"))
        }
    }
}
