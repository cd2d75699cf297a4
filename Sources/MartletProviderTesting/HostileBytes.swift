internal import MartletCore
internal import MartletJSON
internal import MartletProvider

/// Credentials that no client would send, and that must never crash a provider or give an identity.
enum HostileBytes {
    private static let plain: [[UInt8]] = [
        [], [0], [0xFF], [0xFF, 0xFE, 0xFD], [0xC0, 0x80], [0xED, 0xA0, 0x80], Array("\r\n".utf8), Array(" ".utf8),
        Array("%00".utf8), Array("..".utf8), Array("../../etc/passwd".utf8), Array("' OR 1=1 --".utf8),
        Array("${jndi:ldap://x}".utf8), Array("\u{202E}\u{0000}".utf8), Array("null".utf8), Array("{}".utf8),
        Array("[]".utf8), Array("e30.e30.".utf8), Array("e30.e30.e30".utf8), Array("....".utf8),
        Array("a.b.c.d.e".utf8),
        [UInt8](repeating: UInt8(ascii: "."), count: 10_000), [UInt8](repeating: UInt8(ascii: "a"), count: 1 << 20),
        [UInt8](repeating: 0x30, count: 70_000), Array("=".utf8), Array("====".utf8), Array("YTpi====".utf8),
        Array("Og==".utf8), Array("Ojo6".utf8), Array("YTo=".utf8),
        // The beginning of a certificate that is longer than it says, and one that is much shorter.
        [0x30, 0x82, 0xFF, 0xFF], [0x30, 0x84, 0x7F, 0xFF, 0xFF, 0xFF], [0x30, 0x80, 0x30, 0x80, 0x00, 0x00],
    ]

    /// - Parameter source: what the provider accepts; tokens are given its prefix, and its issuer.
    static func all(for source: CredentialSource) -> [[UInt8]] {
        switch source {
        case .bearerPrefix(let prefix): plain + plain.map { Array(prefix.utf8) + $0 } + [Array(prefix.utf8)]
        case .bearerJWT(let issuers): plain + (issuers.first.map { tokens($0) } ?? [])
        case .basic, .header, .messageSignature, .clientCertificate: plain
        }
    }

    /// A random credential of the form that a source has.
    static func random(for source: CredentialSource, using random: inout SeededGenerator) -> [UInt8] {
        let count = Int(random.next() % 300)
        let bytes = (0..<count).map { _ in UInt8(truncatingIfNeeded: random.next()) }
        switch (source, random.next() % 3) {
        case (.bearerPrefix(let prefix), 0...1):
            return Array(prefix.utf8) + Array(Base64URL.encode(bytes).utf8)
        case (.bearerJWT(let issuers), 0...1):
            let header = random.next() % 2 == 0 ? #"{"alg":"RS256","kid":"k"}"# : #"{"alg":"none"}"#
            let payload = JSONValue.object(["iss": .string(issuers.first ?? ""), "sub": "x", "exp": 9_999_999_999])
            let parts = [Array(header.utf8), JSON.write(payload), bytes].map(Base64URL.encode)
            return Array(parts.joined(separator: ".").utf8)
        case (.basic, 0...1): return Array(Base64URL.encode(Array("user:".utf8) + bytes).utf8)
        default: return bytes
        }
    }

    /// Tokens with every usual confusion, none of them signed by the issuer.
    private static func tokens(_ issuer: String) -> [[UInt8]] {
        let headers = [
            #"{"alg":"none"}"#, #"{"alg":"None"}"#, #"{"alg":"HS256"}"#, #"{"alg":"RS256"}"#,
            #"{"alg":"RS256","kid":""}"#,
            #"{"alg":"RS256","kid":"../../dev/null"}"#, #"{"alg":"RS256","jku":"http://127.0.0.1/k"}"#,
            #"{"alg":"RS256","jwk":{"kty":"RSA","n":"AQAB","e":"AQAB"}}"#,
            #"{"alg":"ES256","crit":["b64"],"b64":false}"#,
            #"{"alg":"RS256","zip":"DEF"}"#, #"{"alg":["RS256"]}"#, #"{"alg":1e400}"#, "{", "[]", "",
            String(repeating: "[", count: 5_000), #"{"alg":"RS256","typ":"logout+jwt"}"#,
        ]
        let claims = [
            #"{"iss":"\#(issuer)","sub":"x","aud":"x","exp":9999999999,"iat":1}"#,
            #"{"iss":"\#(issuer)","iss":"\#(issuer)","sub":"x"}"#, #"{"iss":["\#(issuer)"]}"#,
            #"{"iss":"\#(issuer)","exp":1e400,"sub":null}"#, "{}", "",
        ]
        return headers.flatMap { header in
            claims.flatMap { claim in
                ["", "AA", String(repeating: "A", count: 342)].map { signature in
                    let parts = [Base64URL.encode(Array(header.utf8)), Base64URL.encode(Array(claim.utf8)), signature]
                    return Array(parts.joined(separator: ".").utf8)
                }
            }
        }
    }
}

/// Bodies of logins that no client would send.
enum HostileForms {
    static var all: [(name: String, form: SignInForm)] {
        let names = [
            "code", "app", "id_token", "nonce", "username", "password", "token", "state", "redirect_uri",
            "identity_token",
        ]
        func form(_ value: String) -> SignInForm {
            SignInForm(
                texts: Dictionary(uniqueKeysWithValues: names.map { ($0, Secret(value)) }), others: [:], isForm: false)
        }
        let others: [JSONValue] = [.null, .bool(true), .integer(-1), .array([]), .object([:])]
        return [
            ("no members", SignInForm(texts: [:], others: [:], isForm: false)), ("empty members", form("")),
            ("NUL in its members", form("\u{0}")), ("members of 64 KiB", form(String(repeating: "a", count: 65_536))),
            ("line breaks in its members", form("a\r\nb")), ("text that is no token", form("x.y.z")),
            ("combining characters", form(String(repeating: "\u{0301}", count: 100))),
        ]
            + others.map { value in
                (
                    "members of another type",
                    SignInForm(
                        texts: [:], others: Dictionary(uniqueKeysWithValues: names.map { ($0, value) }), isForm: false)
                )
            }
    }
}

/// Random numbers that are the same in every run (xorshift64*).
struct SeededGenerator: RandomNumberGenerator {
    private var state: UInt64

    init(seed: UInt64) { state = seed == 0 ? 1 : seed }

    mutating func next() -> UInt64 {
        state ^= state >> 12
        state ^= state << 25
        state ^= state >> 27
        return state &* 0x2545_F491_4F6C_DD1D
    }
}
