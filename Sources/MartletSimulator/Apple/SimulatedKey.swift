private import MartletCore
package import MartletCrypto
package import MartletJOSE
package import MartletJSON

/// A pretended issuer's key with its private half.
package struct SimulatedKey: Sendable {
    package let id: KeyID
    package let privateKey: PrivateKey

    package init(id: KeyID, privateKey: PrivateKey) {
        self.id = id
        self.privateKey = privateKey
    }

    package var algorithm: SignatureAlgorithm {
        switch privateKey.publicKey.parts {
        case .rsa: .rs256
        case .p256: .es256
        }
    }

    /// The public half as a JWK (RFC 7517 §4).
    package var jwk: JSONObject {
        let parts: JSONObject =
            switch privateKey.publicKey.parts {
            case .rsa(let modulus, let exponent):
                ["kty": "RSA", "n": .string(Base64URL.encode(modulus)), "e": .string(Base64URL.encode(exponent))]
            case .p256(let x, let y):
                [
                    "kty": "EC", "crv": "P-256", "x": .string(Base64URL.encode(x)), "y": .string(Base64URL.encode(y)),
                ]
            }
        let common: [(String, JSONValue)] = [
            ("kid", .string(id.text)), ("use", "sig"), ("alg", .string(algorithm.rawValue)),
        ]
        return JSONObject(common + parts.members.map { ($0.name, $0.value) })
    }
}
