package import MartletCore
internal import MartletCrypto
package import MartletProvider
private import Synchronization

/// Recently verified sessions, used while the store is unavailable and shared by all event loops of the process.
///
/// Each loop has its own cache, but a client may reconnect on another loop. Entries live no longer than in a loop's
/// cache.
package final class SessionCache: Sendable {
    private let table: Mutex<SessionCacheTable>

    /// - Parameter limit: the maximum number of sessions.
    package init(limit: Int = 50_000) { table = Mutex(SessionCacheTable(limit: limit)) }

    /// Removes ended sessions, by their revocation IDs.
    package func drop(_ ids: [UInt64]) { table.withLock { $0.drop(ids) } }

    /// Removes everything, because revocation messages may have been missed.
    package func dropAll() { table.withLock { $0.dropAll() } }

    fileprivate var epoch: Int { table.withLock { $0.epoch } }

    fileprivate func store(_ session: VerifiedSession, for key: [UInt8], at now: MonotonicTime, epoch: Int) {
        table.withLock { $0.store(session, for: key, at: now, epoch: epoch) }
    }

    fileprivate func find(_ key: [UInt8], at now: MonotonicTime) -> VerifiedSession? {
        table.withLock { $0.find(key, at: now) }
    }
}

/// The table of cached sessions, without a clock.
///
/// Entries live for seconds, so it has two generations instead of an eviction order: older entries have expired.
struct SessionCacheTable {
    private struct Entry {
        let session: VerifiedSession
        let expiry: MonotonicTime
    }

    /// Counts invalidations: the result of a lookup that began in an earlier epoch is not stored.
    private(set) var epoch = 0
    private let limit: Int
    private var young: [[UInt8]: Entry] = [:]
    private var old: [[UInt8]: Entry] = [:]
    /// When the last entry expires.
    private var lastExpiry = MonotonicTime(nanoseconds: 0)

    init(limit: Int) { self.limit = max(limit, 2) }

    var count: Int { young.count + old.count }

    /// Stores a session that was verified.
    /// - Parameters:
    ///   - key: a hash that identifies the token.
    ///   - epoch: the epoch from before the lookup.
    mutating func store(_ session: VerifiedSession, for key: [UInt8], at now: MonotonicTime, epoch: Int) {
        guard epoch == self.epoch, session.cacheLifetime > .zero else { return }
        if now > lastExpiry || young.count >= limit / 2 {
            old = now > lastExpiry ? [:] : young
            young = [:]
        }
        let expiry = now + session.cacheLifetime
        young[key] = Entry(session: session, expiry: expiry)
        lastExpiry = max(lastExpiry, expiry)
    }

    /// Finds a session, with the remaining lifetime of its entry.
    func find(_ key: [UInt8], at now: MonotonicTime) -> VerifiedSession? {
        guard let entry = young[key] ?? old[key], now < entry.expiry else { return nil }
        return VerifiedSession(
            principal: entry.session.principal, number: entry.session.number, cacheLifetime: entry.expiry.since(now),
            end: entry.session.end)
    }

    mutating func drop(_ ids: [UInt64]) {
        epoch += 1
        let ended = Set(ids)
        young = young.filter { !ended.contains($0.value.session.number) }
        old = old.filter { !ended.contains($0.value.session.number) }
    }

    mutating func dropAll() {
        epoch += 1
        young = [:]
        old = [:]
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
        self.sessions = sessions
        self.copies = copies
        self.clock = clock
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
            guard error.disposition == .unavailable, let copy = copies.find(key, at: clock.monotonicTime) else {
                throw error
            }
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
