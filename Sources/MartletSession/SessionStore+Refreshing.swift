package import MartletCore
internal import MartletCrypto
internal import MartletProvider

extension SessionStore {
    /// Exchanges a refresh token for a new pair of tokens.
    ///
    /// Concurrent callers with one token all get the same pair during the grace period. Reuse after that means that two
    /// parties hold the token, and ends the session.
    /// - Parameters:
    ///   - key: what the request shows of the client's key.
    ///   - address: the client's address: 16 bytes, or empty.
    ///   - reportReuse: called before a session ends because of reuse.
    /// - Throws: `invalid`, `throttled`, `unavailable` or `unproven`.
    package func refresh(
        _ token: Secret, provenBy key: RefreshKey, from address: [UInt8], reportingReuse reportReuse: EndReport?
    ) async throws(SessionError) -> IssuedTokens {
        guard let token = token.withBytes({ SessionToken($0, kind: .refresh) }) else {
            throw .invalid(.sessionTokenMalformed)
        }
        let attempt = PresentedToken(token, from: address, sealing)
        return try await uncontended(await refresh(attempt, key, reportReuse))
    }

    /// One attempt; `nil` if a concurrent refresh won.
    private func refresh(
        _ attempt: PresentedToken, _ proven: RefreshKey, _ reportReuse: EndReport?
    ) async throws(SessionError) -> IssuedTokens? {
        let time = currentTime()
        let stored = try await read(attempt.token, provenBy: proven, readsClaims: readsClaims, at: time)
        if let key = attempt.seal.unwrap(stored.refreshWrap, for: attempt.token, expiry: stored.ends)?.key {
            return try await rotate(attempt, stored, key: key, proven, at: time)
        }
        if let pair = stored.grace.flatMap({ attempt.seal.open($0, under: attempt.token) }),
            time.now < pair.graceEnd
        {
            return try await reissue(pair, attempt, stored, proven, at: time)
        }
        try await end(attempt.token, stored, reporting: reportReuse)
        throw .invalid(.sessionTokenReused)
    }

    /// Ends the session that issued a refresh token, whether or not the token has been used.
    ///
    /// One that is bound to a key needs no proof for that while it can be exchanged; later it counts as unknown.
    /// - Throws: `invalid` for a token that no live session has issued; `unavailable`.
    package func endSession(withRefreshToken token: Secret, reporting report: EndReport?) async throws(SessionError) {
        try await endSession(with: token, .refresh, reporting: report)
    }

    /// Ends the session that issued a refresh token or cookie token.
    func endSession(
        with token: Secret, _ kind: SessionToken.Kind, reporting report: EndReport?
    ) async throws(SessionError) {
        guard let token = token.withBytes({ SessionToken($0, kind: kind) }) else {
            throw .invalid(.sessionTokenMalformed)
        }
        let stored: RefreshLookup
        do throws(SessionError) {
            stored = try await read(token, provenBy: nil, readsClaims: false, at: currentTime())
        } catch {
            if error.code == .sessionUnknown {
                try await fromStore(await backend.endAbsent(SessionKey(lookup: token.lookup)))
            }
            throw error
        }
        try await end(token, stored, reporting: report)
    }

    /// Reads the session that issued a token.
    /// - Parameter key: what the request shows of the client's key; `nil` where a session may be used without.
    /// - Throws: `unproven` for a token that is bound to another key.
    func read(
        _ token: SessionToken, provenBy key: RefreshKey?, readsClaims: Bool, at time: SessionTime
    ) async throws(SessionError) -> RefreshLookup {
        let stored = try await fromStore(
            await backend.read(
                SessionKey(lookup: token.lookup), tokenHash: token.tokenHash, readsClaims: readsClaims, at: time))
        guard let stored else { throw .invalid(.sessionUnknown) }
        // A token that this session did not issue is no evidence of theft.
        let seal = SessionSeal(SessionKey(lookup: token.lookup), sealing)
        if seal.isGenuine(token, verifier: stored.verifier, provenBy: key?.thumbprint) { return stored }
        guard token.kind == .refresh, seal.isBound(token, stored, at: time) else {
            throw .invalid(.sessionTokenUnknown)
        }
        // The session issued it, for another key.
        if let key { throw key.rejection }
        return stored
    }

    /// Ends the session of a genuine token.
    func end(
        _ token: SessionToken, _ stored: RefreshLookup, reporting report: EndReport?
    ) async throws(SessionError) {
        let sessionKey = SessionKey(lookup: token.lookup)
        if let report, let owner = SessionSeal(sessionKey, sealing).open(owner: stored.owner, lookup: token.lookup) {
            await report(SessionReference(subject: owner, id: sessionKey.id))
        }
        if try await fromStore(await backend.end(sessionKey)) { await revoked([sessionKey.revocationID]) }
    }

    private func rotate(
        _ attempt: PresentedToken, _ stored: RefreshLookup, key: Secret, _ proven: RefreshKey, at time: SessionTime
    ) async throws(SessionError) -> IssuedTokens? {
        var record = try attempt.record(stored, key: key, at: time)
        try checkEnabled(record.subject, stored)
        var binding: RecordReplacement?
        switch proven.decision(forSessionOf: record.keyThumbprint) {
        case .keeps: break
        case .binds(let thumbprint):
            record = record.bound(to: thumbprint)
            binding = RecordReplacement(expected: stored.record, record: try attempt.seal.seal(record, with: key))
        case .refused(let code): throw SessionError(code, .unproven)
        }
        let expiry = accessExpiry(at: time, ends: record.ends)
        let tokens = try sealed(
            TokenPair(
                lookup: attempt.token.lookup, verifier: attempt.seal.verifier(stored.verifier),
                boundTo: record.keyThumbprint))
        let pair = SessionPair(
            access: tokens.access.secret, accessExpiry: expiry, refresh: tokens.refresh.secret, key: key,
            graceEnd: time.now.later(by: policy.refreshReuseGrace), isBound: record.keyThumbprint != nil)
        var rotation = try sealed(attempt.rotation(to: tokens, pair, stored, at: time))
        rotation.binding = binding
        switch try await fromStore(await backend.rotate(attempt.sessionKey, rotation, at: time)) {
        case .done:
            return tokens.issued(
                record, id: attempt.sessionKey.id, accessExpiry: expiry, claimsVersion: stored.claimsVersion, at: time)
        case .lost: return nil
        case .gone: throw .invalid(.sessionUnknown)
        case .throttled: throw SessionError(.sessionThrottled, .throttled)
        }
    }

    /// Returns the pair that the token was exchanged for when it was first used.
    private func reissue(
        _ pair: SessionPair, _ attempt: PresentedToken, _ stored: RefreshLookup, _ proven: RefreshKey,
        at time: SessionTime
    ) async throws(SessionError) -> IssuedTokens {
        let record = try attempt.record(stored, key: pair.key, at: time)
        try checkEnabled(record.subject, stored)
        // A pair from before the session was bound stays one of a bearer: its own refresh binds it.
        if case .refused(let code) = proven.decision(forSessionOf: record.keyThumbprint) {
            throw SessionError(code, .unproven)
        }
        guard !pair.isBound || record.keyThumbprint != nil else { throw .invalid(.sessionRecordUnreadable) }
        guard time.isPlausible(pair.accessExpiry), time.isPlausible(pair.graceEnd) else {
            throw .invalid(.sessionRecordUnreadable)
        }
        try await touch(attempt, stored, at: time)
        let tokens = TokenPair(
            lookup: attempt.token.lookup, verifier: pair.salt.verifier(stored.verifier), access: pair.access,
            refresh: pair.refresh, boundTo: pair.isBound ? record.keyThumbprint : nil)
        return tokens.issued(
            record, id: attempt.sessionKey.id, accessExpiry: pair.accessExpiry, claimsVersion: stored.claimsVersion,
            at: time)
    }

    /// The sessions of a disabled account are not refreshed, and their tokens stay what they are.
    ///
    /// Claims that cannot be opened are replaced after a refresh.
    private func checkEnabled(_ subject: String, _ stored: RefreshLookup) throws(SessionError) {
        guard !stored.claims.isEmpty, ClaimsSeal(subject: subject, sealing).open(stored.claims)?.isDisabled == true
        else { return }
        throw SessionError(.accountDisabled, .denied)
    }

    /// Updates the last use, if the stored one is stale.
    func touch(_ token: PresentedToken, _ stored: RefreshLookup, at time: SessionTime) async throws(SessionError) {
        guard time.shouldUpdateLastUse(since: stored.lastSeen) else { return }
        try await fromStore(await backend.touch(token.sessionKey, lastAddress: token.lastAddress, at: time))
    }
}

extension SessionSeal {
    /// Whether a refresh token that can be exchanged was issued for the session's key, which it shows itself.
    fileprivate func isBound(_ token: SessionToken, _ stored: RefreshLookup, at time: SessionTime) -> Bool {
        let pair = stored.grace.flatMap { open($0, under: token) }.flatMap { time.now < $0.graceEnd ? $0 : nil }
        guard let key = unwrap(stored.refreshWrap, for: token, expiry: stored.ends)?.key ?? pair?.key,
            let thumbprint = open(stored.record, with: key)?.keyThumbprint
        else { return false }
        return isGenuine(token, verifier: stored.verifier, provenBy: thumbprint)
    }
}

/// A refresh token or cookie token with the values derived from it.
struct PresentedToken {
    let token: SessionToken
    let sessionKey: SessionKey
    let seal: SessionSeal
    let tokenHash: [UInt8]
    /// The sealed address of the client; empty if it cannot be sealed.
    let lastAddress: [UInt8]

    private let sealing: SessionSealing

    init(_ token: SessionToken, from address: [UInt8], _ sealing: SessionSealing) {
        (self.token, self.sealing) = (token, sealing)
        sessionKey = SessionKey(lookup: token.lookup)
        seal = SessionSeal(sessionKey, sealing)
        tokenHash = token.tokenHash
        lastAddress = (try? seal.sealedAddress(address, lookup: token.lookup))?.bytes ?? []
    }

    /// The record of a session that has not ended.
    func record(_ stored: RefreshLookup, key: Secret, at time: SessionTime) throws(SessionError) -> SessionRecord {
        guard let record = seal.open(stored.record, with: key), record.isPlausible(at: time) else {
            sealing.rejected()
            throw .invalid(.sessionRecordUnreadable)
        }
        guard time.now < record.ends else { throw .invalid(.sessionUnknown) }
        return record
    }

    func rotation(
        to tokens: TokenPair, _ pair: SessionPair, _ stored: RefreshLookup, at time: SessionTime
    ) throws(CryptoError) -> SessionRotation {
        var grace: SessionRotation.Grace?
        if pair.graceEnd > time.now {
            grace = SessionRotation.Grace(
                tokenHash: tokenHash, end: pair.graceEnd, sealed: try seal.seal(pair, under: token))
        }
        return SessionRotation(
            generation: stored.generation, replacedWrap: stored.refreshWrap,
            refreshWrap: try seal.wrap(pair.key, for: tokens.refresh, expiry: stored.ends),
            access: AccessWrap(
                tokenHash: tokens.access.tokenHash, expiry: pair.accessExpiry,
                sealed: try seal.wrap(
                    pair.key, for: tokens.access, expiry: pair.accessExpiry, isBound: pair.isBound)), grace: grace,
            lastAddress: lastAddress)
    }
}
