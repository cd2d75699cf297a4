import MartletCore
import MartletJSON
import MartletProvider
import MartletTesting
import OIDCProvider
import Testing

@Suite struct DiscoveryTests {
    static let url = ScriptedIssuer.discoveryURL

    @Test func `finds the keys of an issuer, and asks once`() async throws {
        let bench = try await Bench.started()
        for _ in 0..<3 { #expect(try await bench.failureCode(Bench.token()) == nil) }
        #expect(bench.issuer.received.map(\.url) == [Self.url])
        #expect(bench.issuer.received[0].headers["Accept"] == "application/json")
        #expect(bench.issuer.received[0].maximumBytes == 256 * 1024)
        #expect(bench.issuer.fetched == [ScriptedIssuer.keysURL])
        #expect(bench.provider.health.state == .ready)
        await bench.provider.shutdown()
    }

    @Test func `an issuer with a slash at its end has its document below it`() async throws {
        let issuer = try ScriptedIssuer(["issuer": "https://issuer.example/"])
        let bench = try await Bench.started("issuer: https://issuer.example/\naudiences: [api]", issuer: issuer)
        let token = try Bench.token { $0.claims["iss"] = "\"https://issuer.example/\"" }
        #expect(await bench.failureCode(token) == nil)
        #expect(try await bench.failureCode(Bench.token()) == "oidc.bad_issuer")
        await bench.provider.shutdown()
    }

    static let bad: [(KeyValuePairs<String, JSONValue?>, ErrorCode)] = [
        (["issuer": "https://evil.example"], "oidc.discovery_bad_issuer"),
        (["issuer": "https://issuer.example/"], "oidc.discovery_bad_issuer"),
        (["issuer": nil], "oidc.discovery_bad_issuer"),
        (["issuer": ["https://issuer.example"]], "oidc.discovery_bad_issuer"),
        (["jwks_uri": nil], "oidc.discovery_bad_document"), (["jwks_uri": 1], "oidc.discovery_bad_document"),
        (["jwks_uri": "http://issuer.example/keys"], "oidc.discovery_bad_document"),
        (["jwks_uri": "http://127.0.0.1:9200/keys"], "oidc.discovery_bad_document"),
        (["jwks_uri": "file:///etc/passwd"], "oidc.discovery_bad_document"),
        (["jwks_uri": "https://user:pw@issuer.example/"], "oidc.discovery_bad_document"),
        (["token_endpoint": "http://issuer.example/token"], "oidc.discovery_bad_document"),
        (["authorization_endpoint": "javascript:alert(1)"], "oidc.discovery_bad_document"),
    ]

    @Test func `refuses a document of another issuer, or with other addresses than https`() async throws {
        for (changes, code) in Self.bad {
            let bench = try await Bench.started(issuer: try ScriptedIssuer(changes))
            let failure = try await bench.failure(Bench.token())
            #expect(failure?.code == "oidc.keys_unavailable" && failure?.disposition == .unavailable)
            #expect(bench.provider.health.detail.contains(code.rawValue), "\(bench.provider.health.detail)")
            #expect(bench.provider.health.state == .unavailable && bench.issuer.fetched.isEmpty)
            await bench.provider.shutdown()
        }
    }

    @Test(
        arguments: [
            (
                "https://issuer.example", "https://issuer.example/",
                "the discovery document is of the issuer https://issuer.example/, not https://issuer.example: "
                    + "write 'issuer: https://issuer.example/', which differs by the final slash alone"
            ),
            (
                "https://issuer.example/", "https://issuer.example",
                "the discovery document is of the issuer https://issuer.example, not https://issuer.example/: "
                    + "write 'issuer: https://issuer.example', which differs by the final slash alone"
            ),
            (
                "https://issuer.example", "https://evil.example",
                "the discovery document is of the issuer https://evil.example, not https://issuer.example"
            ),
        ])
    func `names both issuers that differ`(configured: String, named: String, text: String) async throws {
        let issuer = try ScriptedIssuer(["issuer": .string(named)])
        let bench = try await Bench.started("issuer: \(configured)\naudiences: [api]", issuer: issuer)
        #expect(
            bench.provider.health.detail == "no discovery document, last attempt: \(text) [oidc.discovery_bad_issuer]")
        let outcome = try #require(await bench.provider.checkOnline(until: .never).first)
        #expect(outcome.detail == text && outcome.failure == "oidc.discovery_bad_issuer")
        await bench.provider.shutdown()
    }

    @Test func `refuses anything that is not a document`() async throws {
        let large = Array(
            "{\"issuer\":\"https://issuer.example\",\"x\":\"\(String(repeating: "x", count: 256 * 1024))\"}".utf8)
        for (status, body) in [
            (200, Array("<html>".utf8)), (200, []), (200, Array("[]".utf8)), (404, Array("{}".utf8)), (500, []),
            (200, large),
            (200, Array("{\"issuer\":\"https://issuer.example\",\"issuer\":\"https://issuer.example\"}".utf8)),
        ] {
            let issuer = try ScriptedIssuer()
            issuer.respond(at: Self.url, status, body)
            let bench = try await Bench.started(issuer: issuer)
            #expect(try await bench.failureCode(Bench.token()) == "oidc.keys_unavailable")
            await bench.provider.shutdown()
        }
    }

    @Test func `a document that goes bad later is refused, and the old one goes on`() async throws {
        let bench = try await Bench.started()
        for changes: KeyValuePairs<String, JSONValue?> in [
            ["issuer": "https://evil.example", "jwks_uri": "https://evil.example/keys"], ["jwks_uri": nil],
        ] {
            try bench.issuer.discover(changes)
            let checks = await bench.provider.checkOnline(until: .never)
            #expect(checks.first?.failure != nil)
            #expect(try await bench.failureCode(Bench.token()) == nil)
            #expect(!bench.issuer.fetched.contains("https://evil.example/keys"))
        }
        await bench.provider.shutdown()
    }

    @Test func `follows keys to a new address, and verifies again what was accepted before`() async throws {
        let bench = try await Bench.started()
        #expect(try await bench.failureCode(Bench.token()) == nil)
        // Without keys there, the old ones go on.
        try bench.issuer.discover(["jwks_uri": "https://issuer.example/keys2"])
        _ = await bench.provider.checkOnline(until: .never)
        #expect(try await bench.failureCode(Bench.token()) == nil)
        #expect(bench.issuer.forgotten == 0)
        bench.issuer.setKeys([try Bench.otherKey.get()], at: "https://issuer.example/keys2")
        _ = await bench.provider.checkOnline(until: .never)
        #expect(try await bench.failureCode(Bench.token()) == "oidc.unknown_key")
        #expect(try await bench.failureCode(Bench.token(by: Bench.otherKey.get())) == nil)
        #expect(bench.issuer.forgotten > 0)
        await bench.provider.shutdown()
    }

    @Test func `an unavailable issuer is not asked by every request`() async throws {
        let issuer = try ScriptedIssuer()
        issuer.fail(at: Self.url)
        let bench = try Bench(issuer: issuer)
        for _ in 0..<20 { #expect(try await bench.failureCode(Bench.token()) == "oidc.keys_unavailable") }
        #expect(issuer.received.count == 1)
        try issuer.discover()
        bench.time.advance(.seconds(6))
        #expect(try await bench.failureCode(Bench.token()) == nil)
    }

    @Test func `concurrent requests share one request to the issuer`() async throws {
        let bench = try Bench()
        let token = try Bench.token()
        await withTaskGroup(of: ErrorCode?.self) { group in
            for _ in 0..<50 { group.addTask { await bench.failureCode(token) } }
            for await code in group { #expect(code == nil) }
        }
        #expect(bench.issuer.received.count == 1)
    }

    @Test func `a copy in the store serves instances that start while the issuer is unavailable`() async throws {
        let store = MemoryStore(clock: TestTime().clock)
        let first = try await Bench.started(store: store)
        await first.provider.shutdown()
        let issuer = try ScriptedIssuer()
        issuer.fail(at: Self.url)
        let second = try await Bench.started(issuer: issuer, store: store)
        #expect(try await second.failureCode(Bench.token()) == nil)
        await second.provider.shutdown()
    }

    @Test func `keys at a URL or in a file need no discovery`() async throws {
        let byURL = try await Bench.started(
            "issuer: 'urn:partner'\naudiences: [api]\njwks_url: https://issuer.example/keys")
        let token = try Bench.token { $0.claims["iss"] = "\"urn:partner\"" }
        #expect(await byURL.failureCode(token) == nil)
        #expect(byURL.issuer.received.isEmpty)
        await byURL.provider.shutdown()
        let folder = try TemporaryFolder()
        let path = try folder.write(bytes: AppleFixture.document([Bench.key.get()]), to: "keys.json")
        let byFile = try await Bench.started("issuer: 'urn:partner'\naudiences: [api]\njwks_file: \(path)")
        #expect(await byFile.failureCode(token) == nil)
        #expect(byFile.issuer.received.isEmpty && byFile.issuer.fetched.isEmpty)
        #expect(try await byFile.failureCode(Bench.token { $0.header["kid"] = "\"RSA2\"" }) == "oidc.unknown_key")
        #expect(byFile.provider.health.state == .ready)
        await byFile.provider.shutdown()
    }
}
