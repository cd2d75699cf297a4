internal import MartletCore
private import MartletCrypto
private import MartletJOSE
private import MartletJSON

/// Apple's checks of a client secret, a JWT that a developer signs with ES256.
struct ClientSecretChecks {
    /// Six months.
    static let maximumLifetime: Int64 = 15_777_000

    let audience: String
    let keys: DeveloperKeys
    let now: UnixTime

    /// Checks everything; each failure is `invalid_client`, with a text that says what is wrong.
    /// - Returns: the key of the signature.
    func check(_ secret: String, clientID: String) throws(AppleAPIError) -> DeveloperKey {
        let token: CompactJWS
        do throws(JOSEError) {
            token = try CompactJWS(Array(secret.utf8))
            try token.checkHeaderFields()
        } catch {
            throw .invalidClient("The client secret is not a JWT: \(error.message)")
        }
        guard token.header.fields["alg"] == "ES256" else { throw .invalidClient("The algorithm is not ES256.") }
        guard let key = token.header.fields["kid"]?.string.flatMap({ keys[$0] }) else {
            throw .invalidClient("The key id is unknown.")
        }
        guard key.publicKey.verify(token.signature, over: token.signingInput) else {
            throw .invalidClient("The signature is invalid.")
        }
        try check(token.payload, key: key, clientID: clientID)
        return key
    }

    private func check(_ claims: JSONObject, key: DeveloperKey, clientID: String) throws(AppleAPIError) {
        guard claims["iss"] == .string(key.teamID) else { throw .invalidClient("iss is not the team of the key.") }
        guard claims["aud"] == .string(audience) else { throw .invalidClient("aud is not \(audience).") }
        guard claims["sub"] == .string(clientID) else { throw .invalidClient("sub is not the client_id.") }
        guard let issuedAt = claims["iat"]?.int64, let expiresAt = claims["exp"]?.int64 else {
            throw .invalidClient("iat or exp is not a whole number.")
        }
        guard issuedAt >= 0, issuedAt <= now.seconds else { throw .invalidClient("iat is in the future.") }
        guard expiresAt > now.seconds else { throw .invalidClient("The client secret has expired.") }
        let latest = UnixTime(seconds: issuedAt).advanced(bySeconds: Self.maximumLifetime)
        guard expiresAt <= latest.seconds else { throw .invalidClient("exp is more than six months after iat.") }
        guard key.clientIDs.isEmpty || key.clientIDs.contains(where: { $0.hasSameBytes(as: clientID) }) else {
            throw .invalidClient("The client_id is not one of the team.")
        }
    }
}
