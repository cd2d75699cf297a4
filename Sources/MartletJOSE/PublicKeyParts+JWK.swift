private import MartletCore
public import MartletCrypto
public import MartletJSON

extension PublicKeyParts {
    /// The required JWK members of the key (RFC 7517 §4, RFC 7518 §6), in lexicographic order.
    public var jwkMembers: JSONObject {
        switch self {
        case .rsa(let modulus, let exponent):
            ["e": .string(Base64URL.encode(exponent)), "kty": "RSA", "n": .string(Base64URL.encode(modulus))]
        case .p256(let x, let y):
            [
                "crv": "P-256", "kty": "EC", "x": .string(Base64URL.encode(x)), "y": .string(Base64URL.encode(y)),
            ]
        }
    }

    /// The JWK thumbprint of the key with SHA-256 (RFC 7638 §3): 43 characters.
    public var thumbprint: String { Base64URL.encode(SHA256.digest(JSON.write(jwkMembers))) }

    /// The algorithm that the key is for.
    public var algorithm: SignatureAlgorithm {
        switch self {
        case .rsa: .rs256
        case .p256: .es256
        }
    }

    /// The key as an entry of a key set, for signatures.
    public func jwk(named id: String) -> JSONObject {
        let common: [(String, JSONValue)] = [
            ("kid", .string(id)), ("use", "sig"), ("alg", .string(algorithm.rawValue)),
        ]
        return JSONObject(common + jwkMembers.members.map { ($0.name, $0.value) })
    }
}
