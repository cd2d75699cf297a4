import MartletCore
import MartletProvider
import MartletSessionTesting
import MartletTesting
import Testing

@testable import MartletSession

/// Sessions that are bound to a key of their client (RFC 9449).
@Suite struct `Sessions that are bound to a key` {
    private static let ours = "0ZcOCORZNYy-DWpqq30jZyJGHTN0d2HglBV3uiguA4I"
    private static let other = "NzbLsXh8uDCcd-6MNwXF4W_7noWXFZAfHkxZsRGC9Xs"

    private static let decisions: [(String?, String?, Bool, RefreshKey.Decision)] = [
        (nil, nil, false, .keeps), (nil, nil, true, .refused("dpop.missing")),
        (nil, ours, false, .binds(ours)), (nil, ours, true, .binds(ours)),
        (ours, nil, false, .refused("dpop.missing")), (ours, nil, true, .refused("dpop.missing")),
        (ours, ours, false, .keeps), (ours, ours, true, .keeps),
        (ours, other, false, .refused("dpop.wrong_key")), (ours, other, true, .refused("dpop.wrong_key")),
    ]

    @Test(arguments: decisions)
    func `a refresh needs the key of its session`(
        bound: String?, proven: String?, isRequired: Bool, decision: RefreshKey.Decision
    ) {
        #expect(RefreshKey(thumbprint: proven, isRequired: isRequired).decision(forSessionOf: bound) == decision)
    }

    private func binding(_ bench: SessionBench, _ token: Secret) async throws -> String? {
        try await bench.verify(token).principal.identity.binding?.keyThumbprint
    }

    private func rejection(
        _ bench: SessionBench, _ token: Secret, by key: String?, isRequired: Bool = false
    ) async -> SessionError? {
        do throws(SessionError) {
            _ = try await bench.refresh(token, by: key, isRequired: isRequired) { _ in Issue.record("reported") }
            return nil
        } catch {
            return error
        }
    }

    @Test func `a login that proves a key binds the session to it`() async throws {
        let bench = SessionBench()
        let (bound, free) = (try await bench.boundLogin(to: Self.ours), try await bench.login())
        #expect(bound.isBound && !free.isBound)
        #expect(try await binding(bench, bound.accessToken) == Self.ours)
        #expect(try await binding(bench, free.accessToken) == nil)
        let listed = try await bench.store.list(subject: "usr_ann")
        #expect(Set(listed.filter(\.isBound).map(\.id)) == [bound.session.id])
        // Another authentication leaves the binding as it is.
        try await bench.renew(bound.accessToken, with: bench.proof(acr: "mfa"))
        #expect(try await binding(bench, bound.accessToken) == Self.ours)
    }

    @Test func `a session with a cookie is not bound`() async throws {
        let bench = SessionBench()
        let identity = Identity(
            providerSubject: "1", issuer: "i", authTime: UnixTime(seconds: 1), issuedAt: UnixTime(seconds: 1),
            expiresAt: UnixTime(seconds: 2), binding: CredentialBinding(keyThumbprint: Self.ours))
        let cookie = try await bench.store.createCookie(
            subject: "usr_ann", provider: "apple", identity: identity, client: SessionClient(), evicting: true,
            mark: nil)
        #expect(try await bench.use(cookie.token).principal.identity.binding == nil)
    }

    @Test func `a refresh without the key consumes nothing and ends nothing`() async throws {
        let bench = SessionBench()
        let first = try await bench.boundLogin(to: Self.ours)
        for (key, code) in [(nil, "dpop.missing"), (Self.other, "dpop.wrong_key")] as [(String?, ErrorCode)] {
            let error = await rejection(bench, first.refreshToken, by: key)
            #expect(error?.code == code && error?.kind == .unproven)
        }
        let second = try await bench.refresh(first.refreshToken, by: Self.ours)
        #expect(second.isBound)
        #expect(try await binding(bench, second.accessToken) == Self.ours)
        // In its grace period, the used token needs the key, too.
        for key in [nil, Self.other] {
            #expect(await rejection(bench, first.refreshToken, by: key)?.kind == .unproven)
        }
        let again = try await bench.refresh(first.refreshToken, by: Self.ours)
        #expect(again.refreshToken.text == second.refreshToken.text && again.isBound)
        #expect(again.accessToken.text == second.accessToken.text)
        // After that, only who has the key can cause an alarm.
        bench.advance(.seconds(30))
        for key in [nil, Self.other] {
            #expect(await rejection(bench, first.refreshToken, by: key)?.code == .sessionTokenUnknown)
        }
        let third = try await bench.refresh(second.refreshToken, by: Self.ours)
        let reported = Box<[SessionReference]>([])
        await #expect(throws: SessionError.self) {
            try await bench.refresh(first.refreshToken, by: Self.ours) { session in
                reported.withLock { $0.append(session) }
            }
        }
        #expect(reported.value == [first.session])
        #expect(await bench.rejection(of: third.accessToken) == .sessionUnknown)
    }

    @Test func `a refresh with a proof binds a session that was a bearer's`() async throws {
        let bench = SessionBench()
        let first = try await bench.login()
        let error = await rejection(bench, first.refreshToken, by: nil, isRequired: true)
        #expect(error?.code == .sessionProofMissing && error?.kind == .unproven)
        let second = try await bench.refresh(first.refreshToken, by: Self.ours, isRequired: true)
        #expect(second.isBound && second.session == first.session)
        #expect(try await binding(bench, second.accessToken) == Self.ours)
        // The token from before stays a bearer's until it expires.
        #expect(try await binding(bench, first.accessToken) == nil)
        bench.advance(.seconds(20))
        for (key, code) in [(nil, "dpop.missing"), (Self.other, "dpop.wrong_key")] as [(String?, ErrorCode)] {
            #expect(await rejection(bench, first.refreshToken, by: key)?.code == code)
            #expect(await rejection(bench, second.refreshToken, by: key)?.code == code)
        }
        let again = try await bench.refresh(first.refreshToken, by: Self.ours)
        #expect(again.refreshToken.text == second.refreshToken.text)
        bench.advance(.seconds(890))
        #expect(await bench.rejection(of: first.accessToken) == .sessionTokenExpired)
        // It was a bearer's: whoever presents it later holds a copy.
        await #expect(throws: SessionError.self) { try await bench.refresh(first.refreshToken, by: nil) }
        #expect(await bench.rejection(of: second.accessToken) == .sessionUnknown)
    }

    @Test func `a pair of a bearer that is repeated stays the same while its session is bound`() async throws {
        let bench = SessionBench()
        let first = try await bench.login()
        let second = try await bench.refresh(first.refreshToken, by: nil)
        // The proof comes too late for this pair.
        #expect(try await !bench.refresh(first.refreshToken, by: Self.ours, isRequired: true).isBound)
        let third = try await bench.refresh(second.refreshToken, by: Self.ours)
        let again = try await bench.refresh(first.refreshToken, by: Self.ours)
        #expect(again.refreshToken.text == second.refreshToken.text && !again.isBound && third.isBound)
        #expect(try await binding(bench, again.accessToken) == nil)
        #expect(await rejection(bench, first.refreshToken, by: nil)?.code == .sessionProofMissing)
    }

    @Test func `a bound refresh token ends its session without a proof`() async throws {
        let bench = SessionBench()
        let first = try await bench.boundLogin(to: Self.ours)
        let second = try await bench.refresh(first.refreshToken, by: Self.ours)
        bench.advance(.seconds(30))
        // Used, and out of its grace period: without the key, anyone could have made it.
        let error = await #expect(throws: SessionError.self) {
            try await bench.store.endSession(withRefreshToken: Secret(first.refreshToken.copy), reporting: nil)
        }
        #expect(error?.code == .sessionTokenUnknown)
        try await bench.store.endSession(withRefreshToken: second.refreshToken, reporting: nil)
        #expect(await bench.rejection(of: second.accessToken) == .sessionUnknown)
    }

    @Test func `a copy of a session has its binding`() async throws {
        let bench = SessionBench()
        let tokens = try await bench.boundLogin(to: Self.ours)
        let session = try await bench.verify(tokens.accessToken)
        var table = SessionCacheTable(limit: 4)
        table.store(session, for: [1], at: MonotonicTime(nanoseconds: 0), epoch: 0)
        let copy = table.find([1], at: MonotonicTime(nanoseconds: 1))
        #expect(copy?.principal.identity.binding?.keyThumbprint == Self.ours)
    }
}
