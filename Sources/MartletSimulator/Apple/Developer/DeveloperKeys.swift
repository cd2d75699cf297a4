package import MartletCore
package import MartletCrypto
private import MartletJOSE
private import MartletJSON

/// A key with which a developer signs client secrets: its public half, as registered at Apple.
package struct DeveloperKey: Sendable {
    private static let identifierLength = 10

    package let teamID: String
    package let keyID: String
    /// The apps and services of the team; empty: every client id belongs to it.
    package let clientIDs: [String]
    let publicKey: PublicKey

    /// - Returns: `nil` unless both ids are ten characters of `A-Z 0-9`, and the key is on P-256.
    package init?(teamID: String, keyID: String, clientIDs: [String] = [], publicKey: PublicKey) {
        guard Self.isIdentifier(teamID), Self.isIdentifier(keyID), case .p256 = publicKey.parts else { return nil }
        self.teamID = teamID
        self.keyID = keyID
        self.clientIDs = clientIDs
        self.publicKey = publicKey
    }

    /// Whether it may be the id of a team or a key: ten characters of `A-Z 0-9`.
    package static func isIdentifier(_ text: String) -> Bool {
        text.utf8.count == identifierLength
            && text.utf8.allSatisfy { byte in
                (UInt8(ascii: "A")...UInt8(ascii: "Z")).contains(byte)
                    || (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte)
            }
    }
}

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

/// The registered keys of developers, by their ids.
struct DeveloperKeys: Sendable {
    static let capacity = 64

    private(set) var all: [DeveloperKey] = []

    /// The key of an id; ids are compared by their bytes.
    subscript(keyID: String) -> DeveloperKey? { all.first { $0.keyID.hasSameBytes(as: keyID) } }

    /// Registers a key, in exchange for another one with its id.
    /// - Returns: whether there was room for it.
    mutating func register(_ key: DeveloperKey) -> Bool {
        _ = remove(key.keyID)
        guard all.count < Self.capacity else { return false }
        all.append(key)
        return true
    }

    /// - Returns: whether there was a key with this id.
    mutating func remove(_ keyID: String) -> Bool {
        let count = all.count
        all.removeAll { $0.keyID.hasSameBytes(as: keyID) }
        return all.count < count
    }
}
