import Foundation
import MartletTesting
import Testing

/// What proves to the gateway who a caller is reaches no upstream that did not ask for it.
@Suite struct `Own credentials` {
    private static let prefixes = ["mat_", "mrt_", "mct_", "mak_", "mlt_", "moc_"]
    private static let routes = """
        - { name: public, match: { path: /public/** }, auth: none, upstream: api }
        - { name: maybe, match: { path: /maybe/** }, auth: { providers: [apple], mode: optional }, upstream: api }
        - { name: keep, match: { path: /keep/** }, auth: { providers: [apple] }, forward_credentials: true, upstream: api }
        - { name: keys, match: { path: /keys/** }, auth: { providers: [keys] }, upstream: api }
        - { name: partner, match: { path: /partner/** }, auth: { providers: [partner] }, upstream: api }
        - { name: closed, match: { path: /v1/** }, auth: { providers: [apple] }, upstream: api }
        """

    private func withGateway(_ body: (Gateway, ScriptedUpstream, AppleFixture, String) throws -> Void) throws {
        let folder = try TemporaryFolder()
        let providers = """
            keys: { kind: api_key, keys_file: \(folder.file("keys")) }
            partner: { kind: http, url: "http://127.0.0.1:9/", accepts: [{ header: X-Partner-Key }] }
            """
        let apple = try AppleFixture()
        let upstream = try ScriptedUpstream { try $0.respond(200, body: "ok") }
        let config = GatewayConfig(
            endpoints: [upstream.url], providers: apple.provider() + providers, routes: Self.routes)
        try withMartlet(config.text) { gateway throws in
            let made = try MartletTesting.run(
                try Executable.martlet(),
                ["key", "create", "--subject", "billing", "--config", gateway.folder.file("config.yaml")])
            try body(gateway, upstream, apple, made.output.trimmingCharacters(in: .newlines))
        }
    }

    @Test func `no field of any route has one`() throws {
        try withGateway { gateway, upstream, apple, key throws in
            let token = try apple.token()
            for path in ["/public/a", "/maybe/a", "/v1/a"] {
                for text in Self.prefixes.map({ $0 + String(repeating: "A1b2", count: 16) }) + [key] {
                    let basic = Data("\(text):".utf8).base64EncodedString()
                    let rows: [(String, String)] = [
                        ("Authorization", "Bearer \(text)"), ("Authorization", "Token \(text)"),
                        ("Authorization", "Basic \(basic)"), ("X-Api-Key", text), ("x_api_key", text),
                        ("X-Other", text), ("Cookie", "a=1; old=\(text)"), ("Referer", "https://a/?t=\(text)"),
                        ("X-Partner-Key", "theirs"), ("DPoP", "a.b.c"), ("dpop", "a.b.c"),
                    ]
                    for (name, value) in rows where path == "/public/a" || name != "Authorization" {
                        let credential = path == "/v1/a" ? bearer(token) : []
                        let before = upstream.requests.count
                        let response = try gateway.get(path, credential + [(name, value), ("X-Kept", "1")])
                        guard response.status == 200 else {
                            #expect(path == "/maybe/a" && response.status == 401 && upstream.requests.count == before)
                            continue
                        }
                        let request = try #require(upstream.requests.last)
                        #expect(request["X-Kept"] == "1" && upstream.requests.count == before + 1)
                        for secret in [text, basic, "theirs", "a.b.c"] {
                            #expect(!"\(request.fields)".contains(secret), "\(path) \(name): \(request)")
                        }
                        if name == "Cookie" { #expect(request["Cookie"] == "a=1") }
                    }
                }
            }
        }
    }

    @Test func `a key that an optional route does not read is no stranger's request`() throws {
        try withGateway { gateway, upstream, apple, key throws in
            for name in ["X-Api-Key", "x-api-key", "X-Partner-Key"] {
                let response = try gateway.get("/maybe/a", [(name, key)])
                #expect(response.status == 401 && response.member("code") == "credential_invalid", "\(response)")
            }
            #expect(try gateway.get("/maybe/a", bearer(key)).status == 401)
            #expect(upstream.requests.isEmpty)
            // What is no key of the gateway is none of its business, and a valid credential counts.
            #expect(try gateway.get("/maybe/a", [("X-Api-Key", "theirs")]).status == 200)
            #expect(try gateway.get("/maybe/a", bearer(apple.token()) + [("X-Api-Key", key)]).status == 200)
            #expect(upstream.requests.last?["X-Auth-Subject"] != nil && upstream.requests.last?["X-Api-Key"] == nil)
            // The file with the key is looked at every second.
            try waitUntil("the key is known") { try gateway.get("/keys/a", [("X-Api-Key", key)]).status == 200 }
            #expect(upstream.requests.last?["X-Api-Key"] == nil)
        }
    }

    @Test func `a route that forwards credentials forwards all of them`() throws {
        try withGateway { gateway, upstream, apple, key throws in
            let fields = [("X-Api-Key", key), ("DPoP", "a.b.c"), ("X-Partner-Key", "theirs"), ("X-Other", "mat_x")]
            #expect(try gateway.get("/keep/a", bearer(apple.token()) + fields).status == 200)
            let request = try upstream.onlyRequest()
            for (name, value) in fields { #expect(request[name] == value) }
            #expect(request["Authorization"]?.hasPrefix("Bearer eyJ") == true)
        }
    }
}
