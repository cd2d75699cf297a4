package import MartletCore

/// A lease of a store that one owner asks for, holds and extends.
package struct HeldLease: Sendable {
    private let name: String
    private let owner: String
    private let store: any LeaseStoring
    private var lease = Lease()

    /// - Parameters:
    ///   - name: what the lease is for; one owner holds it at a time.
    ///   - milliseconds: the time since 1970, for the owner's id.
    /// - Throws: `events.no_entropy` if no id can be made.
    package init(_ name: String, in store: any LeaseStoring, at milliseconds: Int64) throws(StoreError) {
        self.name = name
        self.store = store
        owner = try ULID(at: milliseconds).description
    }

    /// Whether the owner may act as the holder.
    package func isHeld(at now: MonotonicTime) -> Bool { lease.isHeld(at: now) }

    /// Whether the next renewal asks the store.
    package func isDue(at now: MonotonicTime) -> Bool { lease.isDue(at: now) }

    /// Acquires or extends the lease if that is due.
    /// - Returns: whether it is held now.
    /// - Throws: when the store is unavailable; a lease that is held stays so until it expires.
    package mutating func renew(by clock: Clock) async throws(StoreError) -> Bool {
        let start = clock.monotonicTime
        guard lease.isDue(at: start) else { return isHeld(at: start) }
        do throws(StoreError) {
            let isHeld = try await store.acquireLease(name, owner: owner, for: Lease.duration)
            lease.note(isHeld: isHeld, since: start)
        } catch {
            lease.noteFailure(at: start)
            throw error
        }
        return isHeld(at: clock.monotonicTime)
    }

    /// Releases the lease, so that another owner need not wait until it expires.
    package mutating func release(at now: MonotonicTime) async {
        lease.note(isHeld: false, since: now)
        try? await store.releaseLease(name, owner: owner)
    }
}
