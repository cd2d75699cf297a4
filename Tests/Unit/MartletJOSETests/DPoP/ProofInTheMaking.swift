import MartletCore
import MartletTesting

@testable import MartletJOSE

/// A proof to be changed, then signed.
struct ProofInTheMaking {
    static let token = Array("an access token".utf8)
    static let now = UnixTime(seconds: 1_800_000_000)
    static let request = DPoPRequest(
        method: "POST",
        target: DPoPTarget("https://api.example/v1/orders") ?? DPoPProofTests.nowhere, accessToken: token)
    static let policy = DPoPPolicy(
        algorithms: [.es256, .es384, .es512, .edDSA, .ps256, .rs256], maximumAge: 60, maximumSkew: 5)
    static let signer = Result { try SigningKey("proof", .p256) }

    var header: [String: JSONText]
    var claims: [String: JSONText]
    let key: SigningKey

    init(_ key: SigningKey? = nil) throws {
        self.key = try key ?? Self.signer.get()
        let jwk = try Self.jwk(self.key)
        header = ["typ": "\"dpop+jwt\"", "alg": JSONText(string: self.key.kind.algorithmName), "jwk": jwk]
        claims = [
            "jti": "\"id-1\"", "htm": "\"POST\"", "htu": "\"https://api.example/v1/orders\"",
            "iat": JSONText(Int(Self.now.seconds)),
            // The SHA-256 of the token, made with another implementation.
            "ath": "\"FPlcM-1UXiivOYozpUrp7d117JnKzPF4YXuXNnfZmdU\"",
        ]
    }

    /// The required members of a public key, with changes.
    static func jwk(_ key: SigningKey, _ changes: [String: JSONText?] = [:]) throws -> JSONText {
        var members = try key.jwk().filter { ["kty", "crv", "x", "y", "n", "e"].contains($0.key) }
            .mapValues { JSONText(string: $0) }
        for (name, value) in changes { members[name] = value }
        return JSONText(json(members))
    }

    static func json(_ members: [String: JSONText]) -> String {
        "{" + members.sorted { $0.key < $1.key }.map { "\"\($0.key)\":\($0.value.text)" }.joined(separator: ",") + "}"
    }

    /// The finished proof.
    func signed(by other: SigningKey? = nil, as algorithm: String? = nil) throws -> String {
        let input =
            Base64URL.encode(Array(Self.json(header).utf8)) + "." + Base64URL.encode(Array(Self.json(claims).utf8))
        let signer = other ?? key
        let signature =
            if let algorithm { try signer.signature(over: Array(input.utf8), as: algorithm) } else {
                try signer.signature(over: Array(input.utf8))
            }
        return input + "." + Base64URL.encode(signature)
    }

    /// The code with which a proof is rejected; `nil` if it is accepted.
    static func code(
        of proof: String, for request: DPoPRequest = request, policy: DPoPPolicy = policy, now: UnixTime = now
    ) -> ErrorCode? {
        do throws(DPoPError) {
            _ = try DPoPProof(Array(proof.utf8), policy: policy).confirmation(for: request, policy: policy, now: now)
            return nil
        } catch { return error.code }
    }

    /// The code of this proof after a change.
    static func code(_ change: (inout ProofInTheMaking) throws -> Void) throws -> ErrorCode? {
        var proof = try ProofInTheMaking()
        try change(&proof)
        return code(of: try proof.signed())
    }
}

extension SigningKey.Kind {
    /// The algorithm's name in a header.
    var algorithmName: String {
        switch self {
        case .rsa: "RS256"
        case .p256: "ES256"
        case .p384: "ES384"
        case .p521: "ES512"
        case .ed25519, .ed448: "EdDSA"
        }
    }
}
