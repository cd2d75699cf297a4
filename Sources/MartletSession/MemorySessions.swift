package import MartletCore
private import Synchronization

/// The sessions of a single instance, `memory:`; they end with the process.
///
/// It is bounded, and evicts nothing early: when it is full of live sessions a login fails as `session.store_full`.
package final class MemorySessions: SessionBackend {
    fileprivate struct Content {
        var sessions: [[UInt8]: SessionState] = [:]
        /// The sessions of each subject, oldest first; may name some that have gone.
        var subjects: [[UInt8]: [[UInt8]]] = [:]
        var bytes = 0
        var insertionsSinceSweep = 0
        /// When, by the wall clock in milliseconds.
        var lastSweep: Int64 = 0
    }

    private let content = Mutex(Content())
    private let maximumSessions: Int
    private let maximumBytes: Int

    /// - Parameters:
    ///   - maximumSessions: how many it holds at most.
    ///   - maximumBytes: how much they may take together.
    package init(maximumSessions: Int = 100_000, maximumBytes: Int = 256 * 1024 * 1024) {
        self.maximumSessions = maximumSessions
        self.maximumBytes = maximumBytes
    }

    /// How many sessions it holds, some of which may have ended.
    package var count: Int { content.withLock { $0.sessions.count } }

    /// Files a session.
    package func insert(_ session: NewSession, at moment: SessionMoment) async throws(StoreError) -> [UInt64] {
        let state = SessionState(session)
        let ended: [UInt64]? = content.withLock { content in
            let live = content.live(session.subject.name, at: moment)
            let surplus = live.prefix(max(live.count &- session.limit &+ 1, 0))
            guard makeRoom(for: state.cost, insteadOf: surplus, in: &content, at: moment) else { return nil }
            let ended = surplus.compactMap { content.remove($0) }
            content.sessions[session.place.filing] = state
            content.subjects[session.subject.name, default: []].append(session.place.filing)
            content.bytes += state.cost
            return ended
        }
        guard let ended else { throw StoreError(code: .sessionStoreFull, message: "the memory store is full") }
        return ended
    }

    /// Reads what an access token needs.
    package func use(
        _ place: SessionPlace, mark: [UInt8], note: [UInt8], at moment: SessionMoment
    ) async throws(StoreError) -> AccessReading {
        content.withLock { $0.sessions[place.filing]?.use(mark: mark, note: note, at: moment) ?? .gone }
    }

    /// Reads what a refresh token needs.
    package func read(
        _ place: SessionPlace, mark: [UInt8], at moment: SessionMoment
    ) async throws(StoreError) -> RefreshReading? {
        content.withLock { $0.sessions[place.filing]?.read(mark: mark, at: moment) }
    }

    /// Exchanges the refresh token.
    package func rotate(
        _ place: SessionPlace, _ rotation: SessionRotation, at moment: SessionMoment
    ) async throws(StoreError) -> SessionRotation.Outcome {
        content.withLock { $0.sessions[place.filing]?.rotate(rotation, at: moment) ?? .gone }
    }

    /// Notes a use.
    package func touch(_ place: SessionPlace, note: [UInt8], at moment: SessionMoment) async throws(StoreError) {
        content.withLock { $0.sessions[place.filing]?.touch(note: note, at: moment) }
    }

    /// Ends one session.
    package func end(_ place: SessionPlace) async throws(StoreError) -> Bool {
        content.withLock { $0.remove(place.filing) != nil }
    }

    /// The live sessions of a subject.
    package func list(
        _ subject: SubjectPlace, at moment: SessionMoment
    ) async throws(StoreError) -> [ListedSession] {
        content.withLock { content in
            content.live(subject.name, at: moment).suffix(ListedSession.maximumCount).reversed().compactMap { filing in
                content.sessions[filing].map {
                    ListedSession(
                        filing: filing, listing: $0.listing, ends: $0.ends, lastSeen: $0.lastSeen, note: $0.note)
                }
            }
        }
    }

    /// Ends some of a subject's sessions.
    package func end(
        _ selection: SessionSelection, of subject: SubjectPlace, at moment: SessionMoment
    ) async throws(StoreError) -> [UInt64] {
        content.withLock { content in
            content.live(subject.name, at: moment).compactMap { filing in
                guard let state = content.sessions[filing],
                    selection.contains(filing: filing, providerMark: state.providerMark)
                else { return nil }
                return content.remove(filing)
            }
        }
    }

    /// Looks for what has ended now and then, and when there is no room.
    private func makeRoom(
        for cost: Int, insteadOf surplus: ArraySlice<[UInt8]>, in content: inout Content, at moment: SessionMoment
    ) -> Bool {
        let freed = surplus.reduce(0) { $0 + (content.sessions[$1]?.cost ?? 0) }
        func hasRoom(_ content: borrowing Content) -> Bool {
            content.sessions.count - surplus.count < maximumSessions && content.bytes &+ cost &- freed <= maximumBytes
        }
        content.insertionsSinceSweep += 1
        // Where all are live a sweep frees nothing: a flood of logins must not buy one each.
        let isDue =
            hasRoom(content)
            ? content.insertionsSinceSweep > max(4096, content.sessions.count / 2)
            : !(0..<1000).contains(moment.now &- content.lastSweep)
        if isDue {
            content.insertionsSinceSweep = 0
            content.lastSweep = moment.now
            for (filing, state) in content.sessions where !state.isLive(at: moment) { content.remove(filing) }
        }
        return hasRoom(content)
    }
}

extension MemorySessions.Content {
    /// The filings of a subject's live sessions, oldest first; drops those that have ended.
    fileprivate mutating func live(_ subject: [UInt8], at moment: SessionMoment) -> [[UInt8]] {
        guard let filings = subjects[subject] else { return [] }
        var live: [[UInt8]] = []
        for filing in filings {
            if sessions[filing]?.isLive(at: moment) == true { live.append(filing) } else { remove(filing) }
        }
        return live
    }

    @discardableResult
    fileprivate mutating func remove(_ filing: [UInt8]) -> UInt64? {
        guard let state = sessions.removeValue(forKey: filing) else { return nil }
        bytes -= state.cost
        subjects[state.subject]?.removeAll { $0 == filing }
        if subjects[state.subject]?.isEmpty == true { subjects[state.subject] = nil }
        return state.number
    }
}
