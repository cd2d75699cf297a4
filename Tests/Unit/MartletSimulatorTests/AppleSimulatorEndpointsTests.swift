import MartletCore
import MartletJOSE
import MartletJSON
import MartletResponder
import MartletSimulator
import Testing

@Suite struct `Apple simulator's endpoints` {
    private static let simulator = Result { try AppleSimulator(clock: .system) }

    private static func ask(
        _ method: String, _ path: String, _ body: String = "", type: String? = "application/json"
    ) async throws -> (response: LocalResponse, object: JSONObject) {
        let bytes = Array(body.utf8)
        let request = LocalRequest(
            method: method, path: path, query: "",
            fields: [("Host", "127.0.0.1:4000")] + (type.map { [("Content-Type", $0)] } ?? []), body: bytes,
            bodyBytes: bytes.count, client: "127.0.0.1", requestID: "r1")
        let response = await AppleSimulatorEndpoints(try simulator.get()).handle(request)
        let limits = JSONLimits(maximumDepth: 8, maximumBytes: 64 * 1024)
        return (response, try JSON.parse(response.body, limits: limits).object ?? [:])
    }

    private static func mint(_ body: String) async throws -> CompactJWS {
        let (response, object) = try await ask("POST", "/simulator/token", body)
        #expect(response.status == 200, "\(body)")
        return try CompactJWS(Array(try #require(object["identity_token"]?.string).utf8))
    }

    /// Whether the token is signed with the published key of its `kid`.
    private static func isGenuine(_ token: CompactJWS) async throws -> Bool {
        let document = try await ask("GET", "/auth/keys").response.body
        let keys = try KeySet(document: document, allowing: [.rs256, .es256])
        guard let key = keys.keys[try token.keyID()] else { return false }
        return key.verify(signature: token.signature, signingInput: token.signingInput)
    }

    @Test func `publishes three RSA keys and one elliptic`() async throws {
        let (response, object) = try await Self.ask("GET", "/auth/keys")
        let keys = (object["keys"]?.array ?? []).compactMap(\.object)
        #expect(response.status == 200)
        #expect(keys.map { $0["kty"] } == ["RSA", "RSA", "RSA", "EC"])
        #expect(keys.allSatisfy { $0["d"] == nil && $0["p"] == nil })
    }

    @Test func `mints what a gateway accepts`() async throws {
        let token = try await Self.mint(#"{"audience": "com.example.app", "subject": "me", "lifetime": 60}"#)
        #expect(try await Self.isGenuine(token))
        #expect(token.payload["aud"] == "com.example.app" && token.payload["sub"] == "me")
        let lifetime = (token.payload["exp"]?.int64 ?? 0) - (token.payload["iat"]?.int64 ?? 0)
        #expect(lifetime == 60)
    }

    @Test func `signs with the requested key`() async throws {
        for key in try Self.simulator.get().keys {
            let token = try await Self.mint(#"{"audience": "a", "kid": "\#(key.id)"}"#)
            #expect(try token.keyID() == key.id)
            #expect(try await Self.isGenuine(token))
        }
    }

    @Test func `a negative lifetime makes an expired token`() async throws {
        let token = try await Self.mint(#"{"audience": "a", "lifetime": -60}"#)
        let (start, end) = (token.payload["iat"]?.int64 ?? 0, token.payload["exp"]?.int64 ?? 0)
        #expect(start < end && end < Clock.system.unixTime.seconds)
        #expect(try await Self.isGenuine(token))
    }

    @Test func `a forged token names a published key and is not signed by it`() async throws {
        let token = try await Self.mint(#"{"audience": "a", "forged": true}"#)
        #expect(try token.keyID() == Self.simulator.get().keys[0].id)
        #expect(try await !Self.isGenuine(token))
        let unknown = try await Self.mint(#"{"audience": "a", "forged": true, "kid": "nobody"}"#)
        #expect(try unknown.keyID().text == "nobody")
    }

    @Test func `claims override all others`() async throws {
        let body =
            #"{"audience": "a", "email": "ada@example.com", "nonce": "n", "claims": {"roles": ["a"], "iss": "i"}}"#
        let payload = try await Self.mint(body).payload
        #expect(payload["email"] == "ada@example.com" && payload["is_private_email"] == "false")
        #expect(payload["nonce"] == "n" && payload["roles"] == ["a"] && payload["iss"] == "i")
        let bare = try await Self.mint(#"{"audience": "a", "email": null}"#).payload
        #expect(bare["email"] == nil && bare["email_verified"] == nil)
    }

    static let invalid = [
        "", "[]", "null", #"{"audience": ""}"#, #"{"subject": "me"}"#, #"{"audience": 1}"#,
        #"{"audience": "a", "audience": "b"}"#, #"{"audience": "a", "extra": 1}"#,
        #"{"audience": "a", "lifetime": 1.5}"#,
        #"{"audience": "a", "lifetime": "60"}"#, #"{"audience": "a", "lifetime": 9223372036854775807}"#,
        #"{"audience": "a", "kid": "nobody"}"#, #"{"audience": "a", "forged": "yes"}"#,
        #"{"audience": "a", "claims": []}"#,
        #"{"audience": "a"} x"#,
    ]

    @Test(arguments: invalid) func `rejects an invalid request`(_ body: String) async throws {
        let (response, object) = try await Self.ask("POST", "/simulator/token", body)
        #expect(response.status == 400 && object["code"] == "request_invalid")
        #expect(object["detail"]?.string?.isEmpty == false && object["request_id"] == "r1")
        #expect(response.fields.first?.value == "application/problem+json")
    }

    @Test func `other paths, methods and media types are rejected`() async throws {
        let rows = [
            ("GET", "/", nil, 404), ("POST", "/auth/keys", nil, 405), ("GET", "/simulator/token", nil, 405),
            ("DELETE", "/.well-known/openid-configuration", nil, 405),
            ("POST", "/simulator/token", "application/x-www-form-urlencoded", 415),
            ("POST", "/simulator/token", nil, 415),
        ]
        for (method, path, type, status) in rows {
            let response = try await Self.ask(method, path, #"{"audience": "a"}"#, type: type).response
            #expect(response.status == status, "\(method) \(path)")
            #expect((status == 405) == response.fields.contains { $0.name == "Allow" }, "\(method) \(path)")
        }
    }

    @Test func `discovery names the endpoints at the requested host`() async throws {
        let object = try await Self.ask("GET", "/.well-known/openid-configuration").object
        #expect(object["issuer"] == "https://appleid.apple.com")
        #expect(object["jwks_uri"] == "http://127.0.0.1:4000/auth/keys")
    }
}
