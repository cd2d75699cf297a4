internal import MartletCore
internal import MartletCrypto
private import MartletJSON

/// Mints the client secrets of Apple's API: ES256 tokens that live 10 minutes, cached for each client id.
final class ClientSecrets: Sendable {
    /// In seconds; Apple permits 6 months.
    static let lifetime: Int64 = 570
    /// How far `iat` is set back, in seconds, because Apple refuses a time in its future.
    static let backdating: Int64 = 30
    /// A secret is replaced when less of its life is left, in seconds.
    private static let reserve: Int64 = 120

    private struct Minted {
        let secret: String
        let expiry: UnixTime
    }

    let team: String
    let key: DeveloperKey
    private let audience: String
    /// By client id; only configured ones are asked for.
    private let minted = Lock<[String: Minted]>([:])

    /// - Parameter audience: the `aud` of the secrets: Apple's issuer.
    init(team: String, key: DeveloperKey, audience: String) {
        self.team = team
        self.key = key
        self.audience = audience
    }

    /// The secret of a client id at a time.
    /// - Throws: `crypto.failure` if it cannot be signed.
    func secret(for client: String, at now: UnixTime) throws(CryptoError) -> String {
        if let cached = minted.withLock({ $0[client] }), isUsable(cached, at: now) { return cached.secret }
        let fresh = try mint(for: client, at: now)
        minted.withLock { $0[client] = fresh }
        return fresh.secret
    }

    /// A clock that was set back makes a secret unusable, too: it would seem to be issued in the future.
    private func isUsable(_ cached: Minted, at now: UnixTime) -> Bool {
        let left = cached.expiry.seconds.subtractingReportingOverflow(now.seconds)
        return !left.overflow && left.partialValue > Self.reserve && left.partialValue <= Self.lifetime
    }

    private func mint(for client: String, at now: UnixTime) throws(CryptoError) -> Minted {
        let expiry = now.advanced(bySeconds: Self.lifetime)
        let header: JSONObject = ["alg": "ES256", "kid": .string(key.id)]
        let payload: JSONObject = [
            "iss": .string(team), "iat": .integer(now.advanced(bySeconds: -Self.backdating).seconds),
            "exp": .integer(expiry.seconds), "aud": .string(audience), "sub": .string(client),
        ]
        let input = [header, payload].map { Base64URL.encode(JSON.write($0)) }.joined(separator: ".")
        let signature = try key.key.sign(Array(input.utf8))
        return Minted(secret: "\(input).\(Base64URL.encode(signature))", expiry: expiry)
    }
}
