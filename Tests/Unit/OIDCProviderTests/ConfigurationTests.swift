import MartletConfig
import MartletCore
import MartletProvider
import MartletTesting
import OIDCProvider
import Testing

@Suite struct ConfigurationTests {
    static let bad: [(String, ErrorCode)] = [
        ("audiences: [api]", "config.missing_key"), ("issuer: https://a.example", "config.missing_key"),
        ("issuer: https://a.example\naudiences: []", "config.bad_value"),
        ("issuer: https://a.example\naudiences: ['']", "config.bad_value"),
        ("issuer: http://a.example\naudiences: [a]", "config.bad_url"),
        ("issuer: a.example\naudiences: [a]", "config.bad_url"),
        ("issuer: https://a.example?x=1\naudiences: [a]", "config.bad_url"),
        ("issuer: https://a.example\naudiences: [a]\njwks_url: http://a.example/keys", "config.bad_url"),
        ("issuer: https://a.example\naudiences: [a]\njwks_file: missing.json", "config.file_unreadable"),
        (
            "issuer: https://a.example\naudiences: [a]\njwks_url: https://a.example\njwks_file: x",
            "config.conflicting_keys"
        ),
        ("issuer: https://a.example\naudiences: [a]\nalgorithms: [HS256]", "config.bad_value"),
        ("issuer: https://a.example\naudiences: [a]\nalgorithms: []", "config.bad_value"),
        ("issuer: https://a.example\naudiences: [a]\nmax_age: 0s", "config.bad_duration"),
        ("issuer: https://a.example\naudiences: [a]\nmax_age: 31d", "config.bad_duration"),
        ("issuer: https://a.example\naudiences: [a]\nmax_age: none", "config.bad_duration"),
        ("issuer: https://a.example\naudiences: [a]\nleeway: 6m", "config.bad_duration"),
        ("issuer: https://a.example\naudiences: [a]\naudience_claim: []", "config.bad_value"),
        ("issuer: https://a.example\naudiences: [a]\naudience_claim: [a, '']", "config.bad_value"),
        ("issuer: https://a.example\naudiences: [a]\nrename: [{ claim: a, as: sub }]", "config.bad_value"),
        ("issuer: https://a.example\naudiences: [a]\nrename: [{ claim: [a] }]", "config.missing_key"),
        ("issuer: https://a.example\naudiences: [a]\naudience: b", "config.unknown_key"),
        ("issuer: https://a.example\naudiences: [a]\nrename: { a: sub }", "config.bad_value"),
        ("issuer: https://a.example\naudiences: [a]\nrename: { a: x, b: x }", "config.duplicate_name"),
        ("issuer: https://a.example\naudiences: [a]\nrename: [a]", "config.wrong_type"),
        ("issuer: https://a.example\naudiences: [a]\nauthorized_parties: []", "config.bad_value"),
        ("issuer: https://a.example\naudiences: [a]\nsubject_claim: ''", "config.bad_value"),
        ("issuer: https://a.example\naudiences: [a]\naccepts: [{ bearer_prefix: x_ }]", "config.missing_key"),
        (
            "issuer: https://a.example\naudiences: [a]\nintrospection: { url: https://a.example, client_id: a, client_secret: b }",
            "config.missing_key"
        ),
        ("issuer: https://a.example\naudiences: [a]\nweb: { client_id: a, scope: [email] }", "config.bad_value"),
        (
            "issuer: https://a.example\naudiences: [a]\nweb: { client_id: a, auth_method: client_secret_basic }",
            "config.missing_key"
        ),
        (
            "issuer: https://a.example\naudiences: [a]\nweb: { client_id: a, client_secret: b, auth_method: none }",
            "config.conflicting_keys"
        ),
        ("issuer: https://a.example\naudiences: [a]\nweb: { client_id: a, pkce: false }", "config.bad_value"),
        (
            "issuer: https://a.example\naudiences: [a]\nweb: { client_id: a, token_url: http://a.example }",
            "config.bad_url"
        ),
        ("issuer: https://a.example\naudiences: [a]\nlogin: { client_ids: [] }", "config.bad_value"),
        ("preset: nobody\naudiences: [a]", "config.bad_value"),
        ("preset: microsoft\naudiences: [a]", "config.missing_key"),
        ("preset: microsoft\ntenant: common\naudiences: [a]", "config.bad_value"),
        ("preset: keycloak\naudiences: [a]", "config.missing_key"),
        ("preset: auth0\naudiences: [a]", "config.missing_key"),
        ("preset: google\ntenant: x\naudiences: [a]", "config.conflicting_keys"),
        ("preset: google\nbase_url: https://a.example\naudiences: [a]", "config.conflicting_keys"),
        ("issuer: https://a.example\ntenant: x\naudiences: [a]", "config.conflicting_keys"),
    ]

    @Test(arguments: bad)
    func `rejects a block that would be unsafe or is not understood`(yaml: String, code: ErrorCode) {
        #expect { try Bench(yaml) } throws: { ($0 as? Bench.ConfigurationRejected)?.codes.contains(code) == true }
    }

    @Test(arguments: ["", "mat_", "mat_x", "m", "mrt", "mrt_1", "a b", "é", String(repeating: "x", count: 65)])
    func `rejects a prefix of nothing or of the gateway's own tokens`(prefix: String) {
        let yaml = """
            issuer: https://a.example
            audiences: [a]
            accepts: [{ bearer_prefix: "\(prefix)" }]
            introspection: { url: "https://a.example/i", client_id: a, client_secret: b }
            """
        #expect { try Bench(yaml) } throws: { ($0 as? Bench.ConfigurationRejected)?.codes == ["config.bad_value"] }
    }

    @Test func `rejects prefixes that overlap`() {
        let yaml = """
            issuer: https://a.example
            audiences: [a]
            accepts: [{ bearer_prefix: ab }, { bearer_prefix: abc }]
            introspection: { url: "https://a.example/i", client_id: a, client_secret: b }
            """
        #expect { try Bench(yaml) } throws: { ($0 as? Bench.ConfigurationRejected)?.codes == ["config.bad_value"] }
    }

    static let presets: [(String, [String])] = [
        ("preset: google", ["https://accounts.google.com", "accounts.google.com"]),
        ("preset: line", ["https://access.line.me"]),
        (
            "preset: microsoft\ntenant: 9188040d-6c67-4c5b-b112-36a304b66dad",
            ["https://login.microsoftonline.com/9188040d-6c67-4c5b-b112-36a304b66dad/v2.0"]
        ),
        ("preset: keycloak\nbase_url: https://sso.example/realms/main/", ["https://sso.example/realms/main"]),
        ("preset: auth0\nbase_url: https://x.eu.auth0.com", ["https://x.eu.auth0.com/"]),
        ("preset: auth0\nbase_url: https://x.eu.auth0.com/", ["https://x.eu.auth0.com/"]),
        ("preset: google\nissuer: https://b.example", ["https://b.example"]),
        ("preset: google\nissuers: [accounts.google.com]", ["accounts.google.com"]),
        ("preset: microsoft\nissuer: https://b.example", ["https://b.example"]),
    ]

    @Test(arguments: presets)
    func `a preset fills in what is not written`(yaml: String, issuers: [String]) throws {
        #expect(try Bench("\(yaml)\naudiences: [a]").provider.accepts == [.bearerJWT(issuers: issuers)])
    }

    @Test func `a preset's algorithm and claims give way to written ones`() async throws {
        func code(_ yaml: String, by key: SigningKey) async throws -> ErrorCode? {
            let lines = "\(yaml)\naudiences: [api]\njwks_url: https://issuer.example/keys"
            return await (try Bench(lines)).failureCode(
                try Bench.token(by: key) { $0.claims["iss"] = "\"https://access.line.me\"" })
        }
        let (curve, rsa) = (try Bench.curves.get()[0], try Bench.key.get())
        #expect(try await code("preset: line", by: curve) == nil)
        #expect(try await code("preset: line", by: rsa) == "oidc.alg_not_allowed")
        #expect(try await code("preset: line\nalgorithms: [RS256]", by: rsa) == nil)
    }

    @Test func `warns of a subject that may pass to another user`() throws {
        var diagnostics = Diagnostics()
        let yaml = "issuer: https://a.example\naudiences: [a]\nsubject_claim: email"
        OIDCProvider.validate(try Bench.configuration(yaml), into: &diagnostics)
        #expect(!diagnostics.hasErrors && diagnostics.description.contains("config.insecure"))
    }

    @Test func `redirects need the block of browsers`() throws {
        #expect(try Bench.configuration("issuer: https://a.example\naudiences: [a]").redirectLocation == nil)
        let web = try Bench.configuration("issuer: https://a.example\naudiences: [a]\nweb: { client_id: b }")
        #expect(web.redirectLocation?.line == 3)
    }
}
