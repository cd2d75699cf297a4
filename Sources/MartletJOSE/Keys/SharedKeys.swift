internal import MartletCore
private import MartletCrypto

/// An issuer's record in the store, and the marks by which instances agree who fetches.
///
/// A fault of the store never fails anything: it is logged, and every instance asks for itself then.
struct SharedKeys: Sendable {
    /// What asking for a mark came to.
    enum Claim {
        case ours, theirs
        /// The store cannot tell.
        case unknown
    }

    private let store: any KeyValueStoring
    private let prefix: String
    private let logger: Logger

    init(store: any KeyValueStoring, prefix: String, url: String, logger: Logger) {
        self.store = store
        self.logger = logger
        let digest = SHA256.digest(Array(url.utf8))
        self.prefix = "\(prefix)jwks:\(Base64URL.encode(Array(digest.prefix(16))))"
    }

    private var recordKey: String { prefix }
    private var leaseKey: String { "\(prefix):lease" }
    private var cooldownKey: String { "\(prefix):cooldown" }

    /// Whether the store can be asked at all.
    func isReachable() async -> Bool {
        if case .unavailable = await store.value(for: recordKey) { false } else { true }
    }

    func read() async -> KeyRecord? {
        switch await store.value(for: recordKey) {
        case .miss: return nil
        case .unavailable(let error):
            logger.warning("the store cannot be asked for an issuer's keys", ("code", "\(error.code)"))
            return nil
        case .answer(let bytes):
            let record = KeyRecord(bytes)
            if record == nil { logger.warning("the store's record of an issuer's keys is damaged") }
            return record
        }
    }

    func write(_ record: KeyRecord, lifetime: Duration) async {
        do { try await store.set(record.bytes, for: recordKey, lifetime: lifetime) } catch {
            logger.warning("an issuer's keys cannot be put into the store", ("code", "\(error.code)"))
        }
    }

    /// Asks to be the instance that fetches; given back by ``release(_:)``.
    func claimLease(_ holder: [UInt8], lifetime: Duration) async -> Claim { await claim(leaseKey, holder, lifetime) }

    func release(_ holder: [UInt8]) async {
        do { try await store.remove(leaseKey, ifEqualTo: holder) } catch {
            logger.debug("a lease on an issuer's keys runs out by itself", ("code", "\(error.code)"))
        }
    }

    /// Asks to be the instance that fetches because of an unknown key id; the mark stays for the cooldown.
    func claimCooldown(_ holder: [UInt8], lifetime: Duration) async -> Claim {
        await claim(cooldownKey, holder, lifetime)
    }

    private func claim(_ key: String, _ holder: [UInt8], _ lifetime: Duration) async -> Claim {
        do { return try await store.setIfAbsent(holder, for: key, lifetime: lifetime) ? .ours : .theirs } catch {
            logger.warning("instances cannot agree who fetches an issuer's keys", ("code", "\(error.code)"))
            return .unknown
        }
    }
}
