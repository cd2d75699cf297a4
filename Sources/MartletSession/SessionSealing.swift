internal import MartletCore
internal import MartletCrypto
internal import MartletRedis

/// A key of the store's seal, which the keys of a session are derived with; empty without a seal.
struct SealSalt: Sendable {
    static let none = SealSalt(secret: nil)

    private let secret: Secret?

    init(secret: Secret?) { self.secret = secret }

    /// Derives a key; without this salt it cannot be derived.
    func derive(from key: Secret, purpose: [UInt8], length: Int) -> Secret {
        guard let secret else { return HKDFSHA256.derive(from: key, salt: [], purpose: purpose, length: length) }
        return secret.withBytes { HKDFSHA256.derive(from: key, salt: $0, purpose: purpose, length: length) }
    }

    /// The key that a record is encrypted with.
    func recordKey(_ key: Secret) -> Secret {
        derive(from: key, purpose: Array("martlet session record".utf8), length: AES256SIV.keyLength)
    }

    /// What tokens of the session with this stored verifier are authenticated by.
    func verifier(_ stored: [UInt8]) -> [UInt8] {
        guard secret != nil else { return stored }
        // Copies: secrets wipe their storage.
        return derive(
            from: Secret(stored.map { $0 }), purpose: Array("martlet session verifier".utf8), length: SHA256.length
        ).withBytes { $0.map { $0 } }
    }
}

/// With which keys of the store's seal sessions are sealed, and which are tried on reading.
struct SessionSealing: Sendable {
    /// Without `store.seal`.
    static let none = SessionSealing(nil)

    /// By which new values are sealed.
    let own: SealSalt
    private let others: [SealSalt]
    private let seal: StoreSeal?
    private var kind: SealedKind

    init(_ seal: StoreSeal?, kind: SealedKind = .session) {
        let salts = seal?.sessionSecrets.map { SealSalt(secret: $0) } ?? []
        self.seal = seal
        own = salts.first ?? .none
        others = Array(salts.dropFirst())
        self.kind = kind
    }

    /// The same for values of another kind.
    func of(_ kind: SealedKind) -> SessionSealing {
        var copy = self
        copy.kind = kind
        return copy
    }

    var isActive: Bool { seal != nil }

    /// The first result of opening a value with one of the keys, or without any where unsealed values are accepted.
    func first<Value>(_ open: (SealSalt) -> Value?) -> Value? {
        if let value = open(own) { return value }
        guard let seal else { return nil }
        for salt in others { if let value = open(salt) { return value } }
        guard seal.readsUnsealed, let value = open(.none) else { return nil }
        seal.unsealedRead(kind)
        return value
    }

    /// Records that a stored value does not verify; nothing without a seal.
    func rejected(_ reason: SealFailures.Reason = .altered) { seal?.rejected(kind, reason) }
}
