internal import MartletCore

/// A key set with its age.
struct HeldKeys: Sendable {
    let set: KeySet
    /// The document that the set was read from.
    let document: [UInt8]
    /// When the issuer gave it out, by the wall clock that instances share.
    let fetchedAt: UnixTime
    /// The same instant by our own clock, which never steps.
    let obtained: MonotonicTime
    let source: IssuerKeysStatus.Source

    /// - Parameter fetchedAt: not after now.
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

    /// Whether this says something that the other does not: it is later, or another document of the same second.
    func isNewer(than other: HeldKeys?) -> Bool {
        guard let other else { return true }
        return fetchedAt > other.fetchedAt || (fetchedAt == other.fetchedAt && document != other.document)
    }

    /// The keys that are not in the other set, or are other keys under the same name.
    func missing(from other: HeldKeys?) -> [KeyID] {
        set.keys.values.filter { other?.set.keys[$0.id]?.parts != $0.parts }.map(\.id).sorted { $0.text < $1.text }
    }
}
