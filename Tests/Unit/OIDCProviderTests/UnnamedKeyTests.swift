import MartletCore
import MartletJSON
import MartletProvider
import MartletTesting
import OIDCProvider
import Testing

/// Tokens that do not name their key, which OpenID Connect allows an issuer that has only one.
@Suite struct UnnamedKeyTests {
    static func token(by key: SigningKey, _ change: (inout Token) -> Void = { _ in }) throws -> String {
        try Bench.token(by: key) { token in
            token.header["kid"] = nil
            change(&token)
        }
    }

    static func bench(_ keys: [SigningKey]) throws -> Bench {
        let bench = try Bench()
        bench.issuer.setKeys(keys)
        return bench
    }

    @Test func `the only key of an issuer need not be named`() async throws {
        let key = try Bench.key.get()
        let bench = try Self.bench([key])
        #expect(try await bench.failureCode(Self.token(by: key)) == nil)
        #expect(try await bench.failureCode(Self.token(by: Bench.otherKey.get())) == "oidc.bad_signature")
        #expect(
            try await bench.failureCode(Self.token(by: key) { $0.header["alg"] = "\"none\"" }) == "oidc.alg_not_allowed"
        )
        for id in ["null", "\"\"", "1", "\"martlet:unnamed\""] {
            let token = try Self.token(by: key) { $0.header["kid"] = JSONText(id) }
            #expect(await bench.failureCode(token) == "oidc.unknown_key", "\(id)")
        }
        let several = try Self.bench([key, Bench.otherKey.get()])
        #expect(try await several.failureCode(Self.token(by: key)) == "oidc.unknown_key")
    }

    @Test func `a new key is noticed, and a flood of other signatures costs one request`() async throws {
        let (old, new) = (try Bench.key.get(), try Bench.otherKey.get())
        let bench = try Self.bench([old])
        #expect(try await bench.failureCode(Self.token(by: old)) == nil)
        bench.issuer.setKeys([new])
        #expect(try await bench.failureCode(Self.token(by: new)) == nil)
        #expect(try await bench.failureCode(Self.token(by: old)) == "oidc.bad_signature")
        let fetches = bench.issuer.fetched.count
        for _ in 0..<20 { #expect(try await bench.failureCode(Self.token(by: old)) == "oidc.bad_signature") }
        #expect(bench.issuer.fetched.count == fetches)
    }

    @Test func `an only key may itself be without an ID`() async throws {
        let key = try Bench.key.get()
        var entry = try key.jwk()
        entry["kid"] = nil
        let members = entry.sorted { $0.key < $1.key }.map { ($0.key, JSONValue.string($0.value)) }
        let folder = try TemporaryFolder()
        let path = try folder.write(
            bytes: JSON.write(["keys": [.object(JSONObject(members))]] as JSONObject), to: "keys.json")
        let bench = try Bench("issuer: https://issuer.example\naudiences: [api]\njwks_file: \(path)")
        #expect(try await bench.failureCode(Self.token(by: key)) == nil)
        #expect(try await bench.failureCode(Bench.token()) == "oidc.unknown_key")
    }

    @Test func `an event loop leaves a failing signature to another thread`() async throws {
        let bench = try Self.bench([Bench.key.get()])
        await bench.provider.start()
        let token = try Self.token(by: Bench.otherKey.get())
        guard case .undecided = try bench.provider.verify(Credential(bearer: Array(token.utf8)), in: bench.context)
        else {
            Issue.record("decided")
            return
        }
        await bench.provider.shutdown()
    }
}
