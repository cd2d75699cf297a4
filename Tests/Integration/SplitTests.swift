import MartletCore
import MartletTesting
import Testing

/// Routes whose upstreams share the requests.
@Suite struct `Split routes` {
    private static func routes(canary weight: Int) -> String {
        """
        - name: split
          match: { path: /v1/** }
          auth: { providers: [apple] }
          split: [{ upstream: api, weight: \(100 - weight) }, { upstream: next, weight: \(weight) }]
        - { name: open, match: { path: /open/** }, auth: none, split: [{ upstream: api, weight: 1 }, { upstream: next, weight: 1 }] }
        """
    }

    /// A configuration with two upstreams.
    private static func config(
        _ apple: AppleFixture, _ endpoints: [String], canary weight: Int, more: String = ""
    ) -> String {
        var config = GatewayConfig(
            endpoints: [endpoints[0]], providers: apple.provider(), routes: routes(canary: weight))
        config.upstreams += "next: { endpoints: [\"\(endpoints[1])\"] }\n"
        config.more = more
        return config.text
    }

    private static func upstreams() throws -> [ScriptedUpstream] {
        try ["api", "next"].map { name in try ScriptedUpstream { try $0.respond(200, body: name) } }
    }

    @Test func `a caller stays with an upstream, at every instance, and a growing canary keeps its own`() throws {
        let (apple, upstreams) = (try AppleFixture(), try Self.upstreams())
        let subjects = (0..<24).map { "00\($0).0123456789abcdef0123456789abcdef.0001" }
        let tokens = try subjects.map { bearer(try apple.token(subject: $0)) }
        var rounds: [[String]] = []
        for weight in [30, 30, 60] {
            try withMartlet(Self.config(apple, upstreams.map(\.url), canary: weight)) { gateway throws in
                let client = try gateway.connect()
                let first = try tokens.map { try client.exchange("GET", "/v1/a", $0).text }
                let again = try tokens.map { try gateway.get("/v1/b", $0).text }
                #expect(first == again)
                rounds.append(first)
            }
        }
        #expect(rounds[0] == rounds[1])
        #expect(Set(rounds[0]) == ["api", "next"], "\(rounds[0])")
        for (before, after) in zip(rounds[1], rounds[2]) where before == "next" { #expect(after == "next") }
        #expect(rounds[2].count { $0 == "next" } > rounds[0].count { $0 == "next" }, "\(rounds)")
    }

    @Test func `the assertion is for the upstream that gets it, and anonymous clients stay, too`() throws {
        let (apple, upstreams) = (try AppleFixture(), try Self.upstreams())
        let folder = try TemporaryFolder()
        let path = try folder.write(try SigningKey("assertion", .p256).privatePEM(), to: "assertion.pem")
        let more = "assertion: { issuer: \"https://gw.example.com\", key_file: \"\(path)\" }"
        try withMartlet(Self.config(apple, upstreams.map(\.url), canary: 50, more: more)) { gateway throws in
            for number in 0..<12 {
                let token = bearer(try apple.token(subject: "00\(number).0123456789abcdef0123456789abcdef.0001"))
                let name = try gateway.get("/v1/a", token).text
                let upstream = upstreams[name == "api" ? 0 : 1]
                let assertion = try #require(upstream.requests.last?["X-Auth-Assertion"])
                let payload = try #require(assertion.split(separator: ".").dropFirst().first)
                let claims = try #require(Base64URL.decode(Array(payload.utf8)))
                #expect(String(decoding: claims, as: UTF8.self).contains("\"aud\":\"\(name)\""), "\(name)")
            }
            #expect(Set(try (0..<8).map { _ in try gateway.get("/open/a").text }).count == 1)
        }
    }

    @Test func `an explanation names the upstream`() throws {
        let (apple, upstreams) = (try AppleFixture(), try Self.upstreams())
        let folder = try TemporaryFolder()
        let config = Self.config(apple, upstreams.map(\.url), canary: 50)
        try withMartlet(config) { gateway throws in
            let path = try folder.write(config, to: "config.yaml")
            for number in 0..<6 {
                let token = try apple.token(subject: "00\(number).0123456789abcdef0123456789abcdef.0001")
                let name = try gateway.get("/v1/a", bearer(token)).text
                let result = try run(
                    try Executable.martlet(),
                    ["explain", "--config", path, "--path", "/v1/a", "--token", try folder.write(token, to: "token")])
                #expect(result.ending == .exited(0), "\(result)")
                #expect(result.output.contains("split: api 50, next 50; the subject decides"), "\(result)")
                #expect(result.output.contains(" \(name): http://127.0.0.1:"), "\(name) \(result)")
            }
            let open = try run(try Executable.martlet(), ["explain", "--config", path, "--path", "/open/a", "--json"])
            #expect(open.output.contains("{\"upstream\":\"next\",\"weight\":1}"), "\(open)")
            #expect(open.output.contains("\"upstream\":{\"name\":null"), "\(open)")
        }
    }
}
