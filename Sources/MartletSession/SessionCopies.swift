package import MartletCore
internal import MartletCrypto
package import MartletProvider
private import Synchronization

/// Sessions that the store has proved lately, for when it cannot be asked: one set for all loops of the process.
///
/// A loop keeps copies of its own, and a client may come in by another one. A copy is believed no longer than a loop would.
package final class SessionCopies: Sendable {
    private let table: Mutex<SessionCopyTable>

    /// - Parameter limit: how many sessions are kept.
    package init(limit: Int = 50_000) { table = Mutex(SessionCopyTable(limit: limit)) }

    /// Drops sessions that have ended, by their numbers.
    package func drop(_ numbers: [UInt64]) { table.withLock { $0.drop(numbers) } }

    /// Drops everything: what has ended meanwhile may have gone unheard.
    package func dropAll() { table.withLock { $0.dropAll() } }

    fileprivate var epoch: Int { table.withLock { $0.epoch } }

    fileprivate func keep(_ session: ProvenSession, for key: [UInt8], at now: MonotonicTime, epoch: Int) {
        table.withLock { $0.keep(session, for: key, at: now, epoch: epoch) }
    }

    fileprivate func find(_ key: [UInt8], at now: MonotonicTime) -> ProvenSession? {
        table.withLock { $0.find(key, at: now) }
    }
}

/// The table behind ``SessionCopies``, without a clock.
///
/// Copies live for seconds, so two generations replace any bookkeeping: what is older than both has ended, or had its turn.
struct SessionCopyTable {
    private struct Copy {
        let session: ProvenSession
        let ends: MonotonicTime
    }

    /// Counts what has been dropped: a session that was asked for before is not kept.
    private(set) var epoch = 0
    private let limit: Int
    private var young: [[UInt8]: Copy] = [:]
    private var old: [[UInt8]: Copy] = [:]
    /// When the last of all ends.
    private var lastEnd = MonotonicTime(nanoseconds: 0)

    init(limit: Int) { self.limit = max(limit, 2) }

    var count: Int { young.count + old.count }

    /// Keeps a session that the store has proved.
    /// - Parameters:
    ///   - key: tells tokens apart, and does not tell them.
    ///   - epoch: that from before the store was asked.
    mutating func keep(_ session: ProvenSession, for key: [UInt8], at now: MonotonicTime, epoch: Int) {
        guard epoch == self.epoch, session.copyLifetime > .zero else { return }
        if now > lastEnd || young.count >= limit / 2 {
            old = now > lastEnd ? [:] : young
            young = [:]
        }
        let ends = now + session.copyLifetime
        young[key] = Copy(session: session, ends: ends)
        lastEnd = max(lastEnd, ends)
    }

    /// The session, with what is left of its copy's life.
    func find(_ key: [UInt8], at now: MonotonicTime) -> ProvenSession? {
        guard let copy = young[key] ?? old[key], now < copy.ends else { return nil }
        return ProvenSession(
            principal: copy.session.principal, number: copy.session.number, copyLifetime: copy.ends.since(now),
            end: copy.session.end)
    }

    mutating func drop(_ numbers: [UInt64]) {
        epoch += 1
        let ended = Set(numbers)
        young = young.filter { !ended.contains($0.value.session.number) }
        old = old.filter { !ended.contains($0.value.session.number) }
    }

    mutating func dropAll() {
        epoch += 1
        young = [:]
        old = [:]
    }
}

/// Judges session tokens by the store, and by copies while that cannot be asked.
package struct SessionsWithCopies: SessionJudging {
    package static var accessPrefix: String { SessionStore.accessPrefix }

    private let sessions: SessionStore
    private let copies: SessionCopies
    private let clock: Clock

    /// - Parameters:
    ///   - sessions: asks the store.
    ///   - copies: kept across configurations that have the same store.
    package init(_ sessions: SessionStore, copies: SessionCopies, clock: Clock) {
        self.sessions = sessions
        self.copies = copies
        self.clock = clock
    }

    /// Judges a token by the store, and by a copy where that cannot be asked.
    package func judge(
        _ token: Credential, in context: AuthenticationContext
    ) async throws(AuthenticationError) -> ProvenSession {
        let epoch = copies.epoch
        let asked = clock.monotonicTime
        let key = SHA256.digest(token.withBytes { $0 })
        do throws(AuthenticationError) {
            let session = try await sessions.judge(token, in: context)
            copies.keep(session, for: key, at: asked, epoch: epoch)
            return session
        } catch {
            guard error.disposition == .unavailable, let copy = copies.find(key, at: clock.monotonicTime) else {
                throw error
            }
            return copy
        }
    }

    /// Asks the store alone: whoever inspects a session wants to know what the store says.
    package func inspect(
        _ token: Credential, in context: AuthenticationContext
    ) async throws(AuthenticationError) -> ProvenSession {
        try await sessions.inspect(token, in: context)
    }
}
