package import MartletAccounts
package import MartletCore
package import MartletCrypto
package import MartletProvider

/// The keys that encrypt grants in the account store (AES-256-GCM): the last one seals, all open.
package struct GrantKeys: Sendable {
    private struct Key: Sendable {
        let id: String
        let secret: Secret
    }

    private static let purpose = "martlet grant"
    private static let canaryPurpose = "martlet grant key canary"
    private static let canaryText = "canary"

    private let sealing: Key
    private let all: [Key]

    /// - Parameter texts: the keys, 32 bytes in base64 each.
    /// - Returns: `nil` without keys, or if one has another form.
    package init?(_ texts: [Secret]) {
        var keys: [Key] = []
        for text in texts {
            guard let bytes = text.withBytes({ GrantKeys.decoded($0) }) else { return nil }
            let digest = SHA256.digest(Array("martlet grant key id".utf8) + bytes)
            keys.append(Key(id: Base64URL.encode(Array(digest.prefix(9))), secret: Secret(bytes)))
        }
        guard let last = keys.last else { return nil }
        sealing = last
        all = keys
    }

    /// The bytes of a key; `nil` for anything but 32 bytes in base64, with or without padding.
    private static func decoded(_ text: [UInt8]) -> [UInt8]? {
        let text = text.filter { $0 > 0x20 }
        let bytes =
            Base64.decode(text[...], padding: .required) ?? Base64.decode(text[...], padding: .absent)
            ?? Base64URL.decode(text)
        return bytes?.count == AES256GCM.keyLength ? bytes : nil
    }

    /// A new key as text.
    /// - Throws: `crypto.failure` if no random bytes are available.
    package static func makeText() throws(CryptoError) -> String {
        Base64.encode(try RandomBytes.make(AES256GCM.keyLength), padding: .required)
    }

    /// The ids of all keys; equal for the same keys.
    package var ids: [String] { all.map(\.id) }

    /// Encrypts a grant for a user of a provider: it opens for no other.
    /// - Throws: `crypto.failure` if no random bytes are available.
    package func seal(
        _ grant: ProviderGrant, of subject: String, provider: String
    ) throws(CryptoError) -> SealedGrant {
        let context = GrantKeys.context(subject, provider, grant.client)
        let sealed = try grant.token.withBytes { (bytes) throws(CryptoError) in
            try AES256GCM.seal(bytes, with: sealing.secret, context: context)
        }
        return SealedGrant(client: grant.client, keyID: sealing.id, token: Base64URL.encode(sealed))
    }

    /// Decrypts a grant; `nil` if its key is missing, or if it was made for another user.
    package func open(_ grant: SealedGrant, of subject: String, provider: String) -> ProviderGrant? {
        guard let key = all.last(where: { $0.id.hasSameBytes(as: grant.keyID) }),
            let sealed = Base64URL.decode(grant.token),
            let token = AES256GCM.open(
                sealed, with: key.secret, context: GrantKeys.context(subject, provider, grant.client))
        else { return nil }
        return ProviderGrant(client: grant.client, token: token)
    }

    private static func context(_ subject: String, _ provider: String, _ client: String) -> [UInt8] {
        Array([purpose, provider, subject, client].joined(separator: "\u{0}").utf8)
    }

    /// Checks that every key that grants are encrypted with is here, and leaves a canary of the sealing key.
    /// - Throws: `accounts.key_missing` if a key is lost, `unavailable` if the store is.
    package func verify(in store: IdentityLifeStore) async throws(AccountError) {
        let canaries = try await store.canaries()
        for (id, text) in canaries {
            guard let key = all.first(where: { $0.id.hasSameBytes(as: id) }) else {
                guard try await store.isInUse(id) else { continue }
                throw .grantKeyMissing(id)
            }
            let opened = Base64URL.decode(text).flatMap {
                AES256GCM.open($0, with: key.secret, context: GrantKeys.canaryContext(id))
            }
            guard opened != nil else { throw .grantKeyMissing(id) }
        }
        guard canaries[sealing.id] == nil else { return }
        let canary: [UInt8]
        do throws(CryptoError) {
            canary = try AES256GCM.seal(
                Array(GrantKeys.canaryText.utf8), with: sealing.secret, context: GrantKeys.canaryContext(sealing.id))
        } catch {
            throw AccountError("accounts.failed", .unavailable, "no random bytes available")
        }
        try await store.addCanary(Base64URL.encode(canary), of: sealing.id)
    }

    /// The same without keys: nothing may be encrypted.
    /// - Throws: `accounts.key_missing`, `unavailable`.
    package static func verifyNone(in store: IdentityLifeStore) async throws(AccountError) {
        for (id, _) in try await store.canaries() where try await store.isInUse(id) { throw .grantKeyMissing(id) }
    }

    private static func canaryContext(_ id: String) -> [UInt8] { Array("\(canaryPurpose)\u{0}\(id)".utf8) }
}

extension AccountError {
    /// A key of `accounts.key_files` that grants are encrypted with is missing.
    static func grantKeyMissing(_ id: String) -> AccountError {
        AccountError(
            .accountsKeyMissing, .unavailable,
            "grants are encrypted with key \(id), which is not among accounts.key_files")
    }
}

extension ErrorCode {
    /// A key that grants are encrypted with is not configured.
    package static let accountsKeyMissing: ErrorCode = "accounts.key_missing"
}
