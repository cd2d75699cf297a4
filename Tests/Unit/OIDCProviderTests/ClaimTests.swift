import MartletCore
import MartletJSON
import MartletProvider
import MartletTesting
import OIDCProvider
import Testing

@Suite struct ClaimTests {
    static let base = "issuer: https://issuer.example\naudiences: [api]\n"

    static func claims(_ yaml: String, _ claims: KeyValuePairs<String, JSONText>) async throws -> JSONObject {
        try await Bench(base + yaml).identity(
            Bench.token { token in for (name, value) in claims { token.claims[name] = value } }
        ).claims
    }

    @Test func `a renamed claim wins, and its old name goes`() async throws {
        let claims = try await Self.claims(
            "rename: { upn: email, scp: scope, a: b, b: a }",
            [
                "upn": "\"new@a.example\"", "email": "\"old@a.example\"", "scp": "\"read\"", "scope": "\"admin\"",
                "a": "1", "b": "2",
            ])
        #expect(claims["email"] == "new@a.example" && !claims.has("upn"))
        #expect(claims["scope"] == ["read"] && !claims.has("scp"))
        #expect(claims["a"] == 2 && claims["b"] == 1)
        #expect(Set(claims.members.map(\.name)).count == claims.count)
    }

    @Test func `without the claim to rename, the other stays`() async throws {
        let claims = try await Self.claims("rename: { upn: email }", ["email": "\"old@a.example\""])
        #expect(claims["email"] == "old@a.example")
    }

    @Test func `claims that only verify are left out, unless they are renamed`() async throws {
        let claims = try await Self.claims(
            "rename: { jti: token_id }",
            ["jti": "\"7\"", "nonce": "\"n\"", "at_hash": "\"h\"", "c_hash": "\"h\"", "nbf": "1"])
        #expect(claims["token_id"] == "7")
        for name in ["jti", "nonce", "at_hash", "c_hash", "nbf"] { #expect(!claims.has(name)) }
    }

    @Test func `scopes are a list, so that a rule matches a whole one`() async throws {
        for (text, list): (JSONText, JSONValue) in [
            ("\"read write\"", ["read", "write"]), ("\"\"", []), ("\"  a  \"", ["a"]),
            ("[\"a\",\"b c\"]", ["a", "b c"]),
        ] {
            #expect(try await Self.claims("", ["scope": text])["scope"] == list)
        }
    }

    @Test func `booleans are booleans`() async throws {
        for (text, value): (JSONText, JSONValue) in [("\"true\"", true), ("\"false\"", false), ("true", true)] {
            #expect(try await Self.claims("", ["email_verified": text])["email_verified"] == value)
        }
    }

    @Test func `another claim can identify the user`() async throws {
        let bench = try Bench(Self.base + "subject_claim: oid")
        #expect(try await bench.identity(Bench.token { $0.claims["oid"] = "\"o-1\"" }).providerSubject == "o-1")
        #expect(try await bench.failureCode(Bench.token()) == "oidc.bad_subject")
        #expect(try await bench.failureCode(Bench.token { $0.claims["oid"] = "\"a\\u0007\"" }) == "oidc.bad_subject")
    }
}
