import MartletCore
import MartletJSON
import MartletProvider
import MartletSession
import MartletSessionTesting
import MartletTesting
import Testing

/// Sessions of browsers.
@Suite struct CookieSessionTests {
    @Test(arguments: CookieCase.all) func `follows its rules`(course: CookieCase) async throws {
        try await course.run(on: MemorySessions(), startingAt: 1_800_000_000_123)
    }

    @Test(arguments: [0..<10, 10..<20, 20..<30, 30..<40] as [Range<UInt64>])
    func `whatever order things happen in, the rules hold`(seeds: Range<UInt64>) async throws {
        var results: [String: Int] = [:]
        for seed in seeds {
            let backend = MemorySessions()
            var history = CookieHistory(seed: seed, startingAt: 1_800_000_000_123, on: [backend, backend, backend])
            try await history.run(steps: 800)
            results.merge(history.results, uniquingKeysWith: +)
        }
        let reached = [
            "use yes", "use replaced", "use session.unknown", "use session.token_reused", "reissue yes",
            "reissue session.token_expired", "reissue session.token_reused", "inspect session.token_reused",
        ]
        for result in reached { #expect(results[result, default: 0] > 0, "\(result)") }
    }

    @Test func `has one opaque cookie token, which authenticates the login`() async throws {
        let bench = SessionBench()
        let cookie = try await bench.cookieLogin()
        #expect(cookie.token.text.hasPrefix("mct_") && cookie.token.count == 90)
        #expect(cookie.token.copy.allSatisfy { (0x21...0x7E).contains($0) })
        #expect(cookie.lifetime == .seconds(60 * 86_400) && cookie.provider == "apple")
        #expect(cookie.proof == SessionProof(authTime: Identity.ann.authTime, acr: nil))
        #expect(!"\(cookie)".contains("mct_"))
        let session = try await bench.use(cookie.token)
        #expect(session.principal.subject == "usr_ann" && session.principal.sessionID == cookie.session.id)
        #expect(session.principal.identity.claims == Identity.ann.claims && session.replacement == nil)
    }

    @Test func `is cached until its cookie is due, and its exchanges end with the session`() async throws {
        let bench = SessionBench { $0.idleTimeout = .seconds(50_000) }
        let cookie = try await bench.cookieLogin().token
        let first = try await bench.use(cookie)
        #expect(first.cacheLifetime == .seconds(5) && first.end == bench.now.value + 50_000_000)
        bench.advance(.milliseconds(897_500))
        #expect(try await bench.use(cookie).cacheLifetime == .milliseconds(2_500))
        bench.advance(.milliseconds(2_500))
        let due = try await bench.use(cookie)
        let replacement = try #require(due.replacement)
        #expect(due.cacheLifetime == .zero && replacement.lifetime == .seconds(60 * 86_400 - 900))
        #expect(try await bench.use(cookie).cacheLifetime == .zero)
        #expect(try await bench.use(replacement.token).cacheLifetime == .seconds(5))
        // Exchanges with a token that a privilege change has replaced end with its grace period.
        let issued = try await bench.reissue(replacement.token)
        #expect(try await bench.use(replacement.token).end == bench.now.value + 30_000)
        #expect(try await bench.use(replacement.token).cacheLifetime == .zero)
        #expect(try await bench.use(issued.token).end == bench.now.value + 50_000_000)
    }

    @Test func `counts, is listed and ends like others`() async throws {
        let bench = SessionBench { $0.maximumPerSubject = 2 }
        let client = SessionClient(deviceName: "Firefox", address: [UInt8](repeating: 1, count: 16))
        let first = try await bench.cookieLogin(client: client)
        bench.advance(.seconds(1))
        let tokens = try await bench.login(provider: "wechat")
        bench.advance(.seconds(1))
        #expect(try await bench.store.list(subject: "usr_ann").map(\.id) == [tokens.session.id, first.session.id])
        #expect(try await bench.store.list(subject: "usr_ann").last?.client == client)
        let second = try await bench.cookieLogin()
        #expect(await bench.rejection(ofCookie: first.token) == .sessionUnknown)
        #expect(bench.revoked.value.count == 1)
        let error = await #expect(throws: SessionError.self) {
            try await bench.store.createCookie(
                subject: "usr_ann", provider: "apple", identity: .ann, client: client, evicting: false, mark: nil)
        }
        #expect(error?.code == .sessionContended)
        try await bench.store.endAll(subject: "usr_ann", provider: "apple", except: nil)
        #expect(await bench.rejection(ofCookie: second.token) == .sessionUnknown)
        #expect(await bench.rejection(of: tokens.accessToken) == nil)
    }

    @Test func `has the claims of its account, whichever token is presented`() async throws {
        let bench = SessionBench()
        let cookie = try await bench.cookieLogin().token
        try await bench.store.apply(
            VersionedClaims(version: 1, claims: AccountClaims(account: ["role": "staff"])), to: "usr_ann")
        #expect(bench.changed.value.count == 1)
        bench.advance(.seconds(900))
        var next: Secret?
        for _ in 0..<2 {
            let session = try await bench.use(cookie)
            #expect(session.principal.identity.claims["role"] == "staff")
            next = session.replacement?.token
        }
        for _ in 0..<2 {
            let session = try await bench.use(try #require(next))
            #expect(session.principal.identity.claims["role"] == "staff")
        }
    }

    @Test func `notes its last use and address with every kind of token`() async throws {
        let bench = SessionBench()
        let cookie = try await bench.cookieLogin().token
        func seen() async throws -> (Int64, UInt8?) {
            let listed = try #require(try await bench.store.list(subject: "usr_ann").first)
            return (listed.lastSeenAt.seconds - bench.now.value / 1000, listed.lastAddress.first)
        }
        func use(_ token: Secret, from byte: UInt8) async throws -> Secret? {
            bench.advance(.seconds(900))
            return try await bench.use(token, from: [UInt8](repeating: byte, count: 16)).replacement?.token
        }
        let next = try #require(try await use(cookie, from: 1))
        #expect(try await seen() == (0, 1))
        _ = try await use(cookie, from: 2)
        #expect(try await seen() == (0, 2))
        _ = try await use(next, from: 3)
        #expect(try await seen() == (0, 3))
        bench.advance(.seconds(30))
        _ = try await bench.inspect(next)
        #expect(try await seen() == (-30, 3))
    }

    @Test func `its token is no other token, and none is a cookie`() async throws {
        let bench = SessionBench()
        let (cookie, tokens) = (try await bench.cookieLogin(), try await bench.login())
        let body = cookie.token.text.dropFirst(4)
        for text in ["mct_\(body)", "mat_\(body)", "mat_\(body.prefix(75))", "mrt_\(body)"] {
            #expect(await bench.rejection(of: Secret(text)) != nil)
            #expect(await bench.rejection(ofRefreshing: Secret(text))?.kind == .invalid)
        }
        let (access, refresh) = (tokens.accessToken.text, tokens.refreshToken.text)
        for text in [access, refresh, "mct_\(access.dropFirst(4))", "mct_\(refresh.dropFirst(4))", "mct_\(body)A", ""] {
            #expect(await bench.rejection(ofCookie: Secret(text)) != nil)
            await #expect(throws: SessionError.self) { try await bench.reissue(Secret(text)) }
            await #expect(throws: SessionError.self) {
                try await bench.store.endSession(withCookie: Secret(text), reporting: nil)
            }
        }
        await #expect(throws: SessionError.self) { try await bench.renew(cookie.token, with: bench.proof()) }
        for index in 0..<cookie.token.count {
            var changed = cookie.token.copy
            changed[index] = changed[index] == 0x41 ? 0x42 : 0x41
            #expect(await bench.rejection(ofCookie: Secret(changed)) != nil)
        }
        #expect(await bench.rejection(ofCookie: cookie.token) == nil)
        #expect(await bench.rejection(of: tokens.accessToken) == nil)
        #expect(bench.revoked.value.isEmpty && bench.reused.value.isEmpty)
    }

    @Test(arguments: [false, true])
    func `16 concurrent requests with a token that is due get one replacement`(isFirstUse: Bool) async throws {
        let bench = SessionBench()
        var cookie = try await bench.cookieLogin().token
        bench.advance(.seconds(900))
        if isFirstUse { cookie = try #require(try await bench.use(cookie).replacement?.token) }
        let presented = Secret(cookie.copy)
        let next = await withTaskGroup(of: Result<[UInt8]?, AuthenticationError>.self) { group in
            for _ in 0..<16 {
                group.addTask {
                    do throws(AuthenticationError) {
                        return .success(try await bench.use(presented).replacement?.token.copy)
                    } catch {
                        return .failure(error)
                    }
                }
            }
            return await group.reduce(into: []) { $0.append($1) }
        }
        let tokens = try next.map { try $0.get() }
        #expect(tokens.count == 16 && Set(tokens).count == 1 && (tokens[0] == nil) == isFirstUse)
    }

    @Test func `ends by any token that it has issued, and is reported`() async throws {
        let bench = SessionBench { $0.refreshReuseGrace = .zero }
        for isOld in [false, true] {
            let cookie = try await bench.cookieLogin()
            bench.advance(.seconds(900))
            let next = try #require(try await bench.use(cookie.token).replacement?.token)
            #expect(await bench.rejection(ofCookie: next) == nil)
            let reported = Box<[SessionReference]>([])
            try await bench.store.endSession(withCookie: isOld ? cookie.token : next) { session in
                reported.withLock { $0.append(session) }
            }
            #expect(reported.value == [cookie.session] && bench.reused.value.isEmpty)
            #expect(await bench.rejection(ofCookie: next) == .sessionUnknown)
            let again = await #expect(throws: SessionError.self) {
                try await bench.store.endSession(withCookie: next, reporting: nil)
            }
            #expect(again?.code == .sessionUnknown)
        }
        #expect(bench.revoked.value.count == 2)
    }

    @Test func `reuse is reported while the session is alive`() async throws {
        let wasAlive = Box(false)
        let backend = MemorySessions()
        let now = Box<Int64>(1_800_000_000_000)
        let bench = SessionBench(backend: backend, clock: now)
        let store = SessionStore(
            policy: .sample, backend: backend, clock: .reading(now), readsClaims: true, onRevoked: { _ in },
            onChanged: { _ in },
            onReuse: { session in
                let live = try? await bench.store.isLive(session)
                wasAlive.withLock { $0 = live == true }
            })
        let cookie = try await bench.cookieLogin().token
        bench.advance(.seconds(900))
        let next = try #require(try await bench.use(cookie).replacement?.token)
        _ = try await bench.use(next)
        bench.advance(.seconds(30))
        let context = AuthenticationContext(now: UnixTime(seconds: 0), deadline: .never)
        let error = await #expect(throws: AuthenticationError.self) {
            try await store.verify(Credential(cookie: cookie.copy), in: context)
        }
        #expect(error?.code == .sessionTokenReused && error?.disposition == .rejected && wasAlive.value)
        #expect(await bench.rejection(ofCookie: next) == .sessionUnknown)
    }

    @Test func `is renewed by another authentication, with a new cookie`() async throws {
        let bench = SessionBench()
        let cookie = try await bench.cookieLogin()
        bench.advance(.seconds(600))
        let number = try await bench.use(cookie.token).number
        let issued = try await bench.reissue(cookie.token, renewedBy: bench.proof(acr: "mfa"))
        #expect(issued.proof == bench.proof(acr: "mfa") && issued.session == cookie.session)
        #expect(issued.token.copy != cookie.token.copy && issued.lifetime == .seconds(60 * 86_400 - 600))
        #expect(bench.changed.value == [number] && bench.revoked.value.isEmpty)
        let identity = try await bench.use(issued.token).principal.identity
        #expect(identity.authTime == bench.proof().authTime && identity.claims["acr"] == .string("mfa"))
        // Neither an older proof nor a privilege change without one changes it; the token is replaced all the same.
        let old = SessionProof(authTime: UnixTime(seconds: 1), acr: "low")
        let third = try await bench.reissue(issued.token, renewedBy: old)
        let fourth = try await bench.reissue(third.token)
        #expect(third.proof == issued.proof && fourth.proof == issued.proof)
        #expect(try await bench.use(fourth.token).principal.identity.claims["acr"] == .string("mfa"))
        #expect(bench.changed.value == [number, number, number])
        let future = SessionProof(authTime: UnixTime(seconds: .max), acr: nil)
        #expect(try await bench.reissue(fourth.token, renewedBy: future).proof == bench.proof())
    }

    @Test func `is not rejected when its cookie was replaced too often`() async throws {
        let bench = SessionBench { $0.accessTTL = .seconds(10) }
        var cookie = try await bench.cookieLogin().token
        for _ in 0..<16 { cookie = try await bench.reissue(cookie).token }
        let error = await #expect(throws: SessionError.self) { try await bench.reissue(cookie) }
        #expect(error?.code == .sessionThrottled && error?.kind == .throttled)
        #expect(await bench.rejection(ofCookie: cookie) == nil)
        bench.advance(.seconds(10))
        let session = try await bench.use(cookie)
        #expect(session.replacement == nil && session.cacheLifetime == .zero)
        bench.advance(.seconds(20))
        let next = try #require(try await bench.use(cookie).replacement?.token)
        #expect(await bench.rejection(ofCookie: next) == nil)
    }

    @Test func `keeps what it counts for in memory when its record changes`() async throws {
        let backend = MemorySessions(maximumBytes: 3000)
        let bench = SessionBench(backend: backend)
        var cookie = try await bench.cookieLogin().token
        for _ in 0..<16 { cookie = try await bench.reissue(cookie, renewedBy: bench.proof(acr: "level")).token }
        _ = try await bench.login()
        let error = await #expect(throws: SessionError.self) { try await bench.login() }
        #expect(error?.code == .sessionStoreFull)
    }

    @Test func `is used while the store is unavailable only until its cookie is due`() async throws {
        let backend = OutageSessions()
        let bench = SessionBench(backend: backend) { $0.cacheTTL = .seconds(60) }
        let cached = CachedSessions(bench.store, copies: SessionCache(), clock: .reading(bench.now))
        func use(_ token: Secret) async -> AuthenticationError.Disposition? {
            let context = AuthenticationContext(now: UnixTime(seconds: 0), deadline: .never)
            do {
                _ = try await cached.verify(Credential(cookie: token.copy), in: context)
                return nil
            } catch {
                return error.disposition
            }
        }
        let cookie = try await bench.cookieLogin().token
        bench.advance(.seconds(880))
        #expect(await use(cookie) == nil)
        backend.isDown.withLock { $0 = true }
        bench.advance(.milliseconds(19_999))
        #expect(await use(cookie) == nil)
        bench.advance(.milliseconds(1))
        #expect(await use(cookie) == .unavailable)
        backend.isDown.withLock { $0 = false }
        #expect(await use(cookie) == nil)
        backend.isDown.withLock { $0 = true }
        #expect(await use(cookie) == .unavailable, "a copy would not have the replacement")
        await #expect(throws: SessionError.self) { try await bench.reissue(cookie) }
    }
}

/// A backend that can be unavailable.
private struct OutageSessions: SessionBackend {
    let sessions = MemorySessions()
    let isDown = Box(false)

    private func reach() throws(StoreError) -> MemorySessions {
        if isDown.value { throw StoreError(code: "store.down", message: "down") }
        return sessions
    }

    var findsMarks: Bool { false }
    func endAbsent(_ sessionKey: SessionKey) async throws(StoreError) { try await reach().endAbsent(sessionKey) }
    func insert(_ session: NewSession, at time: SessionTime) async throws(StoreError) -> Insertion {
        try await reach().insert(session, at: time)
    }
    func lookUpAndTouch(
        _ sessionKey: SessionKey, tokenHash: [UInt8], lastAddress: [UInt8], readsClaims: Bool, at time: SessionTime
    ) async throws(StoreError) -> AccessLookup {
        try await reach().lookUpAndTouch(
            sessionKey, tokenHash: tokenHash, lastAddress: lastAddress, readsClaims: readsClaims, at: time)
    }
    func storeClaims(
        _ claims: StoredClaims, of subject: SubjectKey, at time: SessionTime
    ) async throws(StoreError) -> [UInt64]? { try await reach().storeClaims(claims, of: subject, at: time) }
    func read(
        _ sessionKey: SessionKey, tokenHash: [UInt8], readsClaims: Bool, at time: SessionTime
    ) async throws(StoreError) -> RefreshLookup? {
        try await reach().read(sessionKey, tokenHash: tokenHash, readsClaims: readsClaims, at: time)
    }
    func rotate(
        _ sessionKey: SessionKey, _ rotation: SessionRotation, at time: SessionTime
    ) async throws(StoreError) -> SessionRotation.Outcome {
        try await reach().rotate(sessionKey, rotation, at: time)
    }
    func replace(
        _ sessionKey: SessionKey, _ replacement: RecordReplacement, at time: SessionTime
    ) async throws(StoreError) -> RecordReplacement.Outcome {
        try await reach().replace(sessionKey, replacement, at: time)
    }
    func touch(_ sessionKey: SessionKey, lastAddress: [UInt8], at time: SessionTime) async throws(StoreError) {
        try await reach().touch(sessionKey, lastAddress: lastAddress, at: time)
    }
    func end(_ sessionKey: SessionKey) async throws(StoreError) -> Bool { try await reach().end(sessionKey) }
    func find(_ digits: [UInt8]) async throws(StoreError) -> SessionKey? { try await reach().find(digits) }
    func list(
        _ subject: SubjectKey, from start: SessionPosition?, at time: SessionTime
    ) async throws(StoreError) -> [ListedSession] { try await reach().list(subject, from: start, at: time) }
    func end(
        _ selection: SessionSelection, of subject: SubjectKey, at time: SessionTime
    ) async throws(StoreError) -> [UInt64] { try await reach().end(selection, of: subject, at: time) }
}
