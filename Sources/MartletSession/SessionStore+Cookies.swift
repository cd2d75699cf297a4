package import MartletCore
internal import MartletCrypto
package import MartletProvider

/// Sessions of browsers: they have one cookie token, and no other tokens. In everything else they are sessions like
/// others: in lists, ends, limits, revocations and claims.
extension SessionStore {
    /// Creates a session with a cookie token; the parameters are those of a session with other tokens.
    package func createCookie(
        subject: String, provider: String, identity: Identity, client: SessionClient, evicting: Bool,
        mark: ChangeMark?
    ) async throws(SessionError) -> IssuedCookie {
        let made = try await insert(
            subject: subject, provider: provider, identity: identity, client: client, evicting: evicting,
            hasCookie: true, mark: mark)
        return IssuedCookie(
            made.tokens.refresh, of: made.record, id: made.id, claimsVersion: made.claimsVersion, at: made.time)
    }

    /// Ends the session that issued a cookie token, whether or not the token has been replaced.
    /// - Parameter report: called before the session ends; `nil` without interest.
    /// - Throws: `invalid` for a token that no live session has issued; `unavailable`.
    package func endSession(withCookie cookie: Secret, reporting report: EndReport?) async throws(SessionError) {
        try await endSession(with: cookie, .cookie, reporting: report)
    }

    /// Replaces the cookie token immediately, because the rights of its session change: after another authentication, a
    /// change of password, or a link.
    ///
    /// The tokens before it are accepted for the grace period, and get no replacement. Returns when this instance has
    /// no cached copy of the session, and the other instances have been notified.
    /// - Parameters:
    ///   - proof: of another authentication; a proof older than the session's changes nothing.
    ///   - address: the client's address: 16 bytes, or empty.
    /// - Throws: `invalid`, with `session.token_expired` for a token that a privilege change has replaced before: the
    ///   response then sets no cookie.
    package func reissue(
        _ cookie: Secret, renewedBy proof: SessionProof?, from address: [UInt8]
    ) async throws(SessionError) -> IssuedCookie {
        guard let token = cookie.withBytes({ SessionToken($0, kind: .cookie) }) else {
            throw .invalid(.sessionTokenMalformed)
        }
        let presented = PresentedToken(token, from: address, sealing)
        return try await uncontended(await reissue(presented, proof))
    }

    /// One attempt; `nil` if a concurrent rotation won.
    private func reissue(
        _ presented: PresentedToken, _ proof: SessionProof?
    ) async throws(SessionError) -> IssuedCookie? {
        let time = currentTime()
        let stored = try await read(presented.token, provenBy: nil, readsClaims: false, at: time)
        let (current, key): (SessionToken, Secret)
        switch try presented.cookieState(stored, at: time) {
        case .current(let held, _): (current, key) = (presented.token, held)
        // A request that was sent before the browser had the new token: the session is its own all the same.
        case .replaced(let grace, _, let next?): (current, key) = (next, grace.key)
        case .replaced: throw .invalid(.sessionTokenExpired)
        case .reused:
            try await end(presented.token, stored, reporting: onReuse)
            throw .invalid(.sessionTokenReused)
        }
        var record = try presented.record(stored, key: key, at: time)
        if let proof = proof?.bounded(at: time), proof.authTime >= record.authTime {
            record = record.renewed(by: proof)
        }
        let renewed = try presented.seal.seal(record, with: key)
        let next = try sealed(
            SessionToken.newCookie(lookup: current.lookup, verifier: presented.seal.verifier(stored.verifier)))
        // Without the next token: a thief of the old one must not get it.
        let grace = CookieGrace(end: time.now.later(by: policy.refreshReuseGrace), key: key, replacement: nil)
        let rotation = try sealed(
            presented.rotation(
                from: current, to: next, grace, stored, earlierGracesEnd: grace.end, record: renewed, at: time))
        switch try await apply(rotation, of: presented, at: time) {
        case .done: break
        case .throttled: throw SessionError(.sessionThrottled, .throttled)
        case .lost, .gone: return nil
        }
        await changed([presented.sessionKey.revocationID])
        return IssuedCookie(next, of: record, id: presented.sessionKey.id, at: time)
    }

    /// Verifies a cookie token that a lookup alone does not: one that is due, presented for the first time, replaced, or
    /// not the session's.
    /// - Parameter isUse: whether the session and its token may change.
    func use(_ presented: PresentedToken, isUse: Bool) async throws(SessionError) -> TokenUse {
        try await uncontended(await use(presented, isUse: isUse, at: isUse ? currentTime() : currentTime().readOnly))
    }

    /// One attempt; `nil` if a concurrent rotation won.
    private func use(
        _ presented: PresentedToken, isUse: Bool, at time: SessionTime
    ) async throws(SessionError) -> TokenUse? {
        let stored = try await read(presented.token, provenBy: nil, readsClaims: readsClaims, at: time)
        switch try presented.cookieState(stored, at: time) {
        case .current(let key, let due):
            var use = TokenUse(try presented.record(stored, key: key, at: time), stored.claims, at: time)
            guard isUse else { return use }
            guard let due else { return try await begin(&use, presented, stored, key: key) ? use : nil }
            if time.now >= due { return try await replace(&use, presented, stored, key: key) ? use : nil }
            use.cacheEnd = due
            try await touch(presented, stored, at: time)
            return use
        case .replaced(let grace, let end, let next):
            var use = TokenUse(try presented.record(stored, key: grace.key, at: time), stored.claims, at: time)
            if next == nil { use.end = min(use.end, end) }
            guard isUse else { return use }
            use.replacement = next
            try await touch(presented, stored, at: time)
            return use
        case .reused:
            if isUse { try await end(presented.token, stored, reporting: onReuse) }
            throw .invalid(.sessionTokenReused)
        }
    }

    /// Records the first use of the session's token: from now on it ages, and the grace period of the one before begins.
    /// - Returns: `false` if a concurrent rotation won.
    private func begin(
        _ use: inout TokenUse, _ presented: PresentedToken, _ stored: RefreshLookup, key: Secret
    ) async throws(SessionError) -> Bool {
        let (time, token) = (use.time, presented.token)
        let due = accessExpiry(at: time, ends: use.record.ends)
        let rotation = SessionRotation(
            generation: stored.generation, replacedWrap: stored.refreshWrap,
            refreshWrap: try sealed(presented.seal.wrap(key, due: due, for: token, expiry: stored.ends)),
            access: AccessWrap(
                tokenHash: presented.tokenHash, expiry: due,
                sealed: try sealed(presented.seal.wrap(key, for: token, expiry: due))),
            grace: nil, lastAddress: presented.lastAddress,
            cookie: SessionRotation.CookieChange(
                graceEnd: time.now.later(by: policy.refreshReuseGrace), record: nil))
        use.cacheEnd = due
        return try await apply(rotation, of: presented, at: time) == .done
    }

    /// Replaces a token that is due.
    /// - Returns: `false` if a concurrent rotation won.
    private func replace(
        _ use: inout TokenUse, _ presented: PresentedToken, _ stored: RefreshLookup, key: Secret
    ) async throws(SessionError) -> Bool {
        let next = try sealed(
            SessionToken.newCookie(lookup: presented.token.lookup, verifier: presented.seal.verifier(stored.verifier)))
        let rotation = try sealed(
            presented.rotation(
                from: presented.token, to: next, CookieGrace(end: stored.ends, key: key, replacement: next.secret),
                stored, earlierGracesEnd: use.time.now.later(by: policy.refreshReuseGrace), record: nil, at: use.time))
        switch try await apply(rotation, of: presented, at: use.time) {
        case .done: use.replacement = next
        // The token stays: a request is not rejected because the one before was replaced too often.
        case .throttled: break
        case .lost, .gone: return false
        }
        return true
    }

    private func apply(
        _ rotation: SessionRotation, of presented: PresentedToken, at time: SessionTime
    ) async throws(SessionError) -> SessionRotation.Outcome {
        let outcome = try await fromStore(await backend.rotate(presented.sessionKey, rotation, at: time))
        if outcome == .gone { throw .invalid(.sessionUnknown) }
        return outcome
    }
}

/// What the stored session says about one of its cookie tokens.
private enum CookieState {
    /// It is the session's token; `due` is `nil` until it is first presented.
    case current(key: Secret, due: Int64?)
    /// It was replaced, and is still accepted until `end`; `next` is `nil` unless that is the session's token.
    case replaced(CookieGrace, end: Int64, next: SessionToken?)
    /// It was replaced, and its grace period is over.
    case reused
}

extension PresentedToken {
    /// The state of a genuine cookie token.
    fileprivate func cookieState(_ stored: RefreshLookup, at time: SessionTime) throws(SessionError) -> CookieState {
        if let current = seal.unwrapCookie(stored.refreshWrap, for: token, expiry: stored.ends) {
            guard current.due.map({ time.isPlausible($0) }) ?? true else {
                throw .invalid(.sessionRecordUnreadable)
            }
            return .current(key: current.key, due: current.due)
        }
        guard let sealed = stored.grace, let storedEnd = stored.graceEnd,
            let grace = seal.openCookie(sealed, under: token)
        else { return .reused }
        // The stored one is not authenticated: it ends the grace period earlier, never later than sealed.
        let end = min(storedEnd, grace.end)
        guard time.now < end else { return .reused }
        guard time.isPlausible(grace.end) else { throw .invalid(.sessionRecordUnreadable) }
        let next = grace.replacement.map {
            SessionToken(cookie: $0, lookup: token.lookup, verifier: grace.salt.verifier(stored.verifier))
        }
        let isCurrent = next.map { seal.unwrapCookie(stored.refreshWrap, for: $0, expiry: stored.ends) != nil }
        return .replaced(grace, end: end, next: isCurrent == true ? next : nil)
    }

    /// The rotation to a new cookie token.
    /// - Parameters:
    ///   - current: the session's token: the presented one, or the one that replaced it.
    ///   - grace: what a holder of the current token gets from then on.
    ///   - earlierGracesEnd: when the tokens before it are no longer accepted.
    ///   - record: after a privilege change.
    fileprivate func rotation(
        from current: SessionToken, to next: SessionToken, _ grace: CookieGrace, _ stored: RefreshLookup,
        earlierGracesEnd: Int64, record: [UInt8]?, at time: SessionTime
    ) throws(CryptoError) -> SessionRotation {
        var storedGrace: SessionRotation.Grace?
        if grace.end > time.now {
            storedGrace = SessionRotation.Grace(
                tokenHash: current.tokenHash, end: grace.end, sealed: try seal.seal(grace, under: current))
        }
        return SessionRotation(
            generation: stored.generation, replacedWrap: stored.refreshWrap,
            refreshWrap: try seal.wrap(grace.key, due: nil, for: next, expiry: stored.ends), access: nil,
            grace: storedGrace, lastAddress: lastAddress,
            cookie: SessionRotation.CookieChange(graceEnd: earlierGracesEnd, record: record))
    }
}

extension IssuedCookie {
    fileprivate init(
        _ token: SessionToken, of record: SessionRecord, id: String, claimsVersion: Int64? = nil, at time: SessionTime
    ) {
        self.init(
            token: token.text, lifetime: record.lifetime(at: time),
            session: SessionReference(subject: record.subject, id: id), provider: record.provider,
            proof: record.proof, claimsVersion: claimsVersion)
    }
}
