import MartletCore
import MartletCrypto
import MartletJOSE
import MartletJSON
import Testing

@Suite struct Thumbprints {
    /// RFC 7638 §3.1.
    @Test func `match the example of the RFC`() throws {
        let modulus =
            "0vx7agoebGcQSuuPiLJXZptN9nndrQmbXEps2aiAFbWhM78LhWx4cbbfAAtVT86zwu1RK7aPFFxuhDR1L6tSoc_BJECPebWKRXjBZCiFV4n3"
            + "oknjhMstn64tZ_2W-5JsGY4Hc5n9yBXArwl93lqt7_RN5w6Cf0h4QyQ5v-65YGjQR0_FDW2QvzqY368QQMicAtaSqzs8KJZgnYb9c7d0zgdA"
            + "ZHzu6qMQvRL5hajrn1n91CbOpbISD08qNLyrdkt-bFTWhAI4vMQFh6WeZu0fM4lFd2NcRwr3XPksINHaQ-G_xBniIqbw0Ls1jF44-csFCur-"
            + "kEgU8awapJzKnqDKgw"
        let parts = PublicKeyParts.rsa(
            modulus: try #require(Base64URL.decode(modulus)), exponent: try #require(Base64URL.decode("AQAB")))
        #expect(parts.thumbprint == "NzbLsXh8uDCcd-6MNwXF4W_7noWXFZAfHkxZsRGC9Xs")
        #expect(KeyID(parts.thumbprint) != nil)
    }

    @Test func `of P-256 keys are over the members that the RFC names, in its order`() throws {
        let key = try PrivateKey(generating: .p256).publicKey
        guard case .p256(let x, let y) = key.parts else { throw CryptoError(.cryptoBadKey, "not P-256") }
        let (x64, y64) = (Base64URL.encode(x), Base64URL.encode(y))
        let text = "{\"crv\":\"P-256\",\"kty\":\"EC\",\"x\":\"\(x64)\",\"y\":\"\(y64)\"}"
        #expect(key.parts.thumbprint == Base64URL.encode(SHA256.digest(Array(text.utf8))))
        #expect(
            key.parts.jwk(named: "k1") == [
                "kid": "k1", "use": "sig", "alg": "ES256", "crv": "P-256", "kty": "EC", "x": .string(x64),
                "y": .string(y64),
            ])
    }

    /// RFC 8037 A.3.
    @Test func `of Ed25519 keys match the example of the RFC`() throws {
        let x = try #require(Base64URL.decode("11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"))
        #expect(PublicKeyParts.ed25519(x: x).thumbprint == "kPrK_qmxVWaYVA9wwBF6Iuo3vVzz7TxHCTwXBygrS4k")
    }

    @Test(arguments: KeyOfKind.all)
    func `of every kind are over the required members, which make the same key`(kind: KeyOfKind) throws {
        let parts = try kind.parts
        let members = parts.jwkMembers.members
        #expect(members.map(\.name) == members.map(\.name).sorted())
        #expect(try PublicKeyParts(jwk: parts.jwkMembers) == parts)
        #expect(try PublicKeyParts(jwk: parts.jwk(named: "k")) == parts)
        let text = members.map { "\"\($0.name)\":\"\($0.value.string ?? "")\"" }.joined(separator: ",")
        #expect(parts.thumbprint == Base64URL.encode(SHA256.digest(Array("{\(text)}".utf8))))
    }
}
