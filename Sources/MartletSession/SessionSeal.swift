internal import MartletCore
internal import MartletCrypto

/// The keys of one session and what is sealed under which.
///
/// Every sealed value is bound to the name of the session's key and to what it is, so that none can stand in for another.
struct SessionSeal {
    private let place: SessionPlace
    private let name: [UInt8]

    init(_ place: SessionPlace) {
        self.place = place
        name = place.name
    }

    /// The record's key, sealed for whoever holds the token.
    /// - Parameter expiry: bound to the seal, so that it cannot be moved.
    func wrap(_ key: Secret, for token: SessionToken, expiry: Int64) throws(CryptoError) -> [UInt8] {
        try seal(key, with: self.key(of: token), as: "wrap", expiry)
    }

    func unwrap(_ sealed: [UInt8], for token: SessionToken, expiry: Int64) -> Secret? {
        AES256GCM.open(sealed, with: key(of: token), context: context("wrap", expiry))
    }

    func seal(_ record: SessionRecord, with key: Secret) throws(SessionError) -> [UInt8] {
        let bytes = Secret(record.bytes)
        // What could not be read back, such as claims that nest too deep, is not written.
        guard bytes.withBytes({ SessionRecord($0) }) != nil else {
            throw SessionError(.sessionRecordTooLarge, .unavailable)
        }
        do { return try seal(bytes, with: key, as: "record", 0) } catch { throw SessionSeal.failure(error) }
    }

    func open(_ record: [UInt8], with key: Secret) -> SessionRecord? {
        AES256GCM.open(record, with: key, context: context("record", 0)).flatMap { $0.withBytes { SessionRecord($0) } }
    }

    /// The pair that a refresh token got, for whoever shows that token again.
    func seal(_ pair: SessionPair, under spent: SessionToken) throws(CryptoError) -> [UInt8] {
        try seal(pair.bytes, with: derive(from: spent.secret, "grace"), as: "grace", 0)
    }

    func open(_ pair: [UInt8], under spent: SessionToken) -> SessionPair? {
        AES256GCM.open(pair, with: derive(from: spent.secret, "grace"), context: context("grace", 0))
            .flatMap(SessionPair.init)
    }

    /// What the subject's list shows; any session of the subject can open it.
    func seal(_ listing: SessionListing, of subject: String) throws(CryptoError) -> [UInt8] {
        try seal(Secret(listing.bytes), with: SessionSeal.listingKey(subject), as: "listing", 0)
    }

    func open(_ listing: [UInt8], of subject: String) -> SessionListing? {
        AES256GCM.open(listing, with: SessionSeal.listingKey(subject), context: context("listing", 0))
            .flatMap { $0.withBytes { SessionListing($0) } }
    }

    /// A provider's name as a script can compare it and nobody read it.
    static func providerMark(_ provider: String, of subject: String) -> [UInt8] {
        let key = HKDFSHA256.derive(
            from: Secret(subject), salt: [], purpose: Array("martlet session provider".utf8), length: 32)
        return Hexadecimal.encode(HMACSHA256.authenticate(Array(provider.utf8), key: key).prefix(8))
    }

    static func failure(_ error: CryptoError) -> SessionError {
        SessionError(.sessionCryptoFailed, .unavailable, cause: error)
    }

    private static func listingKey(_ subject: String) -> Secret {
        HKDFSHA256.derive(
            from: Secret(subject), salt: [], purpose: Array("martlet session listing".utf8),
            length: AES256GCM.keyLength)
    }

    private func key(of token: SessionToken) -> Secret {
        derive(from: token.secret, token.kind == .access ? "access" : "refresh")
    }

    private func derive(from secret: Secret, _ purpose: String) -> Secret {
        HKDFSHA256.derive(
            from: secret, salt: [], purpose: Array("martlet session \(purpose) ".utf8) + place.filing,
            length: AES256GCM.keyLength)
    }

    private func seal(
        _ bytes: Secret, with key: Secret, as label: String, _ number: Int64
    ) throws(CryptoError) -> [UInt8] {
        try bytes.withBytes { bytes throws(CryptoError) in
            try AES256GCM.seal(bytes, with: key, context: context(label, number))
        }
    }

    private func context(_ label: String, _ number: Int64) -> [UInt8] {
        Array("\(label) \(number) ".utf8) + name
    }
}

/// The secrets of the pair of tokens that a refresh made, and what opens the record.
struct SessionPair: Sendable {
    let access: Secret
    let accessExpiry: Int64
    let refresh: Secret
    let key: Secret
    /// Until when the pair is given out again.
    let graceEnd: Int64

    init(access: Secret, accessExpiry: Int64, refresh: Secret, key: Secret, graceEnd: Int64) {
        self.access = access
        self.accessExpiry = accessExpiry
        self.refresh = refresh
        self.key = key
        self.graceEnd = graceEnd
    }

    var bytes: Secret {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(SessionPair.length)
        bytes.append(bigEndian: accessExpiry)
        bytes.append(bigEndian: graceEnd)
        for secret in [access, refresh, key] { secret.withBytes { bytes.append(contentsOf: $0) } }
        return Secret(bytes)
    }

    init?(_ bytes: Secret) {
        guard bytes.count == SessionPair.length else { return nil }
        self = bytes.withBytes { bytes in
            SessionPair(
                access: Secret(Array(bytes[16..<48])), accessExpiry: Int64(bigEndian: bytes[..<8]),
                refresh: Secret(Array(bytes[48..<80])), key: Secret(Array(bytes[80..<112])),
                graceEnd: Int64(bigEndian: bytes[8..<16]))
        }
    }

    private static let length = 16 + 3 * 32
}

/// What the list of a subject's sessions shows of one.
struct SessionListing: Sendable {
    let provider: String
    let created: Int64

    init(provider: String, created: Int64) {
        self.provider = provider
        self.created = created
    }

    var bytes: [UInt8] {
        var bytes: [UInt8] = []
        bytes.append(bigEndian: created)
        return bytes + provider.utf8
    }

    init?(_ bytes: [UInt8]) {
        guard bytes.count >= 8, let provider = String(validating: bytes[8...], as: UTF8.self) else { return nil }
        self.provider = provider
        created = Int64(bigEndian: bytes[..<8])
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
