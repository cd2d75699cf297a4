internal import MartletCore
package import MartletProvider

extension SessionStore {
    /// Verifies an access token, or a cookie token, with one request to the store; a cookie token that is due, or
    /// presented for the first time, takes three.
    package func verify(
        _ token: Credential, in context: AuthenticationContext
    ) async throws(AuthenticationError) -> VerifiedSession {
        try await verify(token, in: context, updatesLastUse: true)
    }

    /// Verifies a token without updating the last use of the session, and without replacing a cookie token.
    package func inspect(
        _ token: Credential, in context: AuthenticationContext
    ) async throws(AuthenticationError) -> VerifiedSession {
        try await verify(token, in: context, updatesLastUse: false)
    }

    private func verify(
        _ credential: Credential, in context: AuthenticationContext, updatesLastUse: Bool
    ) async throws(AuthenticationError) -> VerifiedSession {
        guard let token = SessionToken(credential) else { throw .rejected(.sessionTokenMalformed) }
        guard await lookups.acquire(as: context.client?.workOwner ?? .anonymous) else {
            throw .unavailable(.sessionLookupsFull, retryAfter: .seconds(1))
        }
        defer { lookups.release() }
        guard clock.monotonicTime < context.deadline else {
            throw .unavailable(.sessionLookupsFull, retryAfter: .seconds(1))
        }
        let presented = PresentedToken(token, from: updatesLastUse ? context.address : [], sealing)
        // Read the clock after the wait for the gate.
        let time = updatesLastUse ? currentTime() : currentTime().readOnly
        let result: AccessLookup
        do {
            result = try await backend.lookUpAndTouch(
                presented.sessionKey, tokenHash: presented.tokenHash, lastAddress: presented.lastAddress,
                readsClaims: readsClaims, at: time)
        } catch {
            throw .unavailable(.sessionStoreUnavailable, retryAfter: .seconds(1), cause: error)
        }
        switch result {
        case .gone: throw .rejected(.sessionUnknown)
        case .unknown, .expired:
            guard token.kind == .cookie else {
                if case .expired(let found) = result {
                    throw .expired(token, presented, found, at: time)
                }
                throw .rejected(.sessionTokenUnknown)
            }
            let use: TokenUse
            do throws(SessionError) { use = try await self.use(presented, isUse: updatesLastUse) } catch {
                throw AuthenticationError(error)
            }
            return try verified(use, presented.sessionKey)
        case .found(let found):
            let opened = try OpenedRecord(token, presented.seal, found, at: time, sealing)
            var use = TokenUse(opened.record, found.claims, at: time)
            use.cacheEnd = opened.end
            if token.kind == .access { use.end = opened.end }
            use.isBound = opened.isBound
            return try verified(use, presented.sessionKey)
        }
    }

    private func verified(_ use: TokenUse, _ sessionKey: SessionKey) throws(AuthenticationError) -> VerifiedSession {
        let claims: AccountClaims?
        do throws(AuthenticationError) {
            claims = try accountClaims(of: use.record.subject, use.claims)
        } catch {
            throw error.of(use.record.caller(sessionKey))
        }
        let longest = min(policy.cacheTTL.wholeMilliseconds, use.time.idle / 10, use.cacheEnd.since(use.time.now))
        return VerifiedSession(
            principal: use.record.principal(
                sessionID: sessionKey.id, accessExpiry: use.end, isBound: use.isBound, claims: claims),
            number: sessionKey.revocationID, cacheLifetime: .milliseconds(max(longest, 0)), end: use.end,
            replacement: use.replacement.map {
                ReplacementCookie(token: $0.text, lifetime: use.record.lifetime(at: use.time))
            })
    }

    /// The claims of the subject's account; the sessions of a disabled one are denied, and go on when it is enabled.
    ///
    /// If they cannot be opened the session is rejected: without them a caller could have more rights than with them.
    /// The next login or refresh replaces them.
    private func accountClaims(of subject: String, _ stored: [UInt8]) throws(AuthenticationError) -> AccountClaims? {
        guard !stored.isEmpty else { return nil }
        guard let claims = ClaimsSeal(subject: subject, sealing).open(stored) else {
            throw .rejected(.sessionClaimsUnreadable)
        }
        guard !claims.isDisabled else { throw .denied(.accountDisabled) }
        return claims.claims
    }
}

extension SessionToken {
    /// The token of a credential: an access token as a bearer credential, or a cookie token.
    fileprivate init?(_ credential: Credential) {
        let kind: Kind
        switch credential.scheme {
        case .bearer: kind = .access
        case .cookie: kind = .cookie
        case .basic, .header, .certificate: return nil
        }
        guard let token = credential.withBytes({ SessionToken($0, kind: kind) }) else { return nil }
        self = token
    }
}

extension SessionRecord {
    /// Whose session it is, for logs.
    fileprivate func caller(_ key: SessionKey) -> RejectedCaller {
        RejectedCaller(subject: subject, sessionID: key.id, provider: provider)
    }
}

extension AuthenticationError {
    /// The error of an access token that has expired, with whose it was if it opens the record of its session.
    fileprivate static func expired(
        _ token: SessionToken, _ presented: PresentedToken, _ found: FoundSession, at time: SessionTime
    ) -> AuthenticationError {
        let error = AuthenticationError.rejected(.sessionTokenExpired)
        guard let key = presented.seal.unwrap(found.wrap, for: token, expiry: found.expiry)?.key,
            let record = presented.seal.open(found.record, with: key), record.isPlausible(at: time)
        else { return error }
        return error.of(record.caller(presented.sessionKey))
    }

    /// The error of a session while a request is authenticated.
    fileprivate init(_ error: SessionError) {
        switch error.kind {
        case .invalid, .unproven: self = .rejected(error.code, cause: error.cause)
        case .denied: self = .denied(error.code)
        case .unavailable, .throttled:
            self = .unavailable(error.code, retryAfter: .seconds(1), cause: error.cause)
        }
    }
}

/// A verified use of a token.
struct TokenUse {
    let record: SessionRecord
    /// The claims of the subject's account, as stored.
    let claims: [UInt8]
    let time: SessionTime
    /// When the exchanges of the use end, in milliseconds of Unix time.
    var end: Int64
    /// How long the result may be cached, in milliseconds of Unix time.
    var cacheEnd: Int64
    /// The cookie token that replaces the presented one.
    var replacement: SessionToken?
    /// Whether the token is bound to the session's key.
    var isBound = false

    /// A use of a cookie token, not to be cached; its exchanges end with the session, unless that is used again.
    init(_ record: SessionRecord, _ claims: [UInt8], at time: SessionTime) {
        (self.record, self.claims, self.time) = (record, claims, time)
        end = min(record.ends, time.now.later(by: time.idle))
        cacheEnd = time.now
    }
}

/// A session's record, opened with an access token, or with a cookie token that is not due.
struct OpenedRecord {
    let record: SessionRecord
    /// The key that it is sealed with.
    let key: Secret
    /// When the token expires, in milliseconds of Unix time.
    let end: Int64
    /// Whether the token is bound to the session's key.
    let isBound: Bool

    init(
        _ token: SessionToken, _ seal: SessionSeal, _ found: FoundSession, at time: SessionTime,
        _ sealing: SessionSealing
    ) throws(AuthenticationError) {
        guard let wrapped = seal.unwrap(found.wrap, for: token, expiry: found.expiry) else {
            sealing.rejected()
            throw .rejected(.sessionTokenUnknown)
        }
        guard let record = seal.open(found.record, with: wrapped.key), record.isPlausible(at: time),
            !wrapped.isBound || record.keyThumbprint != nil
        else {
            sealing.rejected()
            throw .rejected(.sessionRecordUnreadable)
        }
        // Unlike the expiry that scripts check, these are authenticated.
        end = min(found.expiry, record.ends)
        guard time.now < end else { throw .rejected(.sessionTokenExpired) }
        self.record = record
        key = wrapped.key
        isBound = wrapped.isBound
    }
}
