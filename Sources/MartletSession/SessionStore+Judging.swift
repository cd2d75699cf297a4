internal import MartletCore
package import MartletProvider

extension SessionStore {
    /// Judges an access token: one question to the store.
    package func judge(
        _ token: Credential, in context: AuthenticationContext
    ) async throws(AuthenticationError) -> ProvenSession {
        guard token.scheme == .bearer, let token = token.withBytes({ SessionToken($0, kind: .access) }) else {
            throw .rejected(.sessionTokenMalformed)
        }
        let place = SessionPlace(lookup: token.lookup)
        let moment = moment()
        let reading: AccessReading
        do {
            reading = try await backend.use(place, mark: token.mark, at: moment)
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
        guard let record = seal.open(record, with: key) else { throw .rejected(.sessionRecordUnreadable) }
        // The ends that scripts see are not sealed; these are.
        let end = min(expiry, record.ends)
        guard moment.now < end else { throw .rejected(.sessionTokenExpired) }
        let longest = min(policy.cacheTTL.wholeMilliseconds, moment.idle / 10, end - moment.now)
        return ProvenSession(
            principal: record.principal(sessionID: place.id, accessExpiry: end), number: place.number,
            copyLifetime: .milliseconds(max(longest, 0)), end: end)
    }
}
