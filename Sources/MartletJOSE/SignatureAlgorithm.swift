private import MartletCore
public import MartletCrypto

/// The supported signature algorithms (RFC 7518 §3.1, RFC 8037 §3.1); never `none`.
///
/// Each is an entry of an allow-list, and works only with a key that is bound to it.
public enum SignatureAlgorithm: String, Sendable, Hashable, CaseIterable {
    /// RSASSA-PKCS1-v1_5 with SHA-256.
    case rs256 = "RS256"
    /// ECDSA with P-256 and SHA-256.
    case es256 = "ES256"
    /// RSASSA-PKCS1-v1_5 with SHA-384.
    case rs384 = "RS384"
    /// RSASSA-PKCS1-v1_5 with SHA-512.
    case rs512 = "RS512"
    /// RSASSA-PSS with SHA-256 and a salt of 32 bytes.
    case ps256 = "PS256"
    /// RSASSA-PSS with SHA-384 and a salt of 48 bytes.
    case ps384 = "PS384"
    /// RSASSA-PSS with SHA-512 and a salt of 64 bytes.
    case ps512 = "PS512"
    /// ECDSA with P-384 and SHA-384.
    case es384 = "ES384"
    /// ECDSA with P-521 and SHA-512.
    case es512 = "ES512"
    /// EdDSA with Ed25519 or Ed448, whichever is the key's curve.
    case edDSA = "EdDSA"
    /// HMAC with SHA-256, for an ``HMACKey`` alone.
    case hs256 = "HS256"
    /// HMAC with SHA-384, for an ``HMACKey`` alone.
    case hs384 = "HS384"
    /// HMAC with SHA-512, for an ``HMACKey`` alone.
    case hs512 = "HS512"

    /// The algorithm with exactly this name.
    init?(named name: String) {
        guard let found = Self.allCases.first(where: { $0.rawValue.hasSameBytes(as: name) }) else { return nil }
        self = found
    }

    /// How a public key verifies it; `nil` for HMAC, which has no public key.
    public var scheme: SignatureScheme? {
        switch self {
        case .rs256: .rsaPKCS1(.sha256)
        case .rs384: .rsaPKCS1(.sha384)
        case .rs512: .rsaPKCS1(.sha512)
        case .ps256: .rsaPSS(.sha256)
        case .ps384: .rsaPSS(.sha384)
        case .ps512: .rsaPSS(.sha512)
        case .es256, .es384, .es512: .ecdsa
        case .edDSA: .edDSA
        case .hs256, .hs384, .hs512: nil
        }
    }

    /// The hash of an HMAC; `nil` for algorithms with public keys.
    var hmacHash: HashFunction? {
        switch self {
        case .hs256: .sha256
        case .hs384: .sha384
        case .hs512: .sha512
        case .rs256, .rs384, .rs512, .ps256, .ps384, .ps512, .es256, .es384, .es512, .edDSA: nil
        }
    }
}
