package import MartletCore
private import MartletCrypto

extension SessionStore {
    /// Losing a race twice takes a store that forgets.
    private static let attempts = 3

    /// Exchanges a refresh token.
    ///
    /// Of any number of callers with one token one makes a new pair, and within the grace all get it. Shown again after that,
    /// the token tells that two parties hold the session, and ends it.
    /// - Parameter address: where it comes from: 16 bytes, or empty.
    package func refresh(_ token: Secret, from address: [UInt8]) async throws(SessionError) -> IssuedTokens {
        guard let token = token.withBytes({ SessionToken($0, kind: .refresh) }) else {
            throw .invalid(.sessionTokenMalformed)
        }
        let attempt = RefreshAttempt(token, from: address)
        for _ in 0..<SessionStore.attempts {
            if let tokens = try await refresh(attempt) { return tokens }
        }
        throw SessionError(.sessionContended, .unavailable)
    }

    /// `nil` when somebody else was faster.
    private func refresh(_ attempt: RefreshAttempt) async throws(SessionError) -> IssuedTokens? {
        let moment = moment()
        let reading = try await asking { () async throws(StoreError) in
            try await backend.read(attempt.place, mark: attempt.mark, at: moment)
        }
        guard let reading else { throw .invalid(.sessionUnknown) }
        // A token that this session never gave out proves nothing, least of all theft.
        guard attempt.token.isGenuine(verifier: reading.verifier) else { throw .invalid(.sessionTokenUnknown) }
        if let key = attempt.seal.unwrap(reading.refreshWrap, for: attempt.token, expiry: reading.ends) {
            return try await rotate(attempt, reading, key: key, at: moment)
        }
        if let pair = reading.grace.flatMap({ attempt.seal.open($0, under: attempt.token) }),
            moment.now < pair.graceEnd
        {
            return try await repeated(pair, attempt, reading, at: moment)
        }
        if try await asking({ () async throws(StoreError) in try await backend.end(attempt.place) }) {
            await revoked([attempt.place.number])
        }
        throw .invalid(.sessionTokenReused)
    }

    private func rotate(
        _ attempt: RefreshAttempt, _ reading: RefreshReading, key: Secret, at moment: SessionMoment
    ) async throws(SessionError) -> IssuedTokens? {
        let record = try attempt.record(reading, key: key, at: moment)
        let expiry = accessExpiry(at: moment, ends: record.ends)
        let tokens: TokenPair
        let rotation: SessionRotation
        do {
            tokens = try TokenPair(lookup: attempt.token.lookup, verifier: reading.verifier)
            let pair = SessionPair(
                access: tokens.access.secret, accessExpiry: expiry, refresh: tokens.refresh.secret, key: key,
                graceEnd: moment.now.later(by: policy.refreshReuseGrace))
            rotation = try attempt.rotation(to: tokens, pair, reading, at: moment)
        } catch {
            throw SessionSeal.failure(error)
        }
        let outcome = try await asking { () async throws(StoreError) in
            try await backend.rotate(attempt.place, rotation, at: moment)
        }
        switch outcome {
        case .done: return tokens.issued(record, id: attempt.place.id, accessExpiry: expiry, at: moment)
        case .lost: return nil
        case .gone: throw .invalid(.sessionUnknown)
        case .throttled: throw SessionError(.sessionThrottled, .throttled)
        }
    }

    /// The pair that the token got when it was first used.
    private func repeated(
        _ pair: SessionPair, _ attempt: RefreshAttempt, _ reading: RefreshReading, at moment: SessionMoment
    ) async throws(SessionError) -> IssuedTokens {
        let record = try attempt.record(reading, key: pair.key, at: moment)
        guard moment.isPlausible(pair.accessExpiry), moment.isPlausible(pair.graceEnd) else {
            throw .invalid(.sessionRecordUnreadable)
        }
        if moment.isWorthNoting(since: reading.lastSeen) {
            try await asking { () async throws(StoreError) in
                try await backend.touch(attempt.place, note: attempt.note, at: moment)
            }
        }
        let tokens = TokenPair(
            lookup: attempt.token.lookup, verifier: reading.verifier, access: pair.access, refresh: pair.refresh)
        return tokens.issued(record, id: attempt.place.id, accessExpiry: pair.accessExpiry, at: moment)
    }

    func asking<Value>(_ question: () async throws(StoreError) -> Value) async throws(SessionError) -> Value {
        do { return try await question() } catch { throw .unavailable(error) }
    }
}

/// A refresh token and what follows from it alone.
private struct RefreshAttempt {
    let token: SessionToken
    let place: SessionPlace
    let seal: SessionSeal
    let mark: [UInt8]
    /// Where it comes from; without it where there are no random bytes.
    let note: [UInt8]

    init(_ token: SessionToken, from address: [UInt8]) {
        self.token = token
        place = SessionPlace(lookup: token.lookup)
        seal = SessionSeal(place)
        mark = token.mark
        note = (try? seal.note(address, lookup: token.lookup))?.bytes ?? []
    }

    /// The record of a session that has not ended.
    func record(
        _ reading: RefreshReading, key: Secret, at moment: SessionMoment
    ) throws(SessionError) -> SessionRecord {
        guard let record = seal.open(reading.record, with: key), record.isPlausible(at: moment) else {
            throw .invalid(.sessionRecordUnreadable)
        }
        guard moment.now < record.ends else { throw .invalid(.sessionUnknown) }
        return record
    }

    func rotation(
        to tokens: TokenPair, _ pair: SessionPair, _ reading: RefreshReading, at moment: SessionMoment
    ) throws(CryptoError) -> SessionRotation {
        var grace: SessionRotation.Grace?
        if pair.graceEnd > moment.now {
            grace = SessionRotation.Grace(mark: mark, end: pair.graceEnd, sealed: try seal.seal(pair, under: token))
        }
        return SessionRotation(
            generation: reading.generation,
            refreshWrap: try seal.wrap(pair.key, for: tokens.refresh, expiry: reading.ends),
            access: AccessWrap(
                mark: tokens.access.mark, expiry: pair.accessExpiry,
                sealed: try seal.wrap(pair.key, for: tokens.access, expiry: pair.accessExpiry)), grace: grace,
            note: note)
    }
}
