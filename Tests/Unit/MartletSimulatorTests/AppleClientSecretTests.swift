import MartletCore
import MartletCrypto
import MartletJSON
import MartletSimulator
import Testing

@Suite struct `Apple simulator's client secrets` {
    /// A client secret with changes.
    private struct Draft {
        var header: JSONObject
        var claims: JSONObject

        init(_ stage: AppleStage) {
            let key = stage.developer.key
            header = ["alg": "ES256", "kid": .string(key.keyID)]
            claims = [
                "iss": .string(key.teamID), "iat": .integer(stage.now.seconds),
                "exp": .integer(stage.now.seconds + 300), "aud": "https://appleid.apple.com",
                "sub": .string(AppleStage.app),
            ]
        }
    }

    /// A row of the table: what is changed.
    struct Row: Sendable, CustomTestStringConvertible {
        let name: String
        let part: String
        let value: JSONValue?
        var isGood = false

        var testDescription: String { name }
    }

    private static let now: Int64 = 1_700_000_000

    static let rows = [
        Row(name: "unchanged", part: "iat", value: .integer(now), isGood: true),
        Row(name: "typ JWT", part: "header typ", value: "JWT", isGood: true),
        Row(name: "six months", part: "exp", value: .integer(now + 15_777_000), isGood: true),
        Row(name: "more than six months", part: "exp", value: .integer(now + 15_777_001)),
        Row(name: "expired now", part: "exp", value: .integer(now)),
        Row(name: "without exp", part: "exp", value: nil),
        Row(name: "exp as a string", part: "exp", value: .string("\(now + 300)")),
        Row(name: "exp as a fraction", part: "exp", value: .number(JSONNumber(1_700_000_000.5) ?? JSONNumber(0))),
        Row(name: "the latest exp", part: "exp", value: .integer(.max)),
        Row(name: "iat in the future", part: "iat", value: .integer(now + 1)),
        Row(name: "a negative iat", part: "iat", value: .integer(.min)),
        Row(name: "without iat", part: "iat", value: nil),
        Row(name: "another team", part: "iss", value: "OTHERTEAM1"),
        Row(name: "without team", part: "iss", value: nil),
        Row(name: "another audience", part: "aud", value: "https://account.apple.com"),
        Row(name: "a list of audiences", part: "aud", value: ["https://appleid.apple.com"]),
        Row(name: "another client", part: "sub", value: "com.example.App"),
        Row(name: "without client", part: "sub", value: nil),
        Row(name: "another algorithm", part: "header alg", value: "RS256"),
        Row(name: "no algorithm", part: "header alg", value: "none"),
        Row(name: "an unknown key", part: "header kid", value: "OTHERKEY01"),
        Row(name: "without key", part: "header kid", value: nil),
        Row(name: "a key id that is a number", part: "header kid", value: 1),
        Row(name: "a critical extension", part: "header crit", value: ["b64"]),
        Row(name: "a key in the header", part: "header jwk", value: ["kty": "EC"]),
    ]

    @Test(arguments: rows) func `are checked`(_ row: Row) async throws {
        let stage = try AppleStage()
        var draft = Draft(stage)
        if row.part.hasPrefix("header ") {
            draft.header[String(row.part.dropFirst(7))] = row.value
        } else {
            draft.claims[row.part] = row.value
        }
        let secret = try IdentityToken(header: draft.header, claims: draft.claims).signed(
            by: try PrivateKey(pem: stage.developer.pem()))
        let reply = await Self.revoke(stage, secret)
        #expect(reply.status == (row.isGood ? 200 : 400) && reply.error == (row.isGood ? nil : "invalid_client"))
    }

    private static func revoke(
        _ stage: AppleStage, _ secret: String, client: String = AppleStage.app
    ) async
        -> AppleStage.Reply
    {
        await stage.call("/auth/revoke", [("client_id", client), ("client_secret", secret), ("token", "t")])
    }

    @Test func `that are no JWT, or are not signed by the key, are rejected`() async throws {
        let stage = try AppleStage()
        let good = try stage.secret()
        let draft = Draft(stage)
        let other = try IdentityToken(header: draft.header, claims: draft.claims).signed(
            by: try PrivateKey(generating: .p256))
        let rsa = try IdentityToken(header: draft.header, claims: draft.claims).signed(
            by: try PrivateKey(generating: .rsa2048))
        let parts = good.split(separator: ".")
        for wrong in [
            other, rsa, "x", "a.b.c", "\(parts[0]).\(parts[1]).", good + "=", good + ".x", " " + good,
            String(repeating: "a", count: 20_000), "\(parts[0]).\(parts[1]).\(other.split(separator: ".")[2])", "🙂.🙂.🙂",
        ] {
            let reply = await Self.revoke(stage, wrong)
            #expect(reply.status == 400 && reply.error == "invalid_client", "\(wrong.prefix(60))")
        }
        #expect(await Self.revoke(stage, good).status == 200)
    }

    @Test func `are valid for the client ids of the team`() async throws {
        let stage = try AppleStage()
        let team = try stage.simulator.makeDeveloperKey(
            teamID: "OTHERTEAM1", keyID: "OTHERKEY01", clientIDs: ["com.example.one", "com.example.two"])
        for (client, status) in [("com.example.one", 200), ("com.example.two", 200), ("com.example.three", 400)] {
            let secret = try team.clientSecret(clientID: client, at: stage.now)
            #expect(await Self.revoke(stage, secret, client: client).status == status, "\(client)")
        }
    }

    @Test func `of a registered or a removed key`() async throws {
        let stage = try AppleStage()
        let generated = await stage.order("/simulator/key", #"{"team_id": "OTHERTEAM1", "key_id": "OTHERKEY01"}"#)
        #expect(generated.status == 200)
        let key = try PrivateKey(pem: Secret(try #require(generated["private_key"])))
        var draft = Draft(stage)
        draft.header["kid"] = "OTHERKEY01"
        draft.claims["iss"] = "OTHERTEAM1"
        let secret = try IdentityToken(header: draft.header, claims: draft.claims).signed(by: key)
        #expect(await Self.revoke(stage, secret).status == 200)
        let own = stage.developer
        let pem = try own.pem().withBytes { String(decoding: $0, as: UTF8.self) }.replacing("\n", with: "\\n")
        let registered = await stage.order(
            "/simulator/key", #"{"team_id": "OTHERTEAM1", "key_id": "OTHERKEY01", "pem": "\#(pem)"}"#)
        #expect(registered.status == 200 && registered["private_key"] == nil)
        #expect(await Self.revoke(stage, secret).error == "invalid_client", "the key was replaced")
        let removed = await stage.order("/simulator/key", #"{"key_id": "\#(own.key.keyID)", "removed": true}"#)
        #expect(removed.object["removed"] == true)
        #expect(await Self.revoke(stage, try stage.secret()).error == "invalid_client")
    }

    @Test func `the private key of the start is handed out`() async throws {
        let stage = try AppleStage()
        let reply = await stage.send("GET", "/simulator/private-key", fields: [])
        #expect(reply.status == 200)
        #expect(
            try PrivateKey(pem: Secret(reply.text)).publicKey.parts
                == PrivateKey(pem: stage.developer.pem()).publicKey.parts)
        #expect(await stage.order("/simulator/private-key", "{}").status == 405)
        let given = try AppleSimulator(
            clock: .system, signing: try AppleStage.signing.get(), developers: [stage.developer.key])
        #expect(given.developer == nil)
    }

    static let badKeys = [
        "{}", #"{"team_id": "OTHERTEAM1"}"#, #"{"team_id": "short", "key_id": "OTHERKEY01"}"#,
        #"{"team_id": "OTHERTEAM1", "key_id": "otherkey01"}"#, #"{"team_id": "OTHERTEAM1", "key_id": "ÖTHERKEY0"}"#,
        #"{"team_id": "OTHERTEAM1", "key_id": "OTHERKEY01", "pem": "x"}"#,
        #"{"team_id": "OTHERTEAM1", "key_id": "OTHERKEY01", "client_ids": "a"}"#,
        #"{"team_id": "OTHERTEAM1", "key_id": "OTHERKEY01", "client_ids": [1]}"#,
    ]

    @Test(arguments: badKeys) func `keys that Apple would not issue are rejected`(_ body: String) async throws {
        #expect(await (try AppleStage()).order("/simulator/key", body).status == 400)
    }

    @Test func `the number of keys is limited`() async throws {
        let stage = try AppleStage()
        for number in 100..<163 {
            _ = try stage.simulator.makeDeveloperKey(teamID: "OTHERTEAM1", keyID: "OTHERKE\(number)")
        }
        #expect(throws: CryptoError.self) {
            try stage.simulator.makeDeveloperKey(teamID: "OTHERTEAM1", keyID: "OTHERKE163")
        }
    }
}
