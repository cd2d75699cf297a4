internal import MartletCore
package import MartletProvider

extension SessionStore {
    /// Verifies an access token with one request to the store.
    package func verify(
        _ token: Credential, in context: AuthenticationContext
    ) async throws(AuthenticationError) -> VerifiedSession {
        try await verify(token, in: context, updatesLastUse: true)
    }

    /// Verifies an access token without updating the last use of the session.
    package func inspect(
        _ token: Credential, in context: AuthenticationContext
    ) async throws(AuthenticationError) -> VerifiedSession {
        try await verify(token, in: context, updatesLastUse: false)
    }

    private func verify(
        _ token: Credential, in context: AuthenticationContext, updatesLastUse: Bool
    ) async throws(AuthenticationError) -> VerifiedSession {
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
                sessionKey, tokenHash: token.tokenHash, lastAddress: lastAddress, readsClaims: readsClaims, at: time)
        } catch {
            throw .unavailable(.sessionStoreUnavailable, retryAfter: .seconds(1), cause: error)
        }
        switch result {
        case .gone: throw .rejected(.sessionUnknown)
        case .unknown: throw .rejected(.sessionTokenUnknown)
        case .expired: throw .rejected(.sessionTokenExpired)
        case .found(let found):
            let opened = try OpenedRecord(token, sessionKey, found, at: time)
            let claims = try accountClaims(of: opened.record.subject, found.claims)
            let longest = min(policy.cacheTTL.wholeMilliseconds, time.idle / 10, opened.end.since(time.now))
            return VerifiedSession(
                principal: opened.record.principal(sessionID: sessionKey.id, accessExpiry: opened.end, claims: claims),
                number: sessionKey.revocationID, cacheLifetime: .milliseconds(max(longest, 0)), end: opened.end)
        }
    }

    /// The claims of the subject's account.
    ///
    /// If they cannot be opened the session is rejected: without them a caller could have more rights than with them.
    /// The next login or refresh replaces them.
    private func accountClaims(
        of subject: String, _ stored: [UInt8]
    ) throws(AuthenticationError) -> AccountClaims? {
        guard !stored.isEmpty else { return nil }
        guard let claims = ClaimsSeal(subject: subject).open(stored) else { throw .rejected(.sessionClaimsUnreadable) }
        return claims
    }
}

/// A session's record, opened with one of its access tokens.
struct OpenedRecord {
    let record: SessionRecord
    /// The key that it is sealed with.
    let key: Secret
    /// When the token expires, in milliseconds of Unix time.
    let end: Int64

    init(
        _ token: SessionToken, _ sessionKey: SessionKey, _ found: FoundSession, at time: SessionTime
    ) throws(AuthenticationError) {
        let seal = SessionSeal(sessionKey)
        guard let key = seal.unwrap(found.wrap, for: token, expiry: found.expiry) else {
            throw .rejected(.sessionTokenUnknown)
        }
        guard let record = seal.open(found.record, with: key), record.isPlausible(at: time) else {
            throw .rejected(.sessionRecordUnreadable)
        }
        // Unlike the expiry that scripts check, these are authenticated.
        end = min(found.expiry, record.ends)
        guard time.now < end else { throw .rejected(.sessionTokenExpired) }
        self.record = record
        self.key = key
    }
}
