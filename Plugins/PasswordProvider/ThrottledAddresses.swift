internal import MartletCore
internal import MartletProvider

/// Caches for a second which addresses the store has reported as throttled, so that their further attempts cost no
/// query.
///
/// This rejects nothing that the store would admit: a throttled address stays throttled until its window ends, because
/// failures of an address are never uncounted.
final class ThrottledAddresses: Sendable {
    private let table = Lock(ThrottledAddressTable())

    /// The time until the address is admitted again; `nil` if it is not known to be throttled.
    func retryAfter(_ client: ClientNetwork, at now: MonotonicTime) -> Duration? {
        table.withLock { $0.retryAfter(client, at: now) }
    }

    /// Caches that the store reported an address as throttled.
    func insert(_ client: ClientNetwork, until end: MonotonicTime, at now: MonotonicTime) {
        table.withLock { $0.insert(client, until: end, at: now) }
    }
}

/// The addresses of a ``ThrottledAddresses``.
struct ThrottledAddressTable: Sendable {
    /// How long an address is cached at most: an operator who deletes its counter must not wait for long.
    static let lifetime = Duration.seconds(1)
    /// If all places are taken, further addresses are not cached until the next second.
    static let capacity = 4096

    private var ends: [ClientNetwork: MonotonicTime] = [:]
    /// When all are forgotten.
    private var expiry = MonotonicTime.never

    var count: Int { ends.count }

    func retryAfter(_ client: ClientNetwork, at now: MonotonicTime) -> Duration? {
        guard now < expiry, let end = ends[client], now < end else { return nil }
        return end.since(now)
    }

    mutating func insert(_ client: ClientNetwork, until end: MonotonicTime, at now: MonotonicTime) {
        if ends.isEmpty || now >= expiry {
            ends.removeAll(keepingCapacity: true)
            expiry = now + Self.lifetime
        }
        guard ends.count < Self.capacity || ends[client] != nil else { return }
        ends[client] = end
    }
}
