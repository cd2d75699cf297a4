private import MartletCore
public import MartletCrypto
public import MartletJSON

extension PublicKeyParts {
    /// Members of private and symmetric keys (RFC 7518 §6.2.2, §6.3.2, §6.4.1).
    static let privateMembers = ["d", "p", "q", "dp", "dq", "qi", "oth", "k"]

    /// The public key in a JWK (RFC 7517 §4, RFC 7518 §6, RFC 8037 §2). Whether the numbers are a key is not checked.
    ///
    /// - Throws: `bad_key` for another kind of key or another curve, a private or symmetric key, and members that are
    ///   missing or not base64url. Leading zero bytes of integers, which some issuers write, are dropped.
    public init(jwk: JSONObject) throws(JOSEError) {
        if jwk["kty"] == "oct" { throw Self.bad("it is symmetric: a secret must be configured") }
        for name in Self.privateMembers where jwk.has(name) { throw Self.bad("it is private: it has '\(name)'") }
        func bytes(_ name: String) throws(JOSEError) -> [UInt8] {
            guard let bytes = jwk[name]?.string.flatMap({ Base64URL.decode($0) }) else {
                throw Self.bad("'\(name)' is not base64url")
            }
            return bytes
        }
        // Unsigned integers use the minimum number of bytes, but not with every issuer (RFC 7518 §2, §6.3.1.1).
        func integer(_ name: String) throws(JOSEError) -> [UInt8] { Array(try bytes(name).drop { $0 == 0 }) }
        switch (jwk["kty"], jwk["crv"]) {
        case ("RSA", _): self = .rsa(modulus: try integer("n"), exponent: try integer("e"))
        case ("EC", "P-256"): self = .p256(x: try bytes("x"), y: try bytes("y"))
        case ("EC", "P-384"): self = .p384(x: try bytes("x"), y: try bytes("y"))
        case ("EC", "P-521"): self = .p521(x: try bytes("x"), y: try bytes("y"))
        case ("EC", _): throw Self.bad("its curve is not P-256, P-384 or P-521")
        case ("OKP", "Ed25519"): self = .ed25519(x: try bytes("x"))
        case ("OKP", "Ed448"): self = .ed448(x: try bytes("x"))
        case ("OKP", _): throw Self.bad("its curve is not Ed25519 or Ed448")
        default: throw Self.bad("its type is not RSA, EC or OKP")
        }
    }

    private static func bad(_ message: String) -> JOSEError { JOSEError(.badKey, message) }

    /// The required JWK members of the key (RFC 7517 §4, RFC 7518 §6, RFC 8037 §2), in lexicographic order.
    public var jwkMembers: JSONObject {
        switch self {
        case .rsa(let modulus, let exponent):
            ["e": .string(Base64URL.encode(exponent)), "kty": "RSA", "n": .string(Base64URL.encode(modulus))]
        case .p256(let x, let y): Self.members("P-256", x, y)
        case .p384(let x, let y): Self.members("P-384", x, y)
        case .p521(let x, let y): Self.members("P-521", x, y)
        case .ed25519(let x): ["crv": "Ed25519", "kty": "OKP", "x": .string(Base64URL.encode(x))]
        case .ed448(let x): ["crv": "Ed448", "kty": "OKP", "x": .string(Base64URL.encode(x))]
        }
    }

    private static func members(_ curve: JSONValue, _ x: [UInt8], _ y: [UInt8]) -> JSONObject {
        ["crv": curve, "kty": "EC", "x": .string(Base64URL.encode(x)), "y": .string(Base64URL.encode(y))]
    }

    /// The JWK thumbprint of the key with SHA-256 (RFC 7638 §3, RFC 8037 §2): 43 characters.
    public var thumbprint: String { Base64URL.encode(SHA256.digest(JSON.write(jwkMembers))) }

    /// The algorithms that a key of this kind can verify: that of its curve, or any of RSA.
    public var algorithms: [SignatureAlgorithm] {
        switch self {
        case .rsa: [.rs256, .rs384, .rs512, .ps256, .ps384, .ps512]
        case .p256: [.es256]
        case .p384: [.es384]
        case .p521: [.es512]
        case .ed25519, .ed448: [.edDSA]
        }
    }

    /// The algorithm that the key is for unless it is bound to another: that of its curve, or RS256.
    public var algorithm: SignatureAlgorithm {
        switch self {
        case .rsa: .rs256
        case .p256: .es256
        case .p384: .es384
        case .p521: .es512
        case .ed25519, .ed448: .edDSA
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
