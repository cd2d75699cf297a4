import MartletCore
import MartletJSON
import MartletProvider
import MartletSessionTesting
import MartletTesting
import Testing

@testable import MartletSession

/// A backend that runs an interruption, once, between a read and the following rotation.
private struct InterruptedSessions: SessionBackend {
    let sessions = MemorySessions()
    let interruption = Box<(@Sendable () async -> Void)?>(nil)
    /// Runs at every lookup of an access token.
    let lookup = Box<(@Sendable () async -> Void)?>(nil)

    func rotate(
        _ sessionKey: SessionKey, _ rotation: SessionRotation, at time: SessionTime
    ) async throws(StoreError) -> SessionRotation.Outcome {
        let action = interruption.withLock { interruption in
            defer { interruption = nil }
            return interruption
        }
        await action?()
        return try await sessions.rotate(sessionKey, rotation, at: time)
    }

    var findsMarks: Bool { false }
    func endAbsent(_ sessionKey: SessionKey) async throws(StoreError) {}
    func insert(_ session: NewSession, at time: SessionTime) async throws(StoreError) -> Insertion {
        try await sessions.insert(session, at: time)
    }

    func lookUpAndTouch(
        _ sessionKey: SessionKey, tokenHash: [UInt8], lastAddress: [UInt8], readsClaims: Bool, at time: SessionTime
    ) async throws(StoreError) -> AccessLookup {
        await lookup.value?()
        return try await sessions.lookUpAndTouch(
            sessionKey, tokenHash: tokenHash, lastAddress: lastAddress, readsClaims: readsClaims, at: time)
    }

    func storeClaims(
        _ claims: StoredClaims, of subject: SubjectKey, at time: SessionTime
    ) async throws(StoreError) -> [UInt64]? { try await sessions.storeClaims(claims, of: subject, at: time) }

    func read(
        _ sessionKey: SessionKey, tokenHash: [UInt8], readsClaims: Bool, at time: SessionTime
    ) async throws(StoreError) -> RefreshLookup? {
        try await sessions.read(sessionKey, tokenHash: tokenHash, readsClaims: readsClaims, at: time)
    }

    func replace(
        _ sessionKey: SessionKey, _ replacement: RecordReplacement, at time: SessionTime
    ) async throws(StoreError) -> RecordReplacement.Outcome {
        let action = interruption.withLock { interruption in
            defer { interruption = nil }
            return interruption
        }
        await action?()
        return try await sessions.replace(sessionKey, replacement, at: time)
    }

    func touch(_ sessionKey: SessionKey, lastAddress: [UInt8], at time: SessionTime) async throws(StoreError) {
        try await sessions.touch(sessionKey, lastAddress: lastAddress, at: time)
    }

    func end(_ sessionKey: SessionKey) async throws(StoreError) -> Bool { try await sessions.end(sessionKey) }

    func find(_ digits: [UInt8]) async throws(StoreError) -> SessionKey? { try await sessions.find(digits) }

    func list(
        _ subject: SubjectKey, from start: SessionPosition?, at time: SessionTime
    ) async throws(StoreError) -> [ListedSession] {
        try await sessions.list(subject, from: start, at: time)
    }

    func end(
        _ selection: SessionSelection, of subject: SubjectKey, at time: SessionTime
    ) async throws(StoreError) -> [UInt64] { try await sessions.end(selection, of: subject, at: time) }
}

@Suite struct SessionLookupTests {
    private static func network(_ last: UInt8) -> ClientNetwork? {
        ClientNetwork(address: [UInt8](repeating: 0, count: 10) + [0xFF, 0xFF, 192, 0, 2, last])
    }

    @Test func `are limited in total and per network`() async throws {
        let backend = InterruptedSessions()
        let bench = SessionBench(backend: backend)
        let token = try await bench.login().accessToken
        let gate = Gate()
        backend.lookup.withLock { $0 = { await gate.pass() } }
        func lookUp(from network: ClientNetwork?) async -> ErrorCode? {
            do {
                _ = try await bench.store.verify(
                    Credential(bearer: token.withBytes { $0 }),
                    in: AuthenticationContext(now: UnixTime(seconds: 0), deadline: .never, client: network))
                return nil
            } catch {
                return error.code
            }
        }
        let rejected = Box(0)
        try await withThrowingTaskGroup(of: Void.self) { group in
            defer { gate.open() }
            for _ in 0..<1600 {
                group.addTask {
                    if await lookUp(from: Self.network(1)) == "session.lookups_full" { rejected.withLock { $0 += 1 } }
                }
            }
            try await eventually("the others wait") { rejected.value == 1600 - 512 - 512 }
            group.addTask { #expect(await lookUp(from: Self.network(2)) == nil) }
            try await eventually("another one waits") { bench.store.lookups.waiting == 512 + 1 }
        }
        #expect(rejected.value == 1600 - 512 - 512 && gate.highest == 512)
        #expect(await lookUp(from: Self.network(1)) == nil)
    }
}

@Suite struct SessionRaceTests {
    private let backend = InterruptedSessions()

    @Test func `the loser of a race gets the winner's pair`() async throws {
        let bench = SessionBench(backend: backend)
        let tokens = try await bench.login()
        let winner = Box<IssuedTokens?>(nil)
        backend.interruption.withLock { interruption in
            interruption = {
                let pair = try? await bench.store.refresh(tokens.refreshToken)
                winner.withLock { $0 = pair }
            }
        }
        let loser = try await bench.store.refresh(tokens.refreshToken)
        #expect(winner.value?.refreshToken.copy == loser.refreshToken.copy)
        #expect(winner.value?.accessToken.copy == loser.accessToken.copy)
        #expect(await bench.rejection(of: loser.accessToken) == nil)
        #expect(await bench.rejection(ofRefreshing: loser.refreshToken) == nil)
    }

    @Test func `a session that ends during a refresh is not restored`() async throws {
        let bench = SessionBench(backend: backend)
        let tokens = try await bench.login()
        backend.interruption.withLock { interruption in
            interruption = { _ = try? await bench.store.end(tokens.session) }
        }
        #expect(await bench.rejection(ofRefreshing: tokens.refreshToken)?.code == .sessionUnknown)
        #expect(backend.sessions.count == 0)
    }

    @Test func `the loser of a race renews the winner's session`() async throws {
        let bench = SessionBench(backend: backend)
        let token = try await bench.login().accessToken
        bench.advance(.seconds(1))
        let proof = bench.proof(acr: "mfa")
        backend.interruption.withLock { interruption in
            interruption = { _ = try? await bench.renew(token, with: bench.proof(acr: nil)) }
        }
        #expect(try await bench.renew(token, with: proof) == proof)
        #expect(try await bench.verify(token).principal.identity.claims["acr"] == .string("mfa"))
    }

    @Test func `a session that ends during a renewal is not restored`() async throws {
        let bench = SessionBench(backend: backend)
        let tokens = try await bench.login()
        backend.interruption.withLock { interruption in
            interruption = { _ = try? await bench.store.end(tokens.session) }
        }
        await #expect(throws: SessionError.self) { try await bench.renew(tokens.accessToken, with: bench.proof()) }
        #expect(backend.sessions.count == 0)
    }

    @Test func `the loser of a race gets the winner's cookie`() async throws {
        let bench = SessionBench(backend: backend)
        let cookie = try await bench.cookieLogin().token
        bench.advance(.seconds(900))
        let winner = Box<Secret?>(nil)
        backend.interruption.withLock { interruption in
            interruption = {
                let next = try? await bench.use(cookie).replacement?.token
                winner.withLock { $0 = next }
            }
        }
        let loser = try #require(try await bench.use(cookie).replacement?.token)
        #expect(winner.value?.copy == loser.copy)
        // The same for its first use.
        backend.interruption.withLock { interruption in
            interruption = { #expect(await bench.rejection(ofCookie: loser) == nil) }
        }
        #expect(try await bench.use(loser).replacement == nil)
        #expect(try await bench.use(loser).cacheLifetime == .seconds(5))
        #expect(bench.revoked.value.isEmpty)
    }

    @Test func `a privilege change during a rotation wins`() async throws {
        let bench = SessionBench(backend: backend)
        let cookie = try await bench.cookieLogin().token
        bench.advance(.seconds(900))
        let issued = Box<Secret?>(nil)
        backend.interruption.withLock { interruption in
            interruption = {
                let next = try? await bench.reissue(cookie).token
                issued.withLock { $0 = next }
            }
        }
        #expect(try await bench.use(cookie).replacement == nil, "it is accepted, and gets no other token")
        let next = try #require(issued.value)
        #expect(await bench.rejection(ofCookie: next) == nil)
    }

    @Test func `a rotation during a privilege change yields to it`() async throws {
        let bench = SessionBench(backend: backend)
        let cookie = try await bench.cookieLogin().token
        bench.advance(.seconds(900))
        let rotated = Box<Secret?>(nil)
        backend.interruption.withLock { interruption in
            interruption = {
                let next = try? await bench.use(cookie).replacement?.token
                rotated.withLock { $0 = next }
            }
        }
        let issued = try await bench.reissue(cookie, renewedBy: bench.proof(acr: "mfa"))
        let old = try #require(rotated.value)
        #expect(try await bench.use(old).replacement == nil)
        #expect(try await bench.use(issued.token).principal.identity.claims["acr"] == .string("mfa"))
        bench.advance(.seconds(30))
        #expect(await bench.rejection(ofCookie: old) == .sessionTokenReused)
    }

    @Test func `a session that ends while its cookie is replaced is not restored`() async throws {
        let bench = SessionBench(backend: backend)
        let cookie = try await bench.cookieLogin()
        bench.advance(.seconds(900))
        backend.interruption.withLock { interruption in
            interruption = { _ = try? await bench.store.end(cookie.session) }
        }
        #expect(await bench.rejection(ofCookie: cookie.token) == .sessionUnknown)
        #expect(backend.sessions.count == 0)
    }

    @Test func `a session that is renewed while it is bound to a key keeps both`() async throws {
        let bench = SessionBench(backend: backend)
        let tokens = try await bench.login()
        let access = Secret(tokens.accessToken.copy)
        backend.interruption.withLock { interruption in
            interruption = { _ = try? await bench.renew(access, with: bench.proof(acr: "mfa")) }
        }
        let thumbprint = "0ZcOCORZNYy-DWpqq30jZyJGHTN0d2HglBV3uiguA4I"
        let bound = try await bench.store.refresh(
            tokens.refreshToken, provenBy: RefreshKey(thumbprint: thumbprint, isRequired: false), from: [],
            reportingReuse: nil)
        let identity = try await bench.verify(bound.accessToken).principal.identity
        #expect(identity.claims["acr"] == "mfa" && identity.binding?.keyThumbprint == thumbprint)
    }

    @Test func `without a grace period the loser of a race reuses the token`() async throws {
        let bench = SessionBench(backend: backend) { $0.refreshReuseGrace = .zero }
        let tokens = try await bench.login()
        backend.interruption.withLock { interruption in
            interruption = { _ = try? await bench.store.refresh(tokens.refreshToken) }
        }
        #expect(await bench.rejection(ofRefreshing: tokens.refreshToken)?.code == .sessionTokenReused)
        #expect(backend.sessions.count == 0)
    }
}
