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

    @Test func `a member of a claim can be renamed, and stays where it is`() async throws {
        let claims = try await Self.claims(
            "rename: [{ claim: [realm_access, roles], as: roles }, { claim: upn, as: email }, { claim: [a, b], as: c }]",
            [
                "realm_access": #"{"roles":["admin"]}"#, "roles": "[\"other\"]", "upn": "\"u@a.example\"",
                "a": "\"text\"", "c": "1",
            ])
        #expect(claims["roles"] == ["admin"] && claims["realm_access"]?.object?["roles"] == ["admin"])
        #expect(claims["email"] == "u@a.example" && !claims.has("upn") && claims["c"] == 1)
        #expect(Set(claims.members.map(\.name)).count == claims.count)
    }

    @Test func `claims that are null are none`() async throws {
        let claims = try await Self.claims(
            "rename: { upn: email }",
            ["upn": "null", "email": "\"a@b\"", "scope": "null", "groups": "null", "x": "{\"y\":null}"])
        #expect(claims["email"] == "a@b" && claims["x"] == ["y": nil])
        for name in ["upn", "scope", "groups"] { #expect(!claims.has(name)) }
    }

    @Test func `a preset's roles are those of its issuer, unless the token has some`() async throws {
        func roles(_ yaml: String, _ claims: KeyValuePairs<String, JSONText>) async throws -> JSONValue? {
            try await Bench("\(yaml)\nissuer: https://issuer.example\naudiences: [api]").identity(
                Bench.token { token in for (name, value) in claims { token.claims[name] = value } }
            ).claims["roles"]
        }
        let realm: JSONText = #"{"roles":["admin","user"]}"#
        #expect(try await roles("preset: keycloak", ["realm_access": realm]) == ["admin", "user"])
        #expect(try await roles("preset: keycloak", ["realm_access": realm, "roles": "[\"own\"]"]) == ["own"])
        #expect(try await roles("preset: keycloak", [:]) == nil)
        #expect(try await roles("preset: keycloak\nrename: { x: y }", ["realm_access": realm]) == nil)
        #expect(try await roles("preset: microsoft", ["roles": "[\"App.Read\"]"]) == ["App.Read"])
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
        for (text, value): (JSONText, JSONValue) in [
            ("\"true\"", true), ("\"false\"", false), ("true", true), ("1", true), ("0", false), ("\"1\"", true),
        ] {
            #expect(try await Self.claims("", ["email_verified": text])["email_verified"] == value)
        }
        #expect(try await !Self.claims("", ["email_verified": "null"]).has("email_verified"))
    }

    @Test func `another claim can identify the user`() async throws {
        let bench = try Bench(Self.base + "subject_claim: oid")
        #expect(try await bench.identity(Bench.token { $0.claims["oid"] = "\"o-1\"" }).providerSubject == "o-1")
        #expect(try await bench.failureCode(Bench.token()) == "oidc.bad_subject")
        // A number is one where it is asked for; `sub` is a text (OIDC Core §2).
        #expect(try await bench.identity(Bench.token { $0.claims["oid"] = 42 }).providerSubject == "42")
        for text: JSONText in ["4.2", "-1", "1e3", "true", "[1]", "null"] {
            #expect(try await bench.failureCode(Bench.token { $0.claims["oid"] = text }) == "oidc.bad_subject")
        }
        #expect(try await Bench().failureCode(Bench.token { $0.claims["sub"] = 42 }) == "oidc.bad_subject")
        let own = try Bench(Self.base + "subject_claim: sub")
        #expect(try await own.identity(Bench.token { $0.claims["sub"] = 42 }).providerSubject == "42")
        let nested = try Bench(Self.base + "subject_claim: [user, id]")
        #expect(try await nested.identity(Bench.token { $0.claims["user"] = #"{"id":7}"# }).providerSubject == "7")
        #expect(
            try await nested.failure(Bench.token())?.cause.map { "\($0)" }
                == "[user, id] is not a string of 1 to 255 bytes, but absent [oidc.bad_subject]")
        #expect(try await bench.failureCode(Bench.token { $0.claims["oid"] = "\"a\\u0007\"" }) == "oidc.bad_subject")
    }
}
