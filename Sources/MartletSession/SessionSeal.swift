internal import MartletCore
internal import MartletCrypto
internal import MartletRedis

/// Derives the encryption keys of one session, and seals and opens its stored values.
///
/// Every sealed value is bound to the session's store key and to its own kind, so that values cannot be swapped.
struct SessionSeal {
    private let sessionKey: SessionKey
    private let name: [UInt8]
    private let sealing: SessionSealing

    /// - Parameter sealing: the keys of the store's seal, which all keys of the session depend on.
    init(_ sessionKey: SessionKey, _ sealing: SessionSealing = .none) {
        self.sessionKey = sessionKey
        self.sealing = sealing
        name = sessionKey.name
    }

    /// Wraps the record key for the holder of a token.
    /// - Parameters:
    ///   - expiry: authenticated with the key, so that it cannot be changed.
    ///   - isBound: whether the token needs a proof of the session's key. The mark makes the key one byte longer: an
    ///     instance that does not know it has no key then, and rejects the token.
    func wrap(
        _ key: Secret, for token: SessionToken, expiry: Int64, isBound: Bool = false
    ) throws(CryptoError) -> [UInt8] {
        let marked = isBound ? key.withBytes { Secret($0 + [Self.boundMark]) } : key
        return try seal(marked, with: self.key(of: token, sealing.own), as: "wrap", expiry)
    }

    /// The record key, and whether the token is bound; `nil` for any other token than the one it was wrapped for.
    func unwrap(_ sealed: [UInt8], for token: SessionToken, expiry: Int64) -> WrappedKey? {
        sealing.first { AES256SIV.open(sealed, with: key(of: token, $0), context: context("wrap", expiry)) }
            .flatMap { opened in
                guard opened.count != Self.recordKeyLength else { return WrappedKey(key: opened, isBound: false) }
                return opened.withBytes { bytes in
                    guard bytes.count == Self.recordKeyLength + 1, bytes.last == Self.boundMark else { return nil }
                    return WrappedKey(key: Secret(Array(bytes.dropLast())), isBound: true)
                }
            }
    }

    private static let boundMark: UInt8 = 1

    /// The length of the secret that the record is encrypted by, in bytes.
    static let recordKeyLength = 32

    /// Wraps the record key for the holder of the session's cookie token, with the time at which it is due.
    /// - Parameters:
    ///   - due: `nil` until the token is first presented.
    ///   - expiry: authenticated with the key, so that it cannot be changed.
    func wrap(_ key: Secret, due: Int64?, for token: SessionToken, expiry: Int64) throws(CryptoError) -> [UInt8] {
        let bytes = key.withBytes { key in
            var bytes: [UInt8] = []
            bytes.reserveCapacity(8 + Self.recordKeyLength)
            bytes.append(bigEndian: due ?? 0)
            bytes += key
            return Secret(bytes)
        }
        return try seal(bytes, with: self.key(of: token, sealing.own), as: "cookie", expiry)
    }

    /// The record key and the time at which the cookie token is due; `nil` for any other token than the session's.
    func unwrapCookie(_ sealed: [UInt8], for token: SessionToken, expiry: Int64) -> (key: Secret, due: Int64?)? {
        let opened = sealing.first {
            AES256SIV.open(sealed, with: key(of: token, $0), context: context("cookie", expiry))
        }
        guard let bytes = opened, bytes.count == 8 + Self.recordKeyLength else { return nil }
        return bytes.withBytes { bytes in
            let due = Int64(bigEndian: bytes[..<8])
            return (Secret(Array(bytes[8...])), due == 0 ? nil : due)
        }
    }

    func seal(_ record: SessionRecord, with key: Secret) throws(SessionError) -> [UInt8] {
        let bytes = Secret(record.bytes)
        // Reject a record that could not be decoded again, such as one with claims nested too deeply.
        guard bytes.withBytes({ SessionRecord($0) }) != nil else {
            throw SessionError(.sessionRecordTooLarge, .unavailable)
        }
        guard let short = bytes.withBytes({ ShortForm.record.pack($0) }) else {
            throw SessionError(.sessionCryptoFailed, .unavailable)
        }
        return try sealed(seal(Secret(short), with: sealing.own.recordKey(key), as: "record", 0))
    }

    func open(_ record: [UInt8], with key: Secret) -> SessionRecord? {
        sealing.first { AES256SIV.open(record, with: $0.recordKey(key), context: context("record", 0)) }
            .flatMap { ShortForm.record.unpack($0) }.flatMap { $0.withBytes { SessionRecord($0) } }
    }

    /// Seals the pair that a refresh token was exchanged for, to return it again during the grace period.
    func seal(_ pair: SessionPair, under spent: SessionToken) throws(CryptoError) -> [UInt8] {
        try seal(pair.bytes, with: derive(from: spent.secret, "grace", sealing.own), as: "grace", 0)
    }

    func open(_ pair: [UInt8], under spent: SessionToken) -> SessionPair? {
        sealing.first { salt in
            let key = derive(from: spent.secret, "grace", salt)
            var opened = AES256SIV.open(pair, with: key, context: context("grace", 0)).flatMap(SessionPair.init)
            opened?.salt = salt
            return opened
        }
    }

    /// Seals what the holder of a replaced cookie token gets while it is still accepted.
    func seal(_ grace: CookieGrace, under replaced: SessionToken) throws(CryptoError) -> [UInt8] {
        try seal(grace.bytes, with: derive(from: replaced.secret, "cookie grace", sealing.own), as: "cookie grace", 0)
    }

    func openCookie(_ grace: [UInt8], under replaced: SessionToken) -> CookieGrace? {
        sealing.first { salt in
            let key = derive(from: replaced.secret, "cookie grace", salt)
            var opened = AES256SIV.open(grace, with: key, context: context("cookie grace", 0)).flatMap(CookieGrace.init)
            opened?.salt = salt
            return opened
        }
    }

    /// Whether the session issued a token.
    ///
    /// With a seal, a verifier in the store is not enough to make a genuine token, and a token of an instance that seals
    /// with another key is not mistaken for a stolen one.
    /// - Parameter thumbprint: of the key that the request has proved; a refresh token that is bound to a key is genuine
    ///   only with that, so that who has stolen it cannot raise an alarm either.
    func isGenuine(_ token: SessionToken, verifier: [UInt8], provenBy thumbprint: String? = nil) -> Bool {
        func isGenuine(_ thumbprint: String?) -> Bool {
            sealing.first { token.isGenuine(verifier: $0.verifier(verifier), boundTo: thumbprint) ? true : nil }
                ?? false
        }
        let isGenuine = isGenuine(nil) || thumbprint.map { isGenuine($0) } ?? false
        if !isGenuine, sealing.isActive, token.isGenuine(verifier: verifier) { sealing.rejected(.unsealed) }
        return isGenuine
    }

    /// What new tokens of the session are authenticated by.
    func verifier(_ stored: [UInt8]) -> [UInt8] { sealing.own.verifier(stored) }

    /// Seals what the subject's list shows; the key depends on the subject and the store's seal.
    func seal(_ listing: SessionListing, of subject: String) throws(CryptoError) -> [UInt8] {
        guard let short = ShortForm.listing.pack(listing.bytes) else {
            throw CryptoError(.cryptoFailure, "the listing of a session is too long")
        }
        return try seal(Secret(short), with: SessionSeal.listingKey(subject, sealing.own), as: "listing", 0)
    }

    func open(_ listing: [UInt8], of subject: String) -> SessionListing? {
        sealing.first {
            AES256SIV.open(listing, with: SessionSeal.listingKey(subject, $0), context: context("listing", 0))
        }
        .flatMap { ShortForm.listing.unpack($0) }.flatMap { $0.withBytes { SessionListing($0) } }
    }

    /// Seals who owns the session, for holders of a token of the session: also of one that was used before.
    func seal(owner subject: String, lookup: [UInt8]) throws(CryptoError) -> [UInt8] {
        try seal(Secret(subject), with: ownerKey(lookup, sealing.own), as: "owner", 0)
    }

    func open(owner sealed: [UInt8], lookup: [UInt8]) -> String? {
        guard !sealed.isEmpty else { return nil }
        return sealing.first { AES256SIV.open(sealed, with: ownerKey(lookup, $0), context: context("owner", 0)) }
            .flatMap { $0.withBytes { String(validating: $0, as: UTF8.self) } }
    }

    private func ownerKey(_ lookup: [UInt8], _ salt: SealSalt) -> Secret {
        // Copy: a secret wipes its storage, and the lookup half is still needed.
        salt.derive(
            from: Secret(lookup.map { $0 }),
            purpose: Array("martlet session owner ".utf8) + sessionKey.keyHash, length: AES256SIV.keyLength)
    }

    /// Seals the address of a use, for holders of a token of the session or readers of its listing.
    /// - Parameters:
    ///   - address: 16 bytes, or empty.
    ///   - isLogin: omits the ciphertext, because the listing contains the address.
    func sealedAddress(
        _ address: [UInt8], lookup: [UInt8], isLogin: Bool = false
    ) throws(CryptoError) -> SealedAddress {
        guard address.count == 16 else { return SealedAddress(bytes: []) }
        let keys = addressKeys(lookup)
        let hash = Array(HMACSHA256.authenticate(address, key: keys.hash).prefix(SealedAddress.hashLength))
        guard !isLogin else { return SealedAddress(bytes: hash) }
        let key = SessionSeal.addressSealKey(keys.seed)
        let sealed = try seal(Secret(SealedAddress.packed(address)), with: key, as: "address", 0)
        return SealedAddress(bytes: hash + sealed)
    }

    /// Opens a sealed address; `nil` if it has no ciphertext or is not authentic.
    /// - Parameter key: ``addressKey(_:)`` of the session.
    func open(address stored: [UInt8], key: [UInt8]) -> [UInt8]? {
        guard stored.count > SealedAddress.hashLength else { return nil }
        let sealed = Array(stored[SealedAddress.hashLength...])
        guard key.count == Self.addressKeyLength else { return nil }
        let key = SessionSeal.addressSealKey(Secret(key.map { $0 }))
        return AES256SIV.open(sealed, with: key, context: context("address", 0))
            .flatMap { $0.withBytes { SealedAddress.unpacked($0) } }
    }

    /// The key of a session's addresses, to be stored in its listing.
    ///
    /// The listing must not contain the lookup half: with it and the verifier, a reader of the store could forge a
    /// refresh token that looks used, and so end the session.
    func addressKey(_ lookup: [UInt8]) -> [UInt8] { addressKeys(lookup).seed.withBytes { $0.map { $0 } } }

    private func addressKeys(_ lookup: [UInt8]) -> (hash: Secret, seed: Secret) {
        // Copy: a secret wipes its storage, and the lookup half is still needed.
        let both = sealing.own.derive(
            from: Secret(lookup.map { $0 }),
            purpose: Array("martlet session address ".utf8) + sessionKey.keyHash, length: 32 + Self.addressKeyLength)
        return both.withBytes { (Secret(Array($0[..<32])), Secret(Array($0[32...]))) }
    }

    /// The length of an address key, in bytes.
    static let addressKeyLength = 16

    private static func addressSealKey(_ seed: Secret) -> Secret {
        HKDFSHA256.derive(
            from: seed, salt: [], purpose: Array("martlet session address".utf8), length: AES256SIV.keyLength)
    }

    /// A keyed hash of a provider's name, which scripts compare.
    static func providerHash(_ provider: String, of subject: String) -> [UInt8] {
        let key = HKDFSHA256.derive(
            from: Secret(subject), salt: [], purpose: Array("martlet session provider".utf8), length: 32)
        return Array(HMACSHA256.authenticate(Array(provider.utf8), key: key).prefix(8))
    }

    private static func listingKey(_ subject: String, _ salt: SealSalt) -> Secret {
        salt.derive(from: Secret(subject), purpose: Array("martlet session listing".utf8), length: AES256SIV.keyLength)
    }

    private func key(of token: SessionToken, _ salt: SealSalt) -> Secret {
        guard token.kind == .cookie else { return derive(from: token.secret, token.kind.purpose, salt) }
        // With the MAC: a lookup alone does not check it, and a token has exactly one text.
        return derive(from: token.secret.withBytes { Secret($0 + token.check) }, token.kind.purpose, salt)
    }

    private func derive(from secret: Secret, _ purpose: String, _ salt: SealSalt) -> Secret {
        salt.derive(
            from: secret, purpose: Array("martlet session \(purpose) ".utf8) + sessionKey.keyHash,
            length: AES256SIV.keyLength)
    }

    private func seal(
        _ bytes: Secret, with key: Secret, as label: String, _ number: Int64
    ) throws(CryptoError) -> [UInt8] {
        try bytes.withBytes { bytes throws(CryptoError) in
            try AES256SIV.seal(bytes, with: key, context: context(label, number))
        }
    }

    private func context(_ label: String, _ number: Int64) -> [UInt8] {
        Array("\(label) \(number) ".utf8) + name
    }
}

/// The record key, as it was wrapped for a token.
struct WrappedKey {
    let key: Secret
    /// Whether the token needs a proof of the session's key.
    let isBound: Bool
}

/// The secrets of the token pair that a refresh created, and the record key.
struct SessionPair: Sendable {
    let access: Secret
    let accessExpiry: Int64
    let refresh: Secret
    let key: Secret
    /// The end of the grace period.
    let graceEnd: Int64
    /// Whether its tokens are bound to the session's key.
    var isBound = false
    /// By which its tokens are authenticated; not stored.
    var salt = SealSalt.none
}

extension SessionPair {
    var bytes: Secret {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(SessionPair.length)
        // An instance that does not know bindings finds a negative time implausible, and does not take the token for one
        // that was stolen.
        bytes.append(bigEndian: isBound ? ~accessExpiry : accessExpiry)
        bytes.append(bigEndian: graceEnd)
        for secret in [access, refresh, key] { secret.withBytes { bytes.append(contentsOf: $0) } }
        return Secret(bytes)
    }

    init?(_ bytes: Secret) {
        guard bytes.count == SessionPair.length else { return nil }
        self = bytes.withBytes { bytes in
            let expiry = Int64(bigEndian: bytes[..<8])
            return SessionPair(
                access: Secret(Array(bytes[16..<48])), accessExpiry: expiry < 0 ? ~expiry : expiry,
                refresh: Secret(Array(bytes[48..<80])), key: Secret(Array(bytes[80..<112])),
                graceEnd: Int64(bigEndian: bytes[8..<16]), isBound: expiry < 0)
        }
    }

    private static let length = 16 + 2 * SessionToken.secretLength + SessionSeal.recordKeyLength
}

/// What the holder of a replaced cookie token gets while it is still accepted: the record key, and the token that
/// replaced it.
struct CookieGrace: Sendable {
    /// The latest time at which the replaced token is accepted; the stored grace period may end before.
    let end: Int64
    let key: Secret
    /// The secret half of the next token; `nil` after a privilege change, when a holder of the old token must not get it.
    let replacement: Secret?
    /// By which the next token is authenticated; not stored.
    var salt = SealSalt.none
}

extension CookieGrace {
    var bytes: Secret {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(8 + SessionSeal.recordKeyLength + SessionToken.secretLength)
        bytes.append(bigEndian: end)
        key.withBytes { bytes.append(contentsOf: $0) }
        replacement?.withBytes { bytes.append(contentsOf: $0) }
        return Secret(bytes)
    }

    init?(_ bytes: Secret) {
        let whole = 8 + SessionSeal.recordKeyLength
        guard bytes.count == whole || bytes.count == whole + SessionToken.secretLength else { return nil }
        self = bytes.withBytes { bytes in
            CookieGrace(
                end: Int64(bigEndian: bytes[..<8]), key: Secret(Array(bytes[8..<whole])),
                replacement: bytes.count == whole ? nil : Secret(Array(bytes[whole...])))
        }
    }
}

/// What a subject's session list shows of one session.
struct SessionListing: Sendable {
    let provider: String
    let created: Int64
    /// The key of the last address.
    let addressKey: [UInt8]
    let client: SessionClient
    /// Whether the session was bound to a key at its login.
    var isBound = false
}

extension SessionListing {
    /// The first byte.
    private static let version: UInt8 = 1

    var bytes: [UInt8] {
        var bytes = [Self.version]
        bytes.append(bigEndian: created)
        bytes += addressKey
        let texts = [provider, client.deviceName ?? "", client.userAgent ?? ""].map { Array($0.utf8) }
        for text in texts + [SealedAddress.packed(client.address)] {
            bytes.append(UInt8(truncatingIfNeeded: text.count >> 8))
            bytes.append(UInt8(truncatingIfNeeded: text.count))
            bytes += text
        }
        if isBound { bytes.append(1) }
        return bytes
    }

    init?(_ bytes: [UInt8]) {
        guard bytes.first == Self.version else { return nil }
        var rest = bytes.dropFirst()
        func read(_ count: Int) -> ArraySlice<UInt8>? {
            guard rest.count >= count else { return nil }
            defer { rest = rest.dropFirst(count) }
            return rest.prefix(count)
        }
        func text() -> ArraySlice<UInt8>? { read(2).flatMap { read($0.reduce(0) { $0 << 8 | Int($1) }) } }
        guard let created = read(8), let addressKey = read(SessionSeal.addressKeyLength), let provider = text(),
            let device = text(),
            let agent = text(), let address = text(), let name = String(validating: provider, as: UTF8.self)
        else { return nil }
        func optional(_ text: ArraySlice<UInt8>) -> String? {
            text.isEmpty ? nil : String(validating: text, as: UTF8.self)
        }
        let client = SessionClient(
            deviceName: optional(device), userAgent: optional(agent),
            address: SealedAddress.unpacked(Array(address)) ?? [])
        self.init(
            provider: name, created: Int64(bigEndian: created), addressKey: Array(addressKey), client: client,
            isBound: rest.first == 1)
    }
}

extension [UInt8] {
    fileprivate mutating func append(bigEndian value: Int64) {
        for shift in stride(from: 56, through: 0, by: -8) { append(UInt8(truncatingIfNeeded: value >> Int64(shift))) }
    }
}

extension Int64 {
    fileprivate init(bigEndian bytes: ArraySlice<UInt8>) { self = bytes.reduce(0) { $0 << 8 | Int64($1) } }
}
