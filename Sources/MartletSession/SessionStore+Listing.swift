internal import MartletCore

extension SessionStore {
    /// The live sessions of a subject.
    package func list(subject: String) async throws(SessionError) -> [SessionSummary] {
        let place = SubjectPlace(subject)
        let moment = moment()
        let listed = try await asking { () async throws(StoreError) in try await backend.list(place, at: moment) }
        return listed.compactMap { session in
            let seal = SessionSeal(SessionPlace(tagDigits: place.tagDigits, filing: session.filing))
            // One that cannot be opened was written by somebody else, or belongs to a subject with the same tag.
            guard let listing = seal.open(session.listing, of: subject), moment.isPlausible(listing.created),
                moment.isPlausible(session.lastSeen), moment.isPlausible(session.ends)
            else { return nil }
            return SessionSummary(
                id: SessionPlace.id(of: session.filing), provider: listing.provider,
                createdAt: UnixTime(seconds: listing.created / 1000),
                lastSeenAt: UnixTime(seconds: session.lastSeen / 1000),
                expiresAt: .roundingUp(milliseconds: session.ends), client: listing.client,
                lastAddress: seal.open(note: session.note, key: listing.addressKey)
                    ?? listing.client.address)
        }
    }

    /// Ends one session.
    package func end(_ session: SessionReference) async throws(SessionError) -> Bool {
        guard let digits = SessionPlace.digits(of: session.id) else { return false }
        return try await !end(SessionSelection(id: digits), of: session.subject).isEmpty
    }

    /// Ends a subject's sessions.
    package func endAll(
        subject: String, provider: String?, except kept: SessionReference?
    ) async throws(SessionError) {
        _ = try await end(
            SessionSelection(
                providerMark: provider.map { SessionSeal.providerMark($0, of: subject) },
                kept: kept.flatMap { SessionPlace.digits(of: $0.id) }),
            of: subject)
    }

    private func end(_ selection: SessionSelection, of subject: String) async throws(SessionError) -> [UInt64] {
        let moment = moment()
        let ended = try await asking { () async throws(StoreError) in
            try await backend.end(selection, of: SubjectPlace(subject), at: moment)
        }
        await revoked(ended)
        return ended
    }
}
