internal import MartletCore
package import MartletProvider

extension SessionStore {
    /// Judges an access token: one question to the store.
    package func judge(
        _ token: Credential, in context: AuthenticationContext
    ) async throws(AuthenticationError) -> ProvenSession {
        try await judge(token, in: context, notesUse: true)
    }

    /// The same without noting the use, so that the session ends when it would have ended.
    package func inspect(
        _ token: Credential, in context: AuthenticationContext
    ) async throws(AuthenticationError) -> ProvenSession {
        try await judge(token, in: context, notesUse: false)
    }

    private func judge(
        _ token: Credential, in context: AuthenticationContext, notesUse: Bool
    ) async throws(AuthenticationError) -> ProvenSession {
        guard token.scheme == .bearer, let token = token.withBytes({ SessionToken($0, kind: .access) }) else {
            throw .rejected(.sessionTokenMalformed)
        }
        guard await lookups.enter(as: context.client?.workOwner ?? .anybody) else {
            throw .unavailable(.sessionLookupsFull, retryAfter: .seconds(1))
        }
        defer { lookups.leave() }
        guard clock.monotonicTime < context.deadline else {
            throw .unavailable(.sessionLookupsFull, retryAfter: .seconds(1))
        }
        let place = SessionPlace(lookup: token.lookup)
        // The time after the wait.
        let moment = notesUse ? moment() : moment().leavingLastUse
        let client = notesUse ? context.address : []
        let note = (try? SessionSeal(place).note(client, lookup: token.lookup))?.bytes ?? []
        let reading: AccessReading
        do {
            reading = try await backend.use(place, mark: token.mark, note: note, at: moment)
        } catch {
            throw .unavailable(.sessionStoreUnavailable, retryAfter: .seconds(1), cause: error)
        }
        switch reading {
        case .gone: throw .rejected(.sessionUnknown)
        case .unknown: throw .rejected(.sessionTokenUnknown)
        case .expired: throw .rejected(.sessionTokenExpired)
        case .found(let record, let wrap, let expiry):
            return try prove(token, place, record: record, wrap: wrap, expiry: expiry, at: moment)
        }
    }

    private func prove(
        _ token: SessionToken, _ place: SessionPlace, record: [UInt8], wrap: [UInt8], expiry: Int64,
        at moment: SessionMoment
    ) throws(AuthenticationError) -> ProvenSession {
        let seal = SessionSeal(place)
        guard let key = seal.unwrap(wrap, for: token, expiry: expiry) else { throw .rejected(.sessionTokenUnknown) }
        guard let record = seal.open(record, with: key), record.isPlausible(at: moment) else {
            throw .rejected(.sessionRecordUnreadable)
        }
        // The ends that scripts see are not sealed; these are.
        let end = min(expiry, record.ends)
        guard moment.now < end else { throw .rejected(.sessionTokenExpired) }
        let longest = min(policy.cacheTTL.wholeMilliseconds, moment.idle / 10, end.since(moment.now))
        return ProvenSession(
            principal: record.principal(sessionID: place.id, accessExpiry: end), number: place.number,
            copyLifetime: .milliseconds(max(longest, 0)), end: end)
    }
}
