import MartletCore
import MartletJSON
import MartletProvider
import MartletRedis
import MartletSessionTesting
import MartletTesting
import Testing

@testable import MartletSession

/// Sessions under the store's seal.
@Suite struct `Sealed sessions` {
    private static let start: Int64 = 1_800_000_000_000

    private let backend = MemorySessions()
    private let clock = Box(Self.start)

    private func seal(_ keys: UInt8..., mode: StoreSeal.Mode = .enforce, until end: Int64? = nil) throws -> StoreSeal {
        try #require(
            StoreSeal(
                keys: keys.map { Secret([UInt8](repeating: $0, count: StoreSeal.keyLength)) }, mode: mode,
                acceptingUnsealedUntil: end.map { UnixTime(seconds: $0) }, clock: .reading(clock), logger: .silent))
    }

    private func bench(_ seal: StoreSeal?) -> SessionBench { SessionBench(backend: backend, clock: clock, seal: seal) }

    private func cookie(_ bench: SessionBench) async throws -> Secret {
        try await bench.store.createCookie(
            subject: "usr_ann", provider: "apple", identity: .ann, client: SessionClient(), evicting: true, mark: nil
        ).token
    }

    private func rejection(ofCookie token: Secret, _ bench: SessionBench) async -> ErrorCode? {
        do {
            _ = try await bench.store.verify(
                Credential(cookie: token.copy),
                in: AuthenticationContext(now: UnixTime(seconds: 0), deadline: .never, client: nil, address: []))
            return nil
        } catch {
            return error.code
        }
    }

    @Test func `go on as before with the key`() async throws {
        let seal = try seal(1)
        let bench = bench(seal)
        var tokens = try await bench.login()
        #expect(await bench.rejection(of: tokens.accessToken) == nil)
        let first = tokens
        tokens = try await bench.store.refresh(tokens.refreshToken)
        // The same pair again within the grace period.
        let again = try await bench.store.refresh(first.refreshToken)
        #expect(again.refreshToken.copy == tokens.refreshToken.copy)
        #expect(try await bench.store.list(subject: "usr_ann").count == 1)
        try await bench.renew(tokens.accessToken, with: bench.proof(acr: "2"))
        #expect(await bench.rejection(of: tokens.accessToken) == nil)
        bench.advance(.seconds(31))
        #expect(await bench.rejection(ofRefreshing: first.refreshToken)?.code == "session.token_reused")
        #expect(await bench.rejection(of: tokens.accessToken) == "session.unknown")
        #expect(seal.failures.counts.values.allSatisfy { $0 == 0 })
    }

    @Test func `of browsers go on as before with the key`() async throws {
        let seal = try seal(1)
        let bench = bench(seal)
        let token = try await cookie(bench)
        #expect(await rejection(ofCookie: token, bench) == nil)
        bench.advance(.seconds(20 * 60))
        #expect(await rejection(ofCookie: token, bench) == nil)
        #expect(await rejection(ofCookie: token, bench) == nil)
        #expect(await rejection(ofCookie: token, self.bench(try self.seal(2))) == "session.token_unknown")
        #expect(await rejection(ofCookie: token, self.bench(try self.seal(2, 1))) == nil)
        #expect(seal.failures.counts.values.allSatisfy { $0 == 0 })
    }

    @Test func `that were planted are rejected and counted`() async throws {
        let seal = try seal(1)
        let (planter, bench) = (bench(nil), bench(seal))
        let tokens = try await planter.login()
        #expect(await planter.rejection(of: tokens.accessToken) == nil)
        #expect(await bench.rejection(of: tokens.accessToken) == "session.token_unknown")
        #expect(seal.failures.counts[.session] == 1)
        #expect(await bench.rejection(ofRefreshing: tokens.refreshToken)?.code == "session.token_unknown")
        #expect(seal.failures.counts[.session] == 2)
        #expect(try await bench.store.list(subject: "usr_ann").isEmpty)
        let planted = try await cookie(planter)
        #expect(await rejection(ofCookie: planted, bench) == "session.token_unknown")
        #expect(try #require(seal.failures.counts[.session]) >= 4)
    }

    @Test func `are rejected and not ended by instances with another key, or none`() async throws {
        let owner = bench(try seal(1))
        let tokens = try await owner.login()
        for other in [bench(nil), bench(try seal(2))] {
            #expect(await other.rejection(of: tokens.accessToken) == "session.token_unknown")
            #expect(await other.rejection(ofRefreshing: tokens.refreshToken)?.code == "session.token_unknown")
        }
        #expect(await owner.rejection(of: tokens.accessToken) == nil)
        _ = try await owner.store.refresh(tokens.refreshToken)
    }

    @Test func `survive a change of keys`() async throws {
        var tokens = try await bench(try seal(1)).login()
        let browser = try await cookie(bench(try seal(1)))
        #expect(await rejection(ofCookie: browser, bench(try seal(1))) == nil)
        for keys in [try seal(1, 2), try seal(2, 1)] {
            let bench = bench(keys)
            #expect(await bench.rejection(of: tokens.accessToken) == nil)
            tokens = try await bench.store.refresh(tokens.refreshToken)
            #expect(await bench.rejection(of: tokens.accessToken) == nil)
            #expect(try await bench.store.list(subject: "usr_ann").count == 2)
            #expect(await rejection(ofCookie: browser, bench) == nil)
            #expect(keys.failures.counts.values.allSatisfy { $0 == 0 })
        }
        // Replaced under the new key, and asked for again under both.
        let changed = bench(try seal(2, 1))
        changed.advance(.seconds(20 * 60))
        #expect(await rejection(ofCookie: browser, changed) == nil)
        #expect(await rejection(ofCookie: browser, bench(try seal(1, 2))) == nil)
    }

    @Test func `from before the seal are accepted until an instant`() async throws {
        var tokens = try await bench(nil).login()
        let browser = try await cookie(bench(nil))
        let seal = try seal(1, until: Self.start / 1000 + 3600)
        let bench = bench(seal)
        #expect(await bench.rejection(of: tokens.accessToken) == nil)
        #expect(await rejection(ofCookie: browser, bench) == nil)
        tokens = try await bench.store.refresh(tokens.refreshToken)
        #expect(await bench.rejection(of: tokens.accessToken) == nil)
        #expect(try await bench.store.list(subject: "usr_ann").count == 2)
        #expect(seal.failures.counts.values.allSatisfy { $0 == 0 })
        bench.advance(.seconds(3601))
        #expect(await bench.rejection(ofRefreshing: tokens.refreshToken)?.code == "session.record_unreadable")
        #expect(try #require(seal.failures.counts[.session]) > 0)
    }

    @Test func `that are only observed are accepted and counted`() async throws {
        let tokens = try await bench(nil).login()
        let seal = try seal(1, mode: .observe)
        let bench = bench(seal)
        #expect(await bench.rejection(of: tokens.accessToken) == nil)
        #expect(try #require(seal.failures.counts[.session]) > 0)
        // What was written while observing holds when it is enforced.
        let sealed = try await bench.login()
        #expect(await self.bench(try self.seal(1)).rejection(of: sealed.accessToken) == nil)
    }

    @Test func `do not get claims that were planted`() async throws {
        let seal = try seal(1)
        let (planter, bench) = (bench(nil), bench(seal))
        let tokens = try await bench.login()
        let claims = VersionedClaims(version: 1, claims: AccountClaims(account: ["role": "admin"]))
        try await planter.store.apply(claims, to: "usr_ann")
        #expect(await bench.rejection(of: tokens.accessToken) == "session.claims_unreadable")
        #expect(seal.failures.counts[.claims] == 1)
        try await bench.store.apply(claims, to: "usr_ann")
        #expect(try await bench.verify(tokens.accessToken).principal.identity.claims["role"]?.string == "admin")
    }
}
