internal import MartletCore

/// One owner's view of a lease: whether it may act as the holder, and when the lease is to be extended.
struct Lease: Sendable {
    /// How long a lease is held without being extended; the maximum time until another instance takes over.
    static let duration = Duration.seconds(10)
    /// How often the holder extends it.
    private static let extensionInterval = Duration.seconds(3)
    /// How long the holder acts without extending it: less than `duration`, because its clock may run slower.
    private static let actingTime = Duration.seconds(9)

    /// How often an owner asks for a lease that another one holds.
    private static let askingInterval = Duration.milliseconds(900)

    private var heldSince: MonotonicTime?
    private var askedAt: MonotonicTime?

    /// Whether the owner may act as the holder.
    func isHeld(at now: MonotonicTime) -> Bool {
        heldSince.map { now.since($0) < Lease.actingTime } ?? false
    }

    /// Whether to acquire or extend it now.
    func isDue(at now: MonotonicTime) -> Bool {
        let interval = isHeld(at: now) ? Lease.extensionInterval : Lease.askingInterval
        return askedAt.map { now.since($0) >= interval } ?? true
    }

    /// Records the result of acquiring or extending it.
    /// - Parameter start: when the attempt began.
    mutating func note(isHeld: Bool, since start: MonotonicTime) {
        heldSince = isHeld ? start : nil
        askedAt = start
    }

    /// Records that the store did not respond: a lease that is held stays so until it expires, and is asked for again
    /// soon.
    mutating func noteFailure(at start: MonotonicTime) { askedAt = heldSince == nil ? start : nil }
}
