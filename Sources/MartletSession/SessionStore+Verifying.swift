internal import MartletCore
package import MartletProvider

extension SessionStore {
    /// Verifies an access token with one request to the store.
    package func verify(
        _ token: Credential, in context: AuthenticationContext
    ) async throws(AuthenticationError) -> ProvenSession {
        try await verify(token, in: context, updatesLastUse: true)
    }

    /// Verifies an access token without updating the last use of the session.
    package func inspect(
        _ token: Credential, in context: AuthenticationContext
    ) async throws(AuthenticationError) -> ProvenSession {
        try await verify(token, in: context, updatesLastUse: false)
    }

    private func verify(
        _ token: Credential, in context: AuthenticationContext, updatesLastUse: Bool
    ) async throws(AuthenticationError) -> ProvenSession {
        guard token.scheme == .bearer, let token = token.withBytes({ SessionToken($0, kind: .access) }) else {
            throw .rejected(.sessionTokenMalformed)
        }
        guard await lookups.acquire(as: context.client?.workOwner ?? .anonymous) else {
            throw .unavailable(.sessionLookupsFull, retryAfter: .seconds(1))
        }
        defer { lookups.release() }
        guard clock.monotonicTime < context.deadline else {
            throw .unavailable(.sessionLookupsFull, retryAfter: .seconds(1))
        }
        let sessionKey = SessionKey(lookup: token.lookup)
        // Read the clock after the wait for the gate.
        let time = updatesLastUse ? currentTime() : currentTime().readOnly
        let client = updatesLastUse ? context.address : []
        let lastAddress = (try? SessionSeal(sessionKey).sealedAddress(client, lookup: token.lookup))?.bytes ?? []
        let result: AccessLookup
        do {
            result = try await backend.lookUpAndTouch(
                sessionKey, tokenHash: token.tokenHash, lastAddress: lastAddress, at: time)
        } catch {
            throw .unavailable(.sessionStoreUnavailable, retryAfter: .seconds(1), cause: error)
        }
        switch result {
        case .gone: throw .rejected(.sessionUnknown)
        case .unknown: throw .rejected(.sessionTokenUnknown)
        case .expired: throw .rejected(.sessionTokenExpired)
        case .found(let record, let wrap, let expiry):
            return try verify(token, sessionKey, record: record, wrap: wrap, expiry: expiry, at: time)
        }
    }

    private func verify(
        _ token: SessionToken, _ sessionKey: SessionKey, record: [UInt8], wrap: [UInt8], expiry: Int64,
        at time: SessionTime
    ) throws(AuthenticationError) -> ProvenSession {
        let seal = SessionSeal(sessionKey)
        guard let key = seal.unwrap(wrap, for: token, expiry: expiry) else { throw .rejected(.sessionTokenUnknown) }
        guard let record = seal.open(record, with: key), record.isPlausible(at: time) else {
            throw .rejected(.sessionRecordUnreadable)
        }
        // Unlike the expiry that scripts check, these are authenticated.
        let end = min(expiry, record.ends)
        guard time.now < end else { throw .rejected(.sessionTokenExpired) }
        let longest = min(policy.cacheTTL.wholeMilliseconds, time.idle / 10, end.since(time.now))
        return ProvenSession(
            principal: record.principal(sessionID: sessionKey.id, accessExpiry: end), number: sessionKey.revocationID,
            cacheLifetime: .milliseconds(max(longest, 0)), end: end)
    }
}
