package import MartletCrypto

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
