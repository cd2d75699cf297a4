internal import MartletCore
internal import MartletCrypto
internal import MartletJSON
internal import MartletProvider
internal import MartletRedis

/// Seals the claims of an account for the session store; like that of its list, the key depends on the subject
/// and the store's seal.
///
/// A stored value is the version in digits, a space and the sealed claims, which are bound to the version: scripts
/// compare versions, and what is older never replaces what is newer.
struct ClaimsSeal {
    private static let limits = JSONLimits(maximumDepth: 8, maximumBytes: 256 * 1024)

    private let subject: String
    private let sealing: SessionSealing

    init(subject: String, _ sealing: SessionSealing = .none) {
        self.subject = subject
        self.sealing = sealing.of(.claims)
    }

    private func key(_ salt: SealSalt) -> Secret {
        salt.derive(from: Secret(subject), purpose: Array("martlet account claims".utf8), length: AES256SIV.keyLength)
    }

    func seal(_ claims: VersionedClaims) throws(CryptoError) -> [UInt8] {
        var identities = JSONObject()
        for provider in claims.claims.identities.keys.sorted() {
            identities[provider] = claims.claims.identities[provider].map { .object($0) }
        }
        var document: JSONObject = ["account": .object(claims.claims.account), "identities": .object(identities)]
        if claims.isDisabled { document["disabled"] = true }
        let plain = JSON.write(document)
        let version = Array(String(claims.version).utf8)
        guard let short = ShortForm.claims.pack(plain) else {
            throw CryptoError(.cryptoFailure, "the claims of an account are too long")
        }
        return version + [0x20] + (try AES256SIV.seal(short, with: key(sealing.own), context: Self.context(version)))
    }

    /// Opens a stored value; `nil` if it is not authentic.
    func open(_ stored: [UInt8]) -> VersionedClaims? {
        guard let space = stored.firstIndex(of: 0x20), let number = StoredClaims.version(of: stored) else { return nil }
        let version = Array(stored[..<space])
        let opened = sealing.first {
            AES256SIV.open(Array(stored[(space + 1)...]), with: key($0), context: Self.context(version))
        }
        guard let opened else {
            sealing.rejected()
            return nil
        }
        guard let plain = ShortForm.claims.unpack(opened),
            let object = plain.withBytes({ try? JSON.parse($0, limits: Self.limits) })?.object,
            let account = object["account"]?.object, let identities = object["identities"]?.object
        else { return nil }
        var claims = AccountClaims(account: account)
        for member in identities.members {
            guard let layer = member.value.object else { return nil }
            claims.identities[member.name] = layer
        }
        return VersionedClaims(version: number, claims: claims, isDisabled: object["disabled"] == true)
    }

    private static func context(_ version: [UInt8]) -> [UInt8] { Array("account claims ".utf8) + version }
}
