import MartletCore
import MartletCrypto
import MartletHTTP
import MartletJOSE
import MartletJSON
import MartletProvider
import MartletTesting
import Testing

@testable import MartletConfig
@testable import MartletRouter

@Suite struct Assertions {
    static let key = Result { try SigningKey("current", .p256) }
    static let other = Result { try SigningKey("other", .p256) }
    static let now = UnixTime(seconds: 2_000)

    static func location(_ column: Int) -> MartletConfig.SourceLocation {
        .init(file: "config.yaml", line: 7, column: column)
    }

    /// A decoded `assertion:` block.
    static func configuration(
        header: String = "X-Auth-Assertion", ttl: Int64 = 60, audience: String? = nil, pem: String? = nil,
        others: [String] = []
    ) throws -> AssertionConfiguration {
        AssertionConfiguration(
            header: Located(header, at: location(1)), issuer: "https://gw.example.com", ttl: .seconds(ttl),
            audience: audience, key: Located(Secret(try pem ?? key.get().privatePEM()), at: location(2)),
            otherKeys: others.enumerated().map { Located(Secret($1), at: location(3 + $0)) })
    }

    static func injection(_ headers: [HeaderConfiguration]? = nil) -> HeaderInjection {
        HeaderInjection(id: 0, headers: headers, route: "orders")
    }

    /// The header line of a signer, and the reason if it is omitted.
    static func line(
        _ signer: AssertionSigner, _ principal: Principal, _ injection: HeaderInjection = injection(),
        now: UnixTime = now
    ) -> (text: String, dropped: ErrorCode?) {
        var buffer = ByteBuffer()
        buffer.append("A: b\r\n")
        let dropped = signer.append(
            for: principal, injection: injection, upstream: "api", now: now, into: &buffer)
        return (String(decoding: unsafe Array(buffer.bytes).dropFirst(6), as: UTF8.self), dropped?.reason)
    }

    /// The claims of a line, verified as by an upstream with the published key set.
    static func claims(_ line: String, _ signer: AssertionSigner) throws -> JSONObject {
        let prefix = "\(signer.headerName): "
        try #require(line.hasPrefix(prefix) && line.hasSuffix("\r\n"))
        let jws = try CompactJWS(Array(line.utf8.dropFirst(prefix.utf8.count).dropLast(2)))
        #expect(try jws.algorithm(among: [.es256]) == .es256)
        try jws.checkHeaderFields()
        let keys = try KeySet(document: JSON.write(signer.keySet), allowing: [.es256])
        #expect(keys.skipped.isEmpty)
        let verifier = try #require(keys.keys[try jws.keyID()])
        #expect(verifier.id.text == verifier.parts.thumbprint)
        #expect(verifier.verify(signature: jws.signature, signingInput: jws.signingInput))
        return jws.payload
    }

    @Test func `have issuer, audience, subject and lifetime`() throws {
        let signer = try AssertionSigner(Self.configuration())
        let caller = Principal(identity: identity([:]), provider: "apple", subject: "usr_1", sessionID: "s1")
        let (line, dropped) = Self.line(signer, caller)
        #expect(dropped == nil)
        #expect(
            try Self.claims(line, signer) == [
                "iss": "https://gw.example.com", "aud": "api", "sub": "usr_1", "provider": "apple", "iat": 2_000,
                "exp": 2_060, "sid": "s1",
            ])
        #expect(signer.lifetime == .seconds(30))
    }

    @Test func `have the configured audience, and no session ID without a session`() throws {
        let signer = try AssertionSigner(Self.configuration(header: "X-Statement", ttl: 1, audience: "everyone"))
        let claims = try Self.claims(Self.line(signer, principal()).text, signer)
        #expect(claims["aud"] == "everyone" && claims["sid"] == nil && claims["exp"] == 2_001)
        #expect(claims["sub"] == "apple:001.abc")
        #expect(signer.lifetime == .seconds(1) && signer.headerName == "X-Statement")
    }

    @Test func `include the claims of the route's headers under their own names`() throws {
        let signer = try AssertionSigner(Self.configuration())
        let caller = principal([
            "name": "王小明\r\nX-Auth-Subject: root", "roles": ["a", "b"], "age": 17, "vip": true, "none": nil,
            "secret": "not injected", "address": ["city": "Bern"],
        ])
        let injection = Self.injection([
            header("X-Name", .claim("name"), .ascii), header("X-Roles", .claim("roles"), join: ","),
            header("X-Age", .claim("age")), header("X-Vip", .claim("vip")), header("X-Vip-Too", .claim("vip")),
            header("X-None", .claim("none")), header("X-Missing", .claim("missing"), fallback: "-"),
            header("X-Address", .claim("address")), header("X-Route", .attribute(.route)),
        ])
        let claims = try Self.claims(Self.line(signer, caller, injection).text, signer)
        #expect(
            claims.members.dropFirst(6).map(\.name) == ["name", "roles", "age", "vip", "address"],
            "null, absent and uninjected claims are omitted")
        #expect(claims["name"] == "王小明\r\nX-Auth-Subject: root" && claims["roles"] == ["a", "b"])
        #expect(claims["age"] == 17 && claims["vip"] == true && claims["address"] == ["city": "Bern"])
    }

    @Test func `omit claims with registered names`() throws {
        let signer = try AssertionSigner(Self.configuration())
        let names = ["iss", "sub", "aud", "exp", "nbf", "iat", "jti", "provider", "sid"]
        let caller = principal(JSONObject(names.map { ($0, "forged") } + [("tier", "gold")]))
        let injection = Self.injection((names + ["tier"]).map { header("X-\($0)", .claim(ClaimPath($0))) })
        #expect(
            try Self.claims(Self.line(signer, caller, injection).text, signer) == [
                "iss": "https://gw.example.com", "aud": "api", "sub": "apple:001.abc", "provider": "apple",
                "iat": 2_000, "exp": 2_060, "tier": "gold",
            ])
    }

    @Test(arguments: [(JSONValue.bool(true), true), (.bool(false), false), ("true", false), (.null, false)])
    func `include the e-mail by default, if it is verified`(verified: JSONValue, isThere: Bool) throws {
        let signer = try AssertionSigner(Self.configuration())
        let caller = principal(["email": "a@example.com", "email_verified": verified])
        let claims = try Self.claims(Self.line(signer, caller).text, signer)
        #expect(claims["email"] == (isThere ? "a@example.com" : nil))
        #expect(claims["email_verified"] == (isThere ? true : nil))
        #expect(claims.count == (isThere ? 8 : 6))
    }

    @Test(arguments: [(JSONValue.bool(true), true), (.bool(false), false), ("true", false), (.null, false)])
    func `say beside an e-mail whether it is verified`(verified: JSONValue, expected: Bool) throws {
        let signer = try AssertionSigner(Self.configuration())
        let caller = principal(["email": "a@example.com", "email_verified": verified])
        let injection = Self.injection([header("X-Mail", .claim("email"))])
        let claims = try Self.claims(Self.line(signer, caller, injection).text, signer)
        #expect(claims["email"] == "a@example.com" && claims["email_verified"] == .bool(expected))
        let without = try Self.claims(
            Self.line(signer, principal(["email_verified": verified]), injection).text, signer)
        #expect(without["email_verified"] == nil)
    }

    @Test func `expire with the credential`() throws {
        let signer = try AssertionSigner(Self.configuration())
        let late = UnixTime(seconds: 4_990)
        #expect(try Self.claims(Self.line(signer, principal(), now: late).text, signer)["exp"] == 5_000)
        let over = Self.line(signer, principal(), now: UnixTime(seconds: 5_000))
        #expect(over.text.isEmpty && over.dropped == "header.expired")
    }

    @Test func `are omitted if too long for a header`() throws {
        let signer = try AssertionSigner(Self.configuration())
        let injection = Self.injection([header("X-Name", .claim("name"))])
        for (length, isThere) in [(5_000, true), (7_000, false)] {
            let caller = principal(["name": .string(String(repeating: "a", count: length))])
            let (line, dropped) = Self.line(signer, caller, injection)
            #expect(line.isEmpty != isThere && dropped == (isThere ? nil : "header.too_long"))
            #expect(line.utf8.count <= HeaderInjection.maximumValueBytes + 20)
        }
    }
}

// MARK: - Keys

extension Assertions {
    @Test func `are verified across a key rotation`() throws {
        let (key, other) = (try Self.key.get(), try Self.other.get())
        let before = try AssertionSigner(Self.configuration(others: [try other.privatePEM()]))
        let after = try AssertionSigner(
            Self.configuration(
                pem: try other.privatePEM(),
                others: [String(decoding: try key.publicPEM(), as: UTF8.self), try key.privatePEM()]))
        func ids(_ signer: AssertionSigner) -> [String?]? {
            signer.keySet["keys"]?.array?.map { $0.object?["kid"]?.string }
        }
        #expect(ids(before)?.count == 2 && ids(before)?.reversed() == ids(after))
        let (old, new) = (Self.line(before, principal()).text, Self.line(after, principal()).text)
        for (line, signer) in [(old, before), (old, after), (new, before), (new, after)] {
            #expect(try Self.claims(line, signer)["sub"] == "apple:001.abc")
        }
        let members = Set(before.keySet["keys"]?.array?.flatMap { $0.object?.members.map(\.name) ?? [] } ?? [])
        #expect(members == ["kid", "use", "alg", "crv", "kty", "x", "y"], "nothing private is published")
    }

    @Test func `need P-256 keys`() throws {
        let (rsa, valid) = (try SigningKey("rsa").privatePEM(), try Self.key.get().privatePEM())
        let publicHalf = String(decoding: try Self.key.get().publicPEM(), as: UTF8.self)
        for (pem, others, column) in [
            (rsa, [], 2), ("no key", [], 2), (publicHalf, [], 2), (valid, [rsa], 3), (valid, [valid, "no key"], 4),
        ] {
            #expect {
                try AssertionSigner(Self.configuration(pem: pem, others: others))
            } throws: { error in
                let found = (error as? ConfigurationError)?.diagnostics ?? []
                return found.map(\.code) == ["config.bad_value"] && found.map(\.location) == [Self.location(column)]
            }
        }
    }
}

// MARK: - The header's name

extension Assertions {
    private func compile(_ header: String, _ routes: [RouteConfiguration]) -> (RouteTable?, [Diagnostic]) {
        var diagnostics = Diagnostics()
        let table = RouteTable.compile(
            routes, mounts: [], upstreams: ["api"], providers: ["apple"], paths: PathOptions(), limits: Limits(),
            assertionHeader: Located(header, at: Self.location(1)), into: &diagnostics)
        return (table, diagnostics.all)
    }

    @Test func `reserve their header on every route`() throws {
        let table = try #require(compile("X-Gateway.Statement", [route()]).0)
        for name in ["X-Gateway-Statement", "x_gateway_statement", "X-GATEWAY.STATEMENT"] {
            #expect(table.reservedNames.contains(name), "\(name)")
        }
        #expect(!table.reservedNames.contains("X-Gateway"))
    }

    @Test(arguments: ["Authorization", "X-Auth-Subject", "x_auth_email", "Cookie", "Content-Length", "a b"])
    func `reject an unusable header name`(name: String) {
        let (table, found) = compile(name, [route()])
        #expect(table == nil && found.map(\.code) == ["config.bad_header"] && found[0].location == Self.location(1))
    }

    @Test func `reject routes that set or remove their header`() {
        let setting = compile("X-Statement", [route(set: [header("x_statement", .attribute(.subject))])])
        let removing = compile("X-Statement", [route(remove: ["x-statement"])])
        #expect(setting.0 == nil && setting.1.map(\.code) == ["config.bad_header"])
        #expect(removing.0 == nil && removing.1.map(\.code) == ["config.bad_header"])
    }
}
