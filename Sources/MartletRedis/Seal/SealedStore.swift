package import MartletCore

/// A shared store whose values are sealed; what does not verify is a miss.
///
/// Counters are not sealed: scripts change them.
package final class SealedStore: SharedStoring {
    private let base: any SharedStoring
    private let seal: StoreSeal
    private let kind: SealedKind
    private let isEncrypted: Bool
    /// Whether a value that does not verify is replaced where none may exist: it would keep instances from agreeing on
    /// a key. For codes and nonces the presence of any value counts.
    private let replacesBadValues: Bool

    package init(_ base: any SharedStoring, seal: StoreSeal, purpose: StorePurpose = .general) {
        self.base = base
        self.seal = seal
        kind = SealedKind(purpose)
        isEncrypted = purpose == .keys || purpose == .outcomes || purpose == .browsers
        replacesBadValues = purpose == .keys
    }

    /// The sealed partition.
    package func partition(_ purpose: StorePurpose, for owner: WorkOwner) -> any SharedStoring {
        SealedStore(base.partition(purpose, for: owner), seal: seal, purpose: purpose)
    }

    /// Reads a value; one that does not verify is a miss.
    package func value(for key: String) async -> StoreReply<[UInt8]> { opened(await base.value(for: key), key) }

    /// Reads a value that may be old; one that does not verify is a miss.
    package func replicatedValue(for key: String) async -> StoreReply<[UInt8]> {
        opened(await base.replicatedValue(for: key), key)
    }

    /// Reads and removes a value; one that does not verify is removed and a miss.
    package func take(_ key: String) async -> StoreReply<[UInt8]> { opened(await base.take(key), key) }

    /// Seals and writes a value.
    package func set(_ value: [UInt8], for key: String, lifetime: Duration) async throws(StoreError) {
        try await base.set(sealed(value, key), for: key, lifetime: lifetime)
    }

    /// Seals and writes a value if the key is absent, or has what is no key.
    package func setIfAbsent(_ value: [UInt8], for key: String, lifetime: Duration) async throws(StoreError) -> Bool {
        let sealed = try sealed(value, key)
        if try await base.setIfAbsent(sealed, for: key, lifetime: lifetime) { return true }
        guard replacesBadValues, case .found(let stored) = await base.value(for: key),
            seal.open(stored, as: kind, named: Array(key.utf8)) == nil
        else { return false }
        try await base.remove(key, ifEqualTo: stored)
        return try await base.setIfAbsent(sealed, for: key, lifetime: lifetime)
    }

    /// Removes the value if it verifies and equals `value`.
    package func remove(_ key: String, ifEqualTo value: [UInt8]) async throws(StoreError) {
        switch await base.value(for: key) {
        case .miss: return
        case .unavailable(let error): throw error
        case .found(let stored):
            // The stored bytes differ between keys, and from one encryption to the next.
            guard seal.open(stored, as: kind, named: Array(key.utf8)) == value else { return }
            try await base.remove(key, ifEqualTo: stored)
        }
    }

    /// Removes the value, whatever it is.
    package func remove(_ key: String) async throws(StoreError) { try await base.remove(key) }

    /// Whether some of the keys are available.
    package var isPartlyAvailable: Bool { base.isPartlyAvailable }

    /// Removes several values.
    package func remove(_ keys: [String]) async throws(StoreError) { try await base.remove(keys) }

    /// Counts an attempt; where the value that puts it into its own bucket does not verify, it belongs to the common one.
    package func count(_ attempt: CountedAttempt, for owner: WorkOwner) async throws(StoreError) -> AttemptCount {
        let counted = try await base.count(attempt, for: owner)
        guard let stored = counted.known, let key = attempt.known else { return counted }
        guard let known = seal.open(stored, as: .location, named: Array(key.utf8)) else {
            return try await base.count(attempt.inCommonBucket, for: owner)
        }
        return AttemptCount(known: known, ban: counted.ban, attempts: counted.attempts)
    }

    /// Adds 1 to a counter, which is not sealed.
    package func increment(_ key: String, lifetime: Duration) async throws(StoreError) -> CounterReading {
        try await base.increment(key, lifetime: lifetime)
    }

    /// Subtracts 1 from a counter.
    package func decrement(_ key: String) async throws(StoreError) { try await base.decrement(key) }

    /// Reads a counter.
    package func counter(_ key: String) async throws(StoreError) -> CounterReading { try await base.counter(key) }

    private func sealed(_ value: [UInt8], _ key: String) throws(StoreError) -> [UInt8] {
        guard isEncrypted else { return seal.authenticate(value, as: kind, named: Array(key.utf8)) }
        return try seal.encrypt(value, as: kind, named: Array(key.utf8))
    }

    private func opened(_ reply: StoreReply<[UInt8]>, _ key: String) -> StoreReply<[UInt8]> {
        guard case .found(let stored) = reply else { return reply }
        return seal.open(stored, as: kind, named: Array(key.utf8)).map { .found($0) } ?? .miss
    }
}

extension SealedKind {
    init(_ purpose: StorePurpose) {
        self =
            switch purpose {
            case .general: .other
            case .keys: .key
            case .throttles, .bans: .throttle
            case .loginLocations: .location
            case .nonces, .proofs, .signatures: .nonce
            case .codes: .code
            case .browsers: .browser
            case .outcomes: .response
            case .changes: .change
            }
    }
}
