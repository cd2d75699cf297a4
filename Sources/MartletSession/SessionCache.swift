package import MartletCore
internal import MartletCrypto
package import MartletProvider

/// Recently verified sessions, used while the store is unavailable and shared by all event loops of the process.
///
/// Each loop has its own cache, but a client may reconnect on another loop. Entries live no longer than in a loop's
/// cache.
package final class SessionCache: Sendable {
    private let table: Lock<SessionCacheTable>

    /// - Parameter limit: the maximum number of sessions.
    package init(limit: Int = 50_000) { table = Lock(SessionCacheTable(limit: limit)) }

    /// Removes ended sessions, by their revocation IDs.
    package func drop(_ ids: [UInt64]) { table.withLock { $0.drop(ids) } }

    fileprivate var epoch: Int { table.withLock { $0.epoch } }

    fileprivate func store(_ session: VerifiedSession, for key: [UInt8], at now: MonotonicTime, epoch: Int) {
        table.withLock { $0.store(session, for: key, at: now, epoch: epoch) }
    }

    fileprivate func find(_ key: [UInt8], at now: MonotonicTime) -> VerifiedSession? {
        table.withLock { $0.find(key, at: now) }
    }

    fileprivate func remove(_ key: [UInt8]) { table.withLock { $0.remove(key) } }
}

/// The table of cached sessions, without a clock.
///
/// Entries live for seconds, so it has two generations instead of an eviction order: older entries have expired.
struct SessionCacheTable {
    private struct Entry {
        let session: VerifiedSession
        let expiry: MonotonicTime
        /// The epoch from before its lookup.
        let epoch: Int
    }

    /// Counts messages of ended sessions: what was looked up before that of its session is not used.
    private(set) var epoch = 0
    private let limit: Int
    private let recordedEnds: Int
    /// The epochs in which sessions ended, by revocation ID: the latest ones, and those before.
    private var ends: [UInt64: Int] = [:]
    private var earlierEnds: [UInt64: Int] = [:]
    /// All ends since this epoch are recorded.
    private var firstEpoch = 0
    private var firstEpochOfEnds = 0
    private var young: [[UInt8]: Entry] = [:]
    private var old: [[UInt8]: Entry] = [:]
    /// When the last entry expires.
    private var lastExpiry = MonotonicTime(nanoseconds: 0)

    /// - Parameters:
    ///   - limit: the maximum number of sessions.
    ///   - recordedEnds: how many ends are recorded, at least; before that many, a session is not found any more.
    init(limit: Int, recordedEnds: Int = 65_536) {
        self.limit = max(limit, 2)
        self.recordedEnds = recordedEnds
    }

    var count: Int { young.count + old.count }

    /// Stores a session that was verified.
    /// - Parameters:
    ///   - key: a hash that identifies the token.
    ///   - epoch: the epoch from before the lookup.
    mutating func store(_ session: VerifiedSession, for key: [UInt8], at now: MonotonicTime, epoch: Int) {
        guard session.cacheLifetime > .zero, isCurrent(session, since: epoch) else { return }
        if now > lastExpiry || young.count >= limit / 2 {
            old = now > lastExpiry ? [:] : young
            young = [:]
        }
        let expiry = now + session.cacheLifetime
        young[key] = Entry(session: session, expiry: expiry, epoch: epoch)
        lastExpiry = max(lastExpiry, expiry)
    }

    /// Finds a session, with the remaining lifetime of its entry.
    func find(_ key: [UInt8], at now: MonotonicTime) -> VerifiedSession? {
        guard let entry = young[key] ?? old[key], now < entry.expiry, isCurrent(entry.session, since: entry.epoch)
        else { return nil }
        return VerifiedSession(
            principal: entry.session.principal, number: entry.session.number, cacheLifetime: entry.expiry.since(now),
            end: entry.session.end)
    }

    mutating func remove(_ key: [UInt8]) {
        young[key] = nil
        old[key] = nil
    }

    mutating func drop(_ ids: [UInt64]) {
        epoch += 1
        if ends.count >= recordedEnds {
            firstEpoch = firstEpochOfEnds
            (firstEpochOfEnds, earlierEnds, ends) = (epoch, ends, [:])
        }
        for id in ids { ends[id] = epoch }
    }

    /// Whether a session is not known to have ended since an epoch.
    private func isCurrent(_ session: VerifiedSession, since epoch: Int) -> Bool {
        guard epoch >= firstEpoch else { return false }
        guard let end = ends[session.number] ?? earlierEnds[session.number] else { return true }
        return end <= epoch
    }
}

/// Verifies session tokens against the store, and against the cache while the store is unavailable.
package struct CachedSessions: SessionVerifying {
    package static var accessPrefix: String { SessionStore.accessPrefix }

    private let sessions: SessionStore
    private let copies: SessionCache
    private let clock: Clock

    /// - Parameters:
    ///   - sessions: verifies tokens against the store.
    ///   - copies: shared by successive configurations that have the same store.
    package init(_ sessions: SessionStore, copies: SessionCache, clock: Clock) {
        (self.sessions, self.copies, self.clock) = (sessions, copies, clock)
    }

    /// Verifies a token against the store, or against the cache if the store is unavailable.
    package func verify(
        _ token: Credential, in context: AuthenticationContext
    ) async throws(AuthenticationError) -> VerifiedSession {
        let epoch = copies.epoch
        let start = clock.monotonicTime
        let key = SHA256.digest(token.withBytes { $0 })
        do throws(AuthenticationError) {
            let session = try await sessions.verify(token, in: context)
            copies.store(session, for: key, at: start, epoch: epoch)
            return session
        } catch {
            guard error.disposition == .unavailable else {
                // Even if the message of its end was missed.
                copies.remove(key)
                throw error
            }
            guard let copy = copies.find(key, at: clock.monotonicTime) else { throw error }
            return copy
        }
    }

    /// Verifies a token against the store alone.
    package func inspect(
        _ token: Credential, in context: AuthenticationContext
    ) async throws(AuthenticationError) -> VerifiedSession {
        try await sessions.inspect(token, in: context)
    }
}
