import MartletCore
import MartletJSON
import MartletProvider
import MartletSessionTesting
import MartletTesting
import Testing

@testable import MartletSession

@Suite struct SessionClaimsTests {
    private static func claims(_ version: Int64, _ role: String) -> VersionedClaims {
        VersionedClaims(
            version: version,
            claims: AccountClaims(
                account: ["role": .string(role), "name": "Operator's"],
                identities: ["apple": ["email_forwarding": false, "role": "mere identity"], "wechat": ["id": 1]]))
    }

    @Test func `claims of an account win over those of the identity, and these over the provider's`() async throws {
        let bench = SessionBench()
        let apple = try await bench.login()
        let wechat = try await bench.login(provider: "wechat")
        let other = try await bench.login("usr_bob")
        try await bench.store.apply(Self.claims(1, "staff"), to: "usr_ann")
        let own = Identity.ann.claims
        let first = try await bench.verify(apple.accessToken).principal.identity.claims
        #expect(first["role"] == "staff" && first["name"] == "Operator's" && first["email_forwarding"] == false)
        #expect(first["email"] == own["email"] && first["id"] == nil)
        let second = try await bench.verify(wechat.accessToken).principal.identity.claims
        #expect(second["role"] == "staff" && second["id"] == 1 && second["email_forwarding"] == nil)
        #expect(try await bench.verify(other.accessToken).principal.identity.claims == own)
    }

    @Test func `a change names the sessions that it applies to, and older claims change nothing`() async throws {
        let bench = SessionBench()
        let token = try await bench.login().accessToken
        let number = try await bench.verify(token).number
        _ = try await bench.login("usr_bob")
        #expect(try await bench.store.apply(Self.claims(2, "staff"), to: "usr_ann"))
        #expect(bench.changed.value == [number] && bench.revoked.value.isEmpty)
        for version in [1, 2] as [Int64] {
            #expect(try await !bench.store.apply(Self.claims(version, "old"), to: "usr_ann"))
        }
        #expect(bench.changed.value == [number])
        #expect(try await bench.verify(token).principal.identity.claims["role"] == "old")
        try await bench.store.apply(Self.claims(1, "older"), to: "usr_ann")
        #expect(try await bench.verify(token).principal.identity.claims["role"] == "old")
        try await bench.store.apply(VersionedClaims(version: 3, claims: AccountClaims()), to: "usr_ann")
        #expect(try await bench.verify(token).principal.identity.claims == Identity.ann.claims)
        #expect(bench.changed.value == [number, number])
    }

    @Test func `claims apply to later sessions and after a refresh`() async throws {
        let bench = SessionBench()
        try await bench.store.apply(Self.claims(1, "staff"), to: "usr_ann")
        let login = try await bench.login()
        let refreshed = try await bench.store.refresh(login.refreshToken)
        for token in [login.accessToken, refreshed.accessToken] {
            #expect(try await bench.verify(token).principal.identity.claims["role"] == "staff")
        }
    }

    @Test func `a store without accounts does not read them`() async throws {
        let backend = MemorySessions()
        let bench = SessionBench(backend: backend)
        let token = try await bench.login().accessToken
        try await bench.store.apply(Self.claims(1, "staff"), to: "usr_ann")
        let plain = SessionStore(
            policy: .sample, backend: backend, clock: .reading(bench.now), onRevoked: { _ in }, onChanged: { _ in })
        let session = try await plain.verify(
            Credential(bearer: token.copy),
            in: AuthenticationContext(now: UnixTime(seconds: 0), deadline: .never, client: nil))
        #expect(session.principal.identity.claims == Identity.ann.claims)
    }

    @Test func `claims of another subject or another version cannot be opened`() throws {
        let claims = Self.claims(12, "staff")
        let sealed = try ClaimsSeal(subject: "usr_ann").seal(claims)
        #expect(ClaimsSeal(subject: "usr_ann").open(sealed) == claims)
        #expect(sealed.starts(with: Array("12 ".utf8)))
        #expect(ClaimsSeal(subject: "usr_bob").open(sealed) == nil)
        #expect(ClaimsSeal(subject: "usr_ann").open([0x39] + sealed) == nil)
        for length in [0, 1, 3, 20, sealed.count - 1] {
            #expect(ClaimsSeal(subject: "usr_ann").open(Array(sealed.prefix(length))) == nil)
        }
    }

    @Test func `a session whose claims cannot be read is rejected until they are stored again`() async throws {
        let backend = MemorySessions()
        let bench = SessionBench(backend: backend)
        let token = try await bench.login().accessToken
        let time = SessionTime(now: bench.now.value, idle: 1_000_000_000, slack: 0)
        let harmed = StoredClaims(version: 1, bytes: Array("1 nothing sealed".utf8), ends: .max)
        _ = try await backend.storeClaims(harmed, of: SubjectKey("usr_ann"), at: time)
        #expect(await bench.rejection(of: token) == .sessionClaimsUnreadable)
        try await bench.store.apply(Self.claims(1, "staff"), to: "usr_ann")
        #expect(await bench.rejection(of: token) == nil)
    }

    @Test func `a disabled account's sessions are denied, not refreshed, and go on when it is enabled`() async throws {
        let bench = SessionBench()
        let login = try await bench.login()
        let other = try await bench.login("usr_bob")
        let claims = Self.claims(1, "staff")
        try await bench.store.apply(claims, to: "usr_ann")
        try await bench.store.apply(
            VersionedClaims(version: 2, claims: claims.claims, isDisabled: true), to: "usr_ann")
        #expect(bench.changed.value.count == 2 && bench.revoked.value.isEmpty)
        let later = try await bench.login()
        for token in [login.accessToken, later.accessToken] {
            let error = await #expect(throws: AuthenticationError.self) { try await bench.verify(token) }
            #expect(error?.disposition == .denied && error?.code == .accountDisabled)
        }
        for _ in 0..<2 {
            let error = await #expect(throws: SessionError.self) { try await bench.store.refresh(login.refreshToken) }
            #expect(error?.kind == .denied && error?.code == .accountDisabled)
        }
        #expect(await bench.rejection(of: other.accessToken) == nil)

        try await bench.store.apply(VersionedClaims(version: 3, claims: claims.claims), to: "usr_ann")
        #expect(try await bench.verify(login.accessToken).principal.identity.claims["role"] == "staff")
        // The rejected refreshes have used nothing up.
        _ = try await bench.store.refresh(login.refreshToken, from: [])
    }

    @Test func `a pair of tokens is not given out again while the account is disabled`() async throws {
        let bench = SessionBench()
        let login = try await bench.login()
        let first = try await bench.store.refresh(login.refreshToken)
        let disabled = VersionedClaims(version: 1, claims: AccountClaims(), isDisabled: true)
        try await bench.store.apply(disabled, to: "usr_ann")
        let error = await #expect(throws: SessionError.self) { try await bench.store.refresh(login.refreshToken) }
        #expect(error?.kind == .denied)
        try await bench.store.apply(VersionedClaims(version: 2, claims: AccountClaims()), to: "usr_ann")
        let again = try await bench.store.refresh(login.refreshToken)
        #expect(again.accessToken.withBytes { $0 } == first.accessToken.withBytes { $0 })
    }

    @Test func `a session ends by its id alone`() async throws {
        let bench = SessionBench()
        let (first, second) = (try await bench.login(), try await bench.login())
        for id in ["", "ses_", "ses_\(String(repeating: "0", count: 32))", first.session.id.uppercased()] {
            #expect(try await !bench.store.end(sessionID: id), "\(id)")
        }
        #expect(bench.revoked.value.isEmpty)
        #expect(try await bench.store.end(sessionID: first.session.id))
        #expect(bench.revoked.value.count == 1)
        #expect(try await !bench.store.end(sessionID: first.session.id))
        #expect(await bench.rejection(of: first.accessToken) == .sessionUnknown)
        #expect(await bench.rejection(of: second.accessToken) == nil)
    }

    @Test func `the memory store has room for the claims of subjects with sessions`() async throws {
        let backend = MemorySessions(maximumSessions: 3)
        let bench = SessionBench(backend: backend)
        for number in 0..<20 { try await bench.store.apply(Self.claims(1, "staff"), to: "usr_\(number)") }
        let tokens = try await bench.login("usr_99")
        try await bench.store.apply(Self.claims(1, "staff"), to: "usr_99")
        for number in 0..<20 { try await bench.store.apply(Self.claims(1, "staff"), to: "usr_\(number)") }
        #expect(try await bench.verify(tokens.accessToken).principal.identity.claims["role"] == "staff")
    }
}
