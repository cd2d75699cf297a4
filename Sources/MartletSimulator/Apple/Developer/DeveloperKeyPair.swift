package import MartletCore
package import MartletCrypto
private import MartletJOSE
private import MartletJSON

/// A developer's key with its private half, which the simulator generated.
package struct DeveloperKeyPair: Sendable {
    package let key: DeveloperKey
    private let privateKey: PrivateKey

    /// Generates a key pair.
    /// - Throws: `crypto.bad_key` for ids that are not ten characters of `A-Z 0-9`.
    package init(teamID: String, keyID: String, clientIDs: [String] = []) throws(CryptoError) {
        privateKey = try PrivateKey(generating: .p256)
        guard
            let key = DeveloperKey(
                teamID: teamID, keyID: keyID, clientIDs: clientIDs, publicKey: privateKey.publicKey)
        else { throw CryptoError(.cryptoBadKey, "the ids of teams and keys are ten characters of A-Z 0-9") }
        self.key = key
    }

    /// The private key as in an `AuthKey_….p8`.
    package func pem() throws(CryptoError) -> Secret { try privateKey.pkcs8PEM() }

    /// A client secret as Apple requires it, valid for five minutes.
    package func clientSecret(clientID: String, at now: UnixTime) throws(CryptoError) -> String {
        let secret = IdentityToken(
            header: ["alg": .string(SignatureAlgorithm.es256.rawValue), "kid": .string(key.keyID)],
            claims: [
                "iss": .string(key.teamID), "iat": .integer(now.seconds),
                "exp": .integer(now.advanced(bySeconds: 300).seconds), "aud": .string(AppleSimulator.issuer),
                "sub": .string(clientID),
            ])
        return try secret.signed(by: privateKey)
    }
}
