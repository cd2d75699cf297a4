package import MartletCore
internal import MartletCrypto
package import MartletProvider
package import MartletRedis

/// Creates, verifies, refreshes and ends sessions on any backend.
///
/// All cryptography happens here; the backend sees sealed values only. A reload creates a store with the new policy on
/// the same backend.
package final class SessionStore: SessionStoring {
    /// The prefix of every access token.
    package static let accessPrefix = SessionToken.Kind.access.prefix

    let policy: SessionPolicy
    let backend: any SessionBackend
    /// Limits concurrent lookups: any client can send any token, and a flood of unknown ones must not starve the
    /// others.
    let lookups = FairSemaphore(.sessionLookups, permits: lookupsAtOnce)
    let clock: Clock
    /// Whether subjects have accounts: their claims are read with a session, and a session that ends because its refresh
    /// token is reused can be reported.
    let readsClaims: Bool
    /// The keys of the store's seal.
    let sealing: SessionSealing
    private let onRevoked: @Sendable ([UInt64]) async -> Void
    private let onChanged: @Sendable ([UInt64]) async -> Void
    let onReuse: EndReport?

    /// Half of the pipeline of the Redis connection; the rest is for other commands.
    private static let lookupsAtOnce = 512

    /// - Parameters:
    ///   - clock: its wall clock determines every expiry; the clocks of instances that share sessions should agree to
    ///     the second.
    ///   - readsClaims: whether subjects have accounts, whose claims are added to those of their sessions.
    ///   - seal: of the store that the backend uses; `nil` without `store.seal`.
    ///   - onRevoked: receives the revocation IDs of sessions that this instance ended; awaited before the call that
    ///     ended them returns.
    ///   - onChanged: the same for sessions that this instance has changed and that go on.
    ///   - onReuse: called before a session ends because a replaced cookie token was presented after its grace period;
    ///     requires `readsClaims`.
    package init(
        policy: SessionPolicy, backend: any SessionBackend, clock: Clock, readsClaims: Bool = false,
        seal: StoreSeal? = nil,
        onRevoked: @escaping @Sendable ([UInt64]) async -> Void,
        onChanged: @escaping @Sendable ([UInt64]) async -> Void, onReuse: EndReport? = nil
    ) {
        (self.policy, self.backend, self.clock, self.readsClaims) = (policy, backend, clock, readsClaims)
        sealing = SessionSealing(seal)
        (self.onRevoked, self.onChanged, self.onReuse) = (onRevoked, onChanged, onReuse)
    }

    package var findsMarks: Bool { backend.findsMarks }

    /// Creates a session.
    package func create(
        subject: String, provider: String, identity: Identity, client: SessionClient, evicting: Bool,
        mark: ChangeMark?
    ) async throws(SessionError) -> IssuedTokens {
        let made = try await insert(
            subject: subject, provider: provider, identity: identity, client: client, evicting: evicting,
            hasCookie: false, mark: mark)
        return made.tokens.issued(
            made.record, id: made.id, accessExpiry: made.accessExpiry, claimsVersion: made.claimsVersion, at: made.time)
    }

    /// Makes and inserts a session.
    /// - Parameter hasCookie: whether it has a cookie token instead of an access and a refresh token.
    func insert(
        subject: String, provider: String, identity: Identity, client: SessionClient, evicting: Bool, hasCookie: Bool,
        mark: ChangeMark?
    ) async throws(SessionError) -> MadeSession {
        let time = currentTime()
        let ends = time.now.later(by: policy.refreshTTL)
        let record = SessionRecord(
            subject: subject, provider: provider, identity: identity, created: time.now, ends: ends,
            // A browser has no key of its own.
            isBindable: !hasCookie)
        var made: (session: NewSession, made: MadeSession)
        do {
            let application = SessionApplication.hash(
                of: identity, provider: provider, isBrowser: hasCookie, subject: subject)
            made = try make(
                record, for: client, of: application, evicting: evicting, hasCookie: hasCookie, mark: mark, at: time)
        } catch {
            throw error as? SessionError ?? SessionError(.sessionCryptoFailed, .unavailable, cause: error)
        }
        let session = made.session
        switch try await fromStore(await backend.insert(session, at: time)) {
        case .inserted(let ended, let claimsVersion):
            made.made.claimsVersion = claimsVersion
            await revoked(ended)
            return made.made
        case .full(let surplus):
            let ids = surplus.map { SessionKey.id(of: $0) }
            throw SessionError(.sessionContended, .unavailable, cause: SurplusSessions(ids: ids))
        case .overtaken:
            // Whether a change overtook the login is not known then.
            guard let mark, mark.number >= 0 else { throw SessionError(.sessionContended, .unavailable) }
            throw .invalid(.sessionOvertaken)
        }
    }

    private func make(
        _ record: SessionRecord, for client: SessionClient, of application: [UInt8], evicting: Bool, hasCookie: Bool,
        mark: ChangeMark?, at time: SessionTime
    ) throws -> (NewSession, MadeSession) {
        let subject = SubjectKey(record.subject)
        let lookup = subject.tag + (try RandomBytes.make(SessionToken.lookupLength - subject.tag.count))
        let sessionKey = SessionKey(lookup: lookup)
        let seal = SessionSeal(sessionKey, sealing)
        let key = Secret(try RandomBytes.make(SessionSeal.recordKeyLength))
        let verifier = try RandomBytes.make(SessionToken.verifierLength)
        let tokens =
            hasCookie
            ? TokenPair(cookie: try .newCookie(lookup: lookup, verifier: seal.verifier(verifier)))
            : try TokenPair(lookup: lookup, verifier: seal.verifier(verifier), boundTo: record.keyThumbprint)
        let accessExpiry = accessExpiry(at: time, ends: record.ends)
        let listing = SessionListing(
            provider: record.provider, created: record.created, addressKey: seal.addressKey(lookup), client: client,
            isBound: record.keyThumbprint != nil)
        let session = NewSession(
            subject: subject, sessionKey: sessionKey, created: time.now, ends: record.ends,
            record: try seal.seal(record, with: key), listing: try seal.seal(listing, of: record.subject),
            providerHash: SessionSeal.providerHash(record.provider, of: record.subject),
            applicationHash: application, verifier: verifier,
            refreshWrap: hasCookie
                ? try seal.wrap(key, due: accessExpiry, for: tokens.refresh, expiry: record.ends)
                : try seal.wrap(key, for: tokens.refresh, expiry: record.ends),
            access: AccessWrap(
                tokenHash: tokens.access.tokenHash, expiry: accessExpiry,
                sealed: try seal.wrap(
                    key, for: tokens.access, expiry: accessExpiry, isBound: record.keyThumbprint != nil)),
            lastAddress: try seal.sealedAddress(client.address, lookup: lookup, isLogin: true).bytes,
            owner: readsClaims ? try seal.seal(owner: record.subject, lookup: lookup) : [],
            limit: max(policy.maximumPerSubject, 1), evicts: evicting, mark: mark, readsClaims: readsClaims)
        let made = MadeSession(
            record: record, id: sessionKey.id, tokens: tokens, accessExpiry: accessExpiry, time: time)
        return (session, made)
    }

    func accessExpiry(at time: SessionTime, ends: Int64) -> Int64 {
        min(time.now.later(by: policy.accessTTL), ends)
    }

    /// The current time with the timeouts of the policy.
    func currentTime() -> SessionTime {
        let idle = max(policy.idleTimeout.wholeMilliseconds, 1)
        return SessionTime(now: clock.unixMilliseconds, idle: idle, slack: min(60_000, idle / 20))
    }

    func revoked(_ ids: [UInt64]) async { if !ids.isEmpty { await onRevoked(ids) } }

    func changed(_ ids: [UInt64]) async { await onChanged(ids) }

    /// What the backend returns; its errors are outages.
    func fromStore<Value>(
        _ value: @autoclosure () async throws(StoreError) -> Value
    ) async throws(SessionError) -> Value {
        do { return try await value() } catch { throw .unavailable(error) }
    }

    /// The result of the first of three attempts that no concurrent one has overtaken.
    ///
    /// An attempt that loses a race finds what the winner has stored; further ones cover a store that lost writes.
    func uncontended<Value>(
        _ attempt: @autoclosure () async throws(SessionError) -> Value?
    ) async throws(SessionError) -> Value {
        for _ in 0..<3 {
            if let value = try await attempt() { return value }
        }
        throw SessionError(.sessionContended, .unavailable)
    }
}

/// What is made with random bytes and keys.
func sealed<Value>(_ value: @autoclosure () throws(CryptoError) -> Value) throws(SessionError) -> Value {
    do { return try value() } catch { throw SessionError(.sessionCryptoFailed, .unavailable, cause: error) }
}

/// A session that was inserted, with what its owner gets.
struct MadeSession {
    let record: SessionRecord
    let id: String
    let tokens: TokenPair
    let accessExpiry: Int64
    let time: SessionTime
    /// The version of the account's claims in the store, if they are stored.
    var claimsVersion: Int64?
}

/// The access token and the refresh token of a session; its cookie token is both.
struct TokenPair {
    let access: SessionToken
    let refresh: SessionToken
    private let isBound: Bool

    /// A new random pair.
    /// - Parameter thumbprint: of the key that it is bound to.
    init(lookup: [UInt8], verifier: [UInt8], boundTo thumbprint: String? = nil) throws(CryptoError) {
        self.init(
            lookup: lookup, verifier: verifier, access: Secret(try RandomBytes.make(SessionToken.secretLength)),
            refresh: Secret(try RandomBytes.make(SessionToken.secretLength)), boundTo: thumbprint)
    }

    init(cookie: SessionToken) {
        access = cookie
        refresh = cookie
        isBound = false
    }

    init(lookup: [UInt8], verifier: [UInt8], access: Secret, refresh: Secret, boundTo thumbprint: String? = nil) {
        isBound = thumbprint != nil
        self.access = SessionToken(.access, lookup: lookup, secret: access)
        self.refresh = SessionToken(
            .refresh, lookup: lookup, secret: refresh,
            check: SessionToken.check(of: refresh, verifier: verifier, boundTo: thumbprint))
    }

    func issued(
        _ record: SessionRecord, id: String, accessExpiry: Int64, claimsVersion: Int64?, at time: SessionTime
    ) -> IssuedTokens {
        IssuedTokens(
            accessToken: access.text, refreshToken: refresh.text,
            accessLifetime: .milliseconds(max(accessExpiry.since(time.now), 0)),
            refreshLifetime: record.lifetime(at: time),
            session: SessionReference(subject: record.subject, id: id), provider: record.provider,
            claimsVersion: claimsVersion, isBound: isBound)
    }
}

extension Int64 {
    /// Adds a duration in milliseconds, saturating.
    func later(by span: Duration) -> Int64 { later(by: span.wholeMilliseconds) }

    func later(by milliseconds: Int64) -> Int64 {
        let (sum, overflow) = addingReportingOverflow(milliseconds)
        return overflow ? .max : sum
    }

    /// The difference to an earlier time in milliseconds, saturating.
    func since(_ earlier: Int64) -> Int64 {
        let (difference, overflow) = subtractingReportingOverflow(earlier)
        return overflow ? (self < 0 ? .min : .max) : difference
    }
}
