internal import MartletCore

/// A key set with its age and origin.
struct CachedKeys: Sendable {
    let set: KeySet
    /// The document of the key set.
    let document: [UInt8]
    /// When it was fetched from the issuer, by the wall clock that instances share.
    let fetchedAt: UnixTime
    /// The same instant by the monotonic clock.
    let obtained: MonotonicTime
    let source: IssuerKeysStatus.Source

    /// - Parameter fetchedAt: must not be in the future.
    /// - Throws: `bad_key_set`.
    init(
        document: [UInt8], fetchedAt: UnixTime, source: IssuerKeysStatus.Source,
        allowing allowed: Set<SignatureAlgorithm>, clock: Clock
    ) throws(JOSEError) {
        set = try KeySet(document: document, allowing: allowed)
        self.document = document
        self.fetchedAt = fetchedAt
        let age = Duration.seconds(max(0, clock.unixTime.seconds &- fetchedAt.seconds))
        obtained = MonotonicTime(nanoseconds: clock.monotonicTime.nanoseconds &- age.wholeNanoseconds)
        self.source = source
    }

    /// Whether it replaces the other: it was fetched later, or is a different document of the same second.
    func isNewer(than other: CachedKeys?) -> Bool {
        guard let other else { return true }
        return fetchedAt > other.fetchedAt || (fetchedAt == other.fetchedAt && document != other.document)
    }

    /// The IDs of the keys that the other set does not have, or has with other key material.
    func missing(from other: CachedKeys?) -> [KeyID] {
        set.keys.values.filter { other?.set.keys[$0.id]?.allParts != $0.allParts }.map(\.id).sorted {
            $0.text < $1.text
        }
    }
}

/// How an issuer has changed its keys; a key with other key material is in both lists.
package struct IssuerKeyRotation: Sendable, Equatable {
    package let added: [KeyID]
    package let removed: [KeyID]

    init(from old: CachedKeys, to new: CachedKeys) {
        added = new.missing(from: old)
        removed = old.missing(from: new)
    }

    var isEmpty: Bool { added.isEmpty && removed.isEmpty }
}
