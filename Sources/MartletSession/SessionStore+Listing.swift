internal import MartletCore

extension SessionStore {
    /// Lists the live sessions of a subject.
    package func page(of subject: String, from start: SessionPosition?) async throws(SessionError) -> SessionPage {
        let subjectKey = SubjectKey(subject)
        let time = currentTime()
        let listed = try await fromStore(await backend.list(subjectKey, from: start, at: time))
        let sessions = listed.compactMap { session -> SessionSummary? in
            let seal = SessionSeal(SessionKey(tagDigits: subjectKey.tagDigits, keyHash: session.keyHash), sealing)
            // A listing that cannot be opened was forged, or belongs to another subject with the same tag.
            guard let listing = seal.open(session.listing, of: subject), time.isPlausible(listing.created),
                time.isPlausible(session.lastSeen), time.isPlausible(session.ends)
            else {
                sealing.rejected()
                return nil
            }
            return SessionSummary(
                id: SessionKey.id(of: session.keyHash), provider: listing.provider,
                createdAt: UnixTime(seconds: listing.created / 1000),
                lastSeenAt: UnixTime(seconds: session.lastSeen / 1000),
                expiresAt: .roundingUp(milliseconds: session.ends), client: listing.client,
                lastAddress: seal.open(address: session.lastAddress, key: listing.addressKey)
                    ?? listing.client.address,
                isBound: listing.isBound)
        }
        let isFull = listed.count >= ListedSession.maximumCount
        return SessionPage(sessions: sessions, next: isFull ? listed.last?.position : nil)
    }

    /// Ends one session.
    package func end(_ session: SessionReference) async throws(SessionError) -> Bool {
        guard let digits = SessionKey.digits(of: session.id) else { return false }
        return try await !end(SessionSelection(id: digits), of: session.subject).isEmpty
    }

    /// Ends one session, whoever it belongs to.
    package func end(sessionID id: String) async throws(SessionError) -> Bool {
        guard let digits = SessionKey.digits(of: id) else { return false }
        guard let found = try await fromStore(await backend.find(digits)),
            try await fromStore(await backend.end(found))
        else { return false }
        await revoked([found.revocationID])
        return true
    }

    /// Ends a subject's sessions.
    package func endAll(
        subject: String, provider: String?, except excluded: SessionReference?
    ) async throws(SessionError) {
        _ = try await end(
            SessionSelection(
                providerHash: provider.map { SessionSeal.providerHash($0, of: subject) },
                excluded: excluded.flatMap { SessionKey.digits(of: $0.id) }),
            of: subject)
    }

    private func end(_ selection: SessionSelection, of subject: String) async throws(SessionError) -> [UInt64] {
        let time = currentTime()
        let ended = try await fromStore(await backend.end(selection, of: SubjectKey(subject), at: time))
        await revoked(ended)
        return ended
    }
}
