import MartletAccounts
import MartletCore
import MartletProvider
import MartletTesting
import Testing

@testable import MartletIdentities

@Suite struct GrantKeysTests {
    private static let grant = ProviderGrant(client: "com.example.app", token: Secret("refresh"))

    private func key(_ byte: UInt8) -> Secret {
        Secret(Base64.encode([UInt8](repeating: byte, count: 32), padding: .required))
    }

    private func keys(_ bytes: UInt8...) throws -> GrantKeys { try #require(GrantKeys(bytes.map(key))) }

    @Test func `are 32 bytes in base64`() throws {
        #expect(GrantKeys([]) == nil)
        for text in ["", "AAAA", String(repeating: "A", count: 44), "not base64!", String(repeating: "=", count: 44)] {
            #expect(GrantKeys([Secret(text)]) == nil, "\(text)")
        }
        #expect(GrantKeys([key(1), Secret("AAAA")]) == nil)
        let made = try GrantKeys.makeText()
        #expect(made.count == 44 && GrantKeys([Secret(made)]) != nil && GrantKeys([Secret(made + "\n")]) != nil)
        #expect(try GrantKeys.makeText() != made)
        #expect(GrantKeys([Secret(String(made.dropLast()))])?.ids == GrantKeys([Secret(made)])?.ids)
    }

    @Test func `open what they sealed, for the same user, provider and client only`() throws {
        let keys = try keys(1)
        let sealed = try keys.seal(Self.grant, of: "001", provider: "apple")
        #expect(!sealed.token.contains("refresh") && sealed.client == "com.example.app")
        #expect(keys.open(sealed, of: "001", provider: "apple")?.text == "refresh")
        #expect(keys.open(sealed, of: "002", provider: "apple") == nil)
        #expect(keys.open(sealed, of: "001", provider: "apple2") == nil)
        let moved = SealedGrant(client: "com.other", keyID: sealed.keyID, token: sealed.token)
        #expect(keys.open(moved, of: "001", provider: "apple") == nil)
        let damaged = SealedGrant(
            client: sealed.client, keyID: sealed.keyID,
            token: (sealed.token.first == "A" ? "B" : "A") + sealed.token.dropFirst())
        #expect(keys.open(damaged, of: "001", provider: "apple") == nil)
        #expect(try keys.seal(Self.grant, of: "001", provider: "apple") != sealed, "sealed with a fresh nonce")
    }

    @Test func `the last key seals, all open`() throws {
        let (old, both, new) = (try keys(1), try keys(1, 2), try keys(2))
        let first = try old.seal(Self.grant, of: "001", provider: "apple")
        let second = try both.seal(Self.grant, of: "001", provider: "apple")
        #expect(both.open(first, of: "001", provider: "apple") != nil)
        #expect(new.open(second, of: "001", provider: "apple") != nil)
        #expect(new.open(first, of: "001", provider: "apple") == nil)
        #expect(old.ids + new.ids == both.ids)
    }

    @Test func `a lost key is found when the store opens, as long as it is needed`() async throws {
        try await Stage.run { stage in
            let issuer = ScriptedIssuer()
            try await stage.keys.verify(in: stage.store.life)
            let other = try keys(9)
            try await other.verify(in: stage.store.life)
            try await stage.logIn("001", grant: "refresh", by: issuer)
            let error = await #expect(throws: AccountError.self) { try await other.verify(in: stage.store.life) }
            #expect(error?.code == .accountsKeyMissing)
            let both = try #require(GrantKeys([Secret(Stage.keyText), key(9)]))
            try await both.verify(in: stage.store.life)
            let forged = try #require(GrantKeys([Secret(Stage.keyText)]))
            try await forged.verify(in: stage.store.life)
        }
    }
}
