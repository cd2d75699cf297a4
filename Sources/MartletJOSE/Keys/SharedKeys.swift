internal import MartletCore
private import MartletCrypto

/// An issuer's record in the store, and the leases by which instances agree who fetches.
///
/// Store errors are logged, those of reading, writing and claiming apart, because a store may permit only some of them.
/// They never fail a refresh: each instance then fetches for itself.
struct SharedKeys: Sendable {
    /// The result of claiming a lease.
    enum Claim {
        case ours, theirs
        /// The store is unavailable.
        case unknown
    }

    private let store: any KeyValueStoring
    private let prefix: String
    private let logger: Logger
    private let reading: OutageReporter
    private let writing: OutageReporter
    private let claiming: OutageReporter

    init(store: any KeyValueStoring, prefix: String, url: String, clock: Clock, logger: Logger) {
        self.store = store
        self.logger = logger
        reading = OutageReporter(
            "stored issuer keys not read", end: "stored issuer keys read again", clock: clock, logger: logger)
        writing = OutageReporter(
            "issuer keys not stored", end: "issuer keys stored again", clock: clock, logger: logger)
        claiming = OutageReporter(
            "issuer keys lease not claimed", end: "issuer keys lease claimed again", clock: clock, logger: logger)
        let digest = SHA256.digest(Array(url.utf8))
        self.prefix = "\(prefix)jwks:\(Base64URL.encode(Array(digest.prefix(16))))"
    }

    private var recordKey: String { prefix }
    private var leaseKey: String { "\(prefix):lease" }
    private var cooldownKey: String { "\(prefix):cooldown" }

    /// Whether the store is reachable.
    func isReachable() async -> Bool {
        if case .unavailable = await store.replicatedValue(for: recordKey) { false } else { true }
    }

    /// - Parameter latest: whether a record must not be older than the last write.
    func read(latest: Bool) async -> KeyRecord? {
        switch await latest ? store.value(for: recordKey) : store.replicatedValue(for: recordKey) {
        case .miss:
            reading.succeeded()
            return nil
        case .unavailable(let error):
            reading.failed(error)
            return nil
        case .found(let bytes):
            reading.succeeded()
            let record = KeyRecord(bytes)
            if record == nil { logger.warning("stored issuer keys corrupt") }
            return record
        }
    }

    func write(_ record: KeyRecord, lifetime: Duration) async {
        do throws(StoreError) {
            try await store.set(record.bytes, for: recordKey, lifetime: lifetime)
            writing.succeeded()
        } catch {
            writing.failed(error)
        }
    }

    /// Claims the lease for fetching; released by ``release(_:)``.
    func claimLease(_ holder: [UInt8], lifetime: Duration) async -> Claim { await claim(leaseKey, holder, lifetime) }

    func release(_ holder: [UInt8]) async {
        do { try await store.remove(leaseKey, ifEqualTo: holder) } catch {
            logger.debug("issuer keys lease not released", ("code", "\(error.code)"))
        }
    }

    /// Claims the fetch for an unknown key ID; the claim lasts for the cooldown.
    func claimCooldown(_ holder: [UInt8], lifetime: Duration) async -> Claim {
        await claim(cooldownKey, holder, lifetime)
    }

    private func claim(_ key: String, _ holder: [UInt8], _ lifetime: Duration) async -> Claim {
        do throws(StoreError) {
            let isOurs = try await store.setIfAbsent(holder, for: key, lifetime: lifetime)
            claiming.succeeded()
            return isOurs ? .ours : .theirs
        } catch {
            claiming.failed(error)
            return .unknown
        }
    }
}
