package import MartletCore
internal import MartletCrypto
package import MartletProvider

/// Sessions by the rules of the contract, wherever they are kept.
///
/// All that is secret happens here; the backend sees sealed values. After a reload a store with the new policy stands
/// on the same backend.
package final class SessionStore: SessionStoring {
    /// What every access token begins with.
    package static let accessPrefix = SessionToken.Kind.access.prefix

    let policy: SessionPolicy
    let backend: any SessionBackend
    /// Anybody may ask about any token: a flood of unknown ones must leave the store to the rest.
    let lookups = FairGate(places: lookupsAtOnce, queue: lookupsWaiting)
    let clock: Clock
    private let onRevoked: @Sendable ([UInt64]) async -> Void

    /// Half of what a connection to Redis takes at once; the rest is for whatever else is asked.
    private static let lookupsAtOnce = 512
    private static let lookupsWaiting = 2048

    /// - Parameters:
    ///   - clock: its wall clock decides about every end; those of instances that share sessions should differ by less than a second.
    ///   - onRevoked: is told the numbers of sessions that this instance has ended; the call that ended them returns after it.
    package init(
        policy: SessionPolicy, backend: any SessionBackend, clock: Clock,
        onRevoked: @escaping @Sendable ([UInt64]) async -> Void
    ) {
        self.policy = policy
        self.backend = backend
        self.clock = clock
        self.onRevoked = onRevoked
    }

    /// Makes a session.
    package func create(
        subject: String, provider: String, identity: Identity, client: SessionClient
    ) async throws(SessionError) -> IssuedTokens {
        let moment = moment()
        let ends = moment.now.later(by: policy.refreshTTL)
        let record = SessionRecord(
            subject: subject, provider: provider, identity: identity, created: moment.now, ends: ends)
        let made: (session: NewSession, tokens: IssuedTokens)
        do {
            made = try make(record, for: client, at: moment)
        } catch let error as CryptoError {
            throw SessionSeal.failure(error)
        } catch {
            throw error as? SessionError ?? SessionError(.sessionCryptoFailed, .unavailable, cause: error)
        }
        await revoked(
            try await asking { () async throws(StoreError) in try await backend.insert(made.session, at: moment) })
        return made.tokens
    }

    private func make(
        _ record: SessionRecord, for client: SessionClient, at moment: SessionMoment
    ) throws -> (NewSession, IssuedTokens) {
        let subject = SubjectPlace(record.subject)
        let lookup = subject.tag + (try RandomBytes.make(SessionToken.lookupLength - subject.tag.count))
        let place = SessionPlace(lookup: lookup)
        let seal = SessionSeal(place)
        let key = Secret(try RandomBytes.make(AES256GCM.keyLength))
        let verifier = try RandomBytes.make(32)
        let tokens = try TokenPair(lookup: lookup, verifier: verifier)
        let accessExpiry = accessExpiry(at: moment, ends: record.ends)
        let listing = SessionListing(
            provider: record.provider, created: record.created, addressKey: seal.addressKey(lookup), client: client)
        let session = NewSession(
            subject: subject, place: place, created: moment.now, ends: record.ends,
            record: try seal.seal(record, with: key), listing: try seal.seal(listing, of: record.subject),
            providerMark: SessionSeal.providerMark(record.provider, of: record.subject), verifier: verifier,
            refreshWrap: try seal.wrap(key, for: tokens.refresh, expiry: record.ends),
            access: AccessWrap(
                mark: tokens.access.mark, expiry: accessExpiry,
                sealed: try seal.wrap(key, for: tokens.access, expiry: accessExpiry)),
            note: try seal.note(client.address, lookup: lookup, isLogin: true).bytes,
            limit: max(policy.maximumPerSubject, 1))
        return (session, tokens.issued(record, id: place.id, accessExpiry: accessExpiry, at: moment))
    }

    func accessExpiry(at moment: SessionMoment, ends: Int64) -> Int64 {
        min(moment.now.later(by: policy.accessTTL), ends)
    }

    /// The rules as they are now.
    func moment() -> SessionMoment {
        let idle = max(policy.idleTimeout.wholeMilliseconds, 1)
        return SessionMoment(now: clock.unixMilliseconds, idle: idle, slack: min(60_000, idle / 20))
    }

    func revoked(_ numbers: [UInt64]) async {
        if !numbers.isEmpty { await onRevoked(numbers) }
    }
}

/// Both tokens of a session.
struct TokenPair {
    let access: SessionToken
    let refresh: SessionToken

    /// A pair that nobody has seen.
    init(lookup: [UInt8], verifier: [UInt8]) throws(CryptoError) {
        self.init(
            lookup: lookup, verifier: verifier, access: Secret(try RandomBytes.make(SessionToken.secretLength)),
            refresh: Secret(try RandomBytes.make(SessionToken.secretLength)))
    }

    init(lookup: [UInt8], verifier: [UInt8], access: Secret, refresh: Secret) {
        self.access = SessionToken(.access, lookup: lookup, secret: access)
        self.refresh = SessionToken(
            .refresh, lookup: lookup, secret: refresh, check: SessionToken.check(of: refresh, verifier: verifier))
    }

    func issued(_ record: SessionRecord, id: String, accessExpiry: Int64, at moment: SessionMoment) -> IssuedTokens {
        IssuedTokens(
            accessToken: access.text, refreshToken: refresh.text,
            accessLifetime: .milliseconds(max(accessExpiry.since(moment.now), 0)),
            refreshLifetime: .milliseconds(max(record.ends.since(moment.now), 0)),
            session: SessionReference(subject: record.subject, id: id), provider: record.provider)
    }
}

extension Int64 {
    /// So much later, saturating.
    func later(by span: Duration) -> Int64 { later(by: span.wholeMilliseconds) }

    func later(by milliseconds: Int64) -> Int64 {
        let (sum, overflow) = addingReportingOverflow(milliseconds)
        return overflow ? .max : sum
    }

    /// How many milliseconds after another instant this one is, saturating.
    func since(_ earlier: Int64) -> Int64 {
        let (difference, overflow) = subtractingReportingOverflow(earlier)
        return overflow ? (self < 0 ? .min : .max) : difference
    }
}
