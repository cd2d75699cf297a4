package import MartletCore

/// The in-memory session backend of a single instance, `memory:`; its sessions end with the process.
///
/// It is bounded and never evicts live sessions: when it is full, a login fails with `session.store_full`.
package final class MemorySessions: SessionBackend {
    fileprivate struct Content {
        var sessions: [[UInt8]: SessionState] = [:]
        /// The key hashes of each subject's sessions, oldest first; may include sessions that have ended.
        var subjects: [[UInt8]: [[UInt8]]] = [:]
        /// The claims of subjects' accounts, by the subject's key.
        var claims: [[UInt8]: StoredClaims] = [:]
        var bytes = 0
        /// How many sessions were inserted.
        var insertions: Int64 = 0
        var insertionsSinceSweep = 0
        /// Unix time in milliseconds.
        var lastSweep: Int64 = 0
    }

    private let content = Lock(Content())
    private let maximumSessions: Int
    private let maximumBytes: Int

    /// - Parameters:
    ///   - maximumSessions: the maximum number of sessions.
    ///   - maximumBytes: the maximum estimated memory of all sessions, in bytes.
    package init(maximumSessions: Int = SharedBound.sessions.total, maximumBytes: Int = SharedBound.sessions.bytes) {
        (self.maximumSessions, self.maximumBytes) = (maximumSessions, maximumBytes)
    }

    /// The number of stored sessions, including ended ones not yet removed.
    package var count: Int { content.withLock { $0.sessions.count } }

    package var findsMarks: Bool { false }

    /// Inserts a session.
    package func insert(_ session: NewSession, at time: SessionTime) async throws(StoreError) -> Insertion {
        var state = SessionState(session)
        let (hasRoom, inserted): (Bool, Insertion) = content.withLock { content in
            let live = content.live(session.subject.whole, at: time)
            let surplus = SessionApplication.surplus(of: live, count: live.count &- session.limit &+ 1) {
                content.sessions[$0]?.applicationHash == session.applicationHash
            }
            guard session.evicts || surplus.isEmpty else { return (true, .full(surplus: surplus)) }
            guard makeRoom(for: state.cost, replacing: surplus, in: &content, at: time) else {
                return (false, .full(surplus: []))
            }
            let ended = surplus.compactMap { content.remove($0) }
            content.insertions &+= 1
            state.order = content.insertions
            content.sessions[session.sessionKey.keyHash] = state
            content.subjects[session.subject.whole, default: []].append(session.sessionKey.keyHash)
            content.bytes += state.cost
            let claims = session.readsClaims ? content.claims[session.subject.whole] : nil
            return (true, .inserted(ended: ended, claimsVersion: claims?.version))
        }
        guard hasRoom else { throw StoreError(code: .sessionStoreFull, message: "memory session store full") }
        return inserted
    }

    /// Looks up the session of an access token and updates its last use.
    package func lookUpAndTouch(
        _ sessionKey: SessionKey, tokenHash: [UInt8], lastAddress: [UInt8], readsClaims: Bool, at time: SessionTime
    ) async throws(StoreError) -> AccessLookup {
        content.withLock { content in
            let found = content.sessions[sessionKey.keyHash]?
                .lookUpAndTouch(tokenHash: tokenHash, lastAddress: lastAddress, at: time)
            guard readsClaims, case .found(var session)? = found,
                let subject = content.sessions[sessionKey.keyHash]?.subject
            else { return found ?? .gone }
            session.claims = content.claims[subject]?.bytes ?? []
            return .found(session)
        }
    }

    /// Stores the claims of a subject's account.
    package func storeClaims(
        _ claims: StoredClaims, of subject: SubjectKey, at time: SessionTime
    ) async throws(StoreError) -> [UInt64]? {
        let stored: (hasRoom: Bool, changed: [UInt64]?) = content.withLock { content in
            let known = content.claims[subject.whole]
            guard known.map({ $0.version <= claims.version }) ?? true else { return (true, nil) }
            if known == nil, content.claims.count >= maximumSessions { content.removeUnusedClaims() }
            guard known != nil || content.claims.count < maximumSessions else { return (false, nil) }
            content.bytes += claims.bytes.count - (known?.bytes.count ?? 0)
            content.claims[subject.whole] = StoredClaims(
                version: claims.version, bytes: claims.bytes, ends: max(claims.ends, known?.ends ?? 0))
            guard known?.version != claims.version else { return (true, nil) }
            return (true, content.live(subject.whole, at: time).compactMap { content.sessions[$0]?.revocationID })
        }
        guard stored.hasRoom else { throw StoreError(code: .sessionStoreFull, message: "memory session store full") }
        return stored.changed
    }

    /// Reads the state that a refresh needs.
    package func read(
        _ sessionKey: SessionKey, tokenHash: [UInt8], readsClaims: Bool, at time: SessionTime
    ) async throws(StoreError) -> RefreshLookup? {
        content.withLock { content in
            guard let state = content.sessions[sessionKey.keyHash] else { return nil }
            let claims = readsClaims ? content.claims[state.subject]?.bytes : nil
            return state.read(tokenHash: tokenHash, claims: claims ?? [], at: time)
        }
    }

    /// Rotates the refresh token or the cookie token.
    package func rotate(
        _ sessionKey: SessionKey, _ rotation: SessionRotation, at time: SessionTime
    ) async throws(StoreError) -> SessionRotation.Outcome {
        content.withLock { content in
            content.change(sessionKey.keyHash) { $0.rotate(rotation, at: time) } ?? .gone
        }
    }

    /// Replaces the record.
    package func replace(
        _ sessionKey: SessionKey, _ replacement: RecordReplacement, at time: SessionTime
    ) async throws(StoreError) -> RecordReplacement.Outcome {
        content.withLock { content in
            content.change(sessionKey.keyHash) { $0.replace(replacement, at: time) } ?? .gone
        }
    }

    /// Updates the last use.
    package func touch(_ sessionKey: SessionKey, lastAddress: [UInt8], at time: SessionTime) async throws(StoreError) {
        content.withLock { $0.sessions[sessionKey.keyHash]?.touch(lastAddress: lastAddress, at: time) }
    }

    /// Does nothing: what is not there does not come back.
    package func endAbsent(_ sessionKey: SessionKey) async throws(StoreError) {}

    /// Ends one session.
    package func end(_ sessionKey: SessionKey) async throws(StoreError) -> Bool {
        content.withLock { $0.remove(sessionKey.keyHash) != nil }
    }

    /// Finds a session by the digits of its ID.
    package func find(_ digits: [UInt8]) async throws(StoreError) -> SessionKey? {
        content.withLock { content in
            content.sessions.keys.first { $0.starts(with: digits) }.map { SessionKey(tagDigits: [], keyHash: $0) }
        }
    }

    /// Lists the live sessions of a subject.
    package func list(
        _ subject: SubjectKey, from start: SessionPosition?, at time: SessionTime
    ) async throws(StoreError) -> [ListedSession] {
        content.withLock { content in
            var found: [ListedSession] = []
            for keyHash in content.live(subject.whole, at: time).reversed() {
                guard found.count < ListedSession.maximumCount else { break }
                guard let state = content.sessions[keyHash], start.map({ state.order < $0.order }) ?? true else {
                    continue
                }
                found.append(
                    ListedSession(
                        keyHash: keyHash, listing: state.listing, ends: state.ends, lastSeen: state.lastSeen,
                        lastAddress: state.lastAddress, position: SessionPosition(order: state.order)))
            }
            return found
        }
    }

    /// Ends the selected sessions of a subject.
    package func end(
        _ selection: SessionSelection, of subject: SubjectKey, at time: SessionTime
    ) async throws(StoreError) -> [UInt64] {
        content.withLock { content in
            content.live(subject.whole, at: time).compactMap { keyHash in
                guard let state = content.sessions[keyHash],
                    selection.contains(keyHash: keyHash, providerHash: state.providerHash)
                else { return nil }
                return content.remove(keyHash)
            }
        }
    }

    /// Sweeps ended sessions periodically and when the store is full.
    /// - Returns: whether the new session fits.
    private func makeRoom(
        for cost: Int, replacing surplus: [[UInt8]], in content: inout Content, at time: SessionTime
    ) -> Bool {
        let freed = surplus.reduce(0) { $0 + (content.sessions[$1]?.cost ?? 0) }
        func hasRoom(_ content: borrowing Content) -> Bool {
            content.sessions.count - surplus.count < maximumSessions && content.bytes &+ cost &- freed <= maximumBytes
        }
        content.insertionsSinceSweep += 1
        // When all sessions are live a sweep frees nothing, so a full store sweeps at most once per second.
        let isDue =
            hasRoom(content)
            ? content.insertionsSinceSweep > max(4096, content.sessions.count / 2)
            : !(0..<1000).contains(time.now &- content.lastSweep)
        if isDue {
            content.insertionsSinceSweep = 0
            content.lastSweep = time.now
            for (keyHash, state) in content.sessions where !state.isLive(at: time) { content.remove(keyHash) }
            content.removeUnusedClaims()
        }
        return hasRoom(content)
    }
}

extension MemorySessions.Content {
    /// The key hashes of a subject's live sessions, oldest first; removes those that have ended.
    fileprivate mutating func live(_ subject: [UInt8], at time: SessionTime) -> [[UInt8]] {
        guard let keyHashes = subjects[subject] else { return [] }
        var live: [[UInt8]] = []
        for keyHash in keyHashes {
            if sessions[keyHash]?.isLive(at: time) == true { live.append(keyHash) } else { remove(keyHash) }
        }
        return live
    }

    /// Removes the claims of subjects without sessions.
    ///
    /// A login creates its session before it reads the claims, so that those it stores are the latest.
    fileprivate mutating func removeUnusedClaims() {
        for (subject, stored) in claims where subjects[subject] == nil {
            bytes -= stored.bytes.count
            claims[subject] = nil
        }
    }

    /// Changes a session, and what it counts for; `nil` if there is none.
    fileprivate mutating func change<Outcome>(
        _ keyHash: [UInt8], _ change: (inout SessionState) -> Outcome
    ) -> Outcome? {
        guard var state = sessions.removeValue(forKey: keyHash) else { return nil }
        bytes -= state.cost
        let outcome = change(&state)
        bytes += state.cost
        sessions[keyHash] = state
        return outcome
    }

    @discardableResult
    fileprivate mutating func remove(_ keyHash: [UInt8]) -> UInt64? {
        guard let state = sessions.removeValue(forKey: keyHash) else { return nil }
        bytes -= state.cost
        subjects[state.subject]?.removeAll { $0 == keyHash }
        if subjects[state.subject]?.isEmpty == true { subjects[state.subject] = nil }
        return state.revocationID
    }
}
