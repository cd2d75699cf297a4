package import MartletCore
internal import MartletJSON
package import MartletProvider
package import MartletRedis
package import MartletSession
package import MartletTesting

/// A store of sessions on a clock of the test's own.
package struct SessionBench: Sendable {
    /// The wall clock in milliseconds.
    package let now: Box<Int64>
    package let revoked = Box<[UInt64]>([])
    package let changed = Box<[UInt64]>([])
    /// The sessions that were reported because a replaced cookie was presented.
    package let reused = Box<[SessionReference]>([])
    package let store: SessionStore

    package init(
        backend: any SessionBackend = MemorySessions(), startingAt start: Int64 = 1_800_000_000_000,
        _ adjust: (inout SessionPolicy) -> Void = { _ in }
    ) {
        self.init(backend: backend, clock: Box(start), adjust)
    }

    /// A store on a clock that others use too.
    package init(
        backend: any SessionBackend, clock now: Box<Int64>, seal: StoreSeal? = nil,
        _ adjust: (inout SessionPolicy) -> Void = { _ in }
    ) {
        var policy = SessionPolicy.sample
        adjust(&policy)
        let (revoked, changed, reused) = (revoked, changed, reused)
        self.now = now
        store = SessionStore(
            policy: policy, backend: backend, clock: .reading(now), readsClaims: true, seal: seal,
            onRevoked: { numbers in revoked.withLock { $0 += numbers } },
            onChanged: { numbers in changed.withLock { $0 += numbers } },
            onReuse: { session in reused.withLock { $0.append(session) } })
    }

    /// Lets time pass.
    package func advance(_ span: Duration) { now.withLock { $0 += span.wholeMilliseconds } }

    /// Makes a session.
    package func login(
        _ subject: String = "usr_ann", provider: String = "apple", client: SessionClient = SessionClient()
    ) async throws -> IssuedTokens {
        try await store.create(subject: subject, provider: provider, identity: .ann, client: client)
    }

    /// Makes a session with an app, as its provider names it.
    /// - Parameter evicting: whether it may end others.
    package func login(app: String, evicting: Bool = true) async throws(SessionError) -> IssuedTokens {
        let ann = Identity.ann
        var claims = ann.claims
        claims["app_id"] = .string(app)
        let identity = Identity(
            providerSubject: ann.providerSubject, issuer: ann.issuer, claims: claims, authTime: ann.authTime,
            issuedAt: ann.issuedAt, expiresAt: ann.expiresAt)
        return try await store.create(
            subject: "usr_ann", provider: "wechat", identity: identity, client: SessionClient(), evicting: evicting,
            mark: nil)
    }

    /// Logs in with two apps over a limit of three.
    /// - Returns: what is wrong with the sessions that are left; empty if nothing is.
    package func findingsOfApps() async throws -> [String] {
        var findings: [String] = []
        func expect(_ expected: [IssuedTokens], _ step: String) async throws {
            let live = try await store.list(subject: "usr_ann").map(\.id)
            if Set(live) != Set(expected.map(\.session.id)) { findings.append("\(step): \(live.count) sessions") }
            advance(.seconds(1))
        }
        let phone = try await login(app: "phone")
        var visits: [IssuedTokens] = []
        for number in 1...10 {
            advance(.seconds(1))
            visits.append(try await login(app: "mini"))
            try await expect([phone] + visits.suffix(2), "visit \(number)")
        }
        do throws(SessionError) {
            _ = try await login(app: "mini", evicting: false)
            findings.append("a session over the limit")
        } catch {
            let ids = (error.cause as? SurplusSessions)?.ids
            if ids != [visits[8].session.id] { findings.append("surplus \(ids ?? [])") }
        }
        let desktop = try await login(app: "desktop")
        try await expect(visits.suffix(2) + [desktop], "another app")
        let again = try await login(app: "phone")
        try await expect([visits[9], desktop, again], "the first app again")
        return findings
    }

    /// Makes a session that is bound to a key.
    package func boundLogin(to thumbprint: String) async throws -> IssuedTokens {
        let ann = Identity.ann
        let identity = Identity(
            providerSubject: ann.providerSubject, issuer: ann.issuer, claims: ann.claims, authTime: ann.authTime,
            issuedAt: ann.issuedAt, expiresAt: ann.expiresAt, binding: CredentialBinding(keyThumbprint: thumbprint))
        return try await store.create(
            subject: "usr_ann", provider: "apple", identity: identity, client: SessionClient())
    }

    /// Refreshes with a proof of a key; `nil` is none.
    /// - Parameter report: called before the session ends because of reuse.
    package func refresh(
        _ token: Secret, by thumbprint: String?, isRequired: Bool = false, reporting report: EndReport? = nil
    ) async throws(SessionError) -> IssuedTokens {
        try await store.refresh(
            Secret(token.copy), provenBy: RefreshKey(thumbprint: thumbprint, isRequired: isRequired), from: [],
            reportingReuse: report)
    }

    /// Verifies an access token.
    package func verify(
        _ token: Secret, from address: [UInt8] = []
    ) async throws(AuthenticationError) -> VerifiedSession {
        try await store.verify(
            Credential(bearer: token.copy),
            in: AuthenticationContext(now: UnixTime(seconds: 0), deadline: .never, client: nil, address: address))
    }

    /// A proof of this moment.
    package func proof(acr: String? = nil) -> SessionProof {
        SessionProof(authTime: UnixTime(seconds: now.value / 1000), acr: acr)
    }

    /// Renews the session of an access token.
    @discardableResult
    package func renew(_ token: Secret, with proof: SessionProof) async throws(SessionError) -> SessionProof {
        try await store.renew(Credential(bearer: token.copy), with: proof)
    }

    /// Why the store rejects an access token; `nil` if it accepts it.
    package func rejection(of token: Secret) async -> ErrorCode? {
        do {
            _ = try await verify(token)
            return nil
        } catch {
            return error.code
        }
    }

    /// Why the store rejects a refresh token; `nil` if it accepts it.
    package func rejection(ofRefreshing token: Secret) async -> SessionError? {
        do {
            _ = try await store.refresh(token)
            return nil
        } catch {
            return error
        }
    }
}

extension SessionPolicy {
    /// The policy that tests begin with.
    package static let sample = SessionPolicy(
        accessTTL: .seconds(15 * 60), refreshTTL: .seconds(60 * 86_400), idleTimeout: .seconds(30 * 86_400),
        refreshReuseGrace: .seconds(30), maximumPerSubject: 10, cacheTTL: .seconds(5))
}

extension Clock {
    /// A clock that a test moves.
    package static func reading(_ milliseconds: Box<Int64>) -> Clock {
        Clock(
            unixTime: { UnixTime(seconds: milliseconds.value / 1000) },
            monotonicTime: { MonotonicTime(nanoseconds: milliseconds.value &* 1_000_000) },
            unixMilliseconds: { milliseconds.value })
    }
}

extension Identity {
    /// An identity with claims of several kinds.
    package static var ann: Identity {
        Identity(
            providerSubject: "000123.abc", issuer: "https://appleid.apple.com",
            claims: ["email": "ann@example.com", "email_verified": true, "name": "Ann"],
            authTime: UnixTime(seconds: 1_799_999_990), issuedAt: UnixTime(seconds: 1_799_999_995),
            expiresAt: UnixTime(seconds: 1_800_003_600))
    }
}

extension Secret {
    /// A copy of its own: the secret's storage is wiped with its owner.
    package var copy: [UInt8] { withBytes { $0.map { $0 } } }
    package var text: String { String(decoding: copy, as: UTF8.self) }
}

extension SessionStore {
    /// Exchanges a refresh token from nowhere.
    package func refresh(_ token: Secret) async throws(SessionError) -> IssuedTokens {
        try await refresh(token, from: [])
    }
}
