import MartletCore
import MartletJSON
import MartletProvider
import MartletSession
import MartletSessionTesting
import MartletTesting
import Testing

@Suite struct SessionStoreTests {
    @Test func `issues tokens that authenticate the login`() async throws {
        let bench = SessionBench()
        let tokens = try await bench.login()
        #expect(tokens.accessLifetime == .seconds(900) && tokens.refreshLifetime == .seconds(60 * 86_400))
        #expect(tokens.provider == "apple" && tokens.session.subject == "usr_ann")
        let proven = try await bench.verify(tokens.accessToken)
        let principal = proven.principal
        #expect(principal.subject == "usr_ann" && principal.provider == "apple")
        #expect(principal.sessionID == tokens.session.id)
        #expect(tokens.session.id.utf8.count == 36 && tokens.session.id.hasPrefix("ses_"))
        #expect(principal.identity.claims == Identity.ann.claims)
        #expect(principal.identity.providerSubject == "000123.abc")
        #expect(principal.identity.issuer == "https://appleid.apple.com")
        #expect(principal.identity.authTime == Identity.ann.authTime)
        #expect(principal.identity.issuedAt.seconds == 1_800_000_000)
        #expect(principal.identity.expiresAt.seconds == 1_800_000_900)
        #expect(proven.cacheLifetime == .seconds(5))
        #expect(tokens.session.id.dropFirst(4).hasPrefix(String(proven.number, radix: 16)) || proven.number >> 60 == 0)
    }

    @Test func `issues tokens in the documented format`() async throws {
        let bench = SessionBench()
        let tokens = try await bench.login()
        let other = try await bench.login()
        for (token, prefix) in [(tokens.accessToken, "mat_"), (tokens.refreshToken, "mrt_")] {
            #expect(token.text.hasPrefix(prefix) && token.count <= 128)
            #expect(token.copy.allSatisfy { (0x21...0x7E).contains($0) })
        }
        #expect(other.accessToken.copy != tokens.accessToken.copy && other.session != tokens.session)
        #expect("\(tokens.accessToken) \(tokens)".contains("mat_") == false)
    }

    @Test func `expires an access token to the millisecond`() async throws {
        let bench = SessionBench(startingAt: 1_800_000_000_700) { $0.accessTTL = .seconds(2) }
        let tokens = try await bench.login()
        bench.advance(.milliseconds(1999))
        let proven = try await bench.verify(tokens.accessToken)
        #expect(proven.cacheLifetime == .milliseconds(1))
        #expect(proven.principal.identity.expiresAt.seconds == 1_800_000_003)
        bench.advance(.milliseconds(1))
        #expect(await bench.rejection(of: tokens.accessToken) == .sessionTokenExpired)
        #expect(await bench.rejection(ofRefreshing: tokens.refreshToken) == nil)
    }

    @Test func `ends the session at the idle timeout after the last use of either token`() async throws {
        let bench = SessionBench { policy in
            policy.idleTimeout = .seconds(100)
            policy.accessTTL = .seconds(3600)
        }
        let tokens = try await bench.login()
        bench.advance(.seconds(90))
        #expect(await bench.rejection(of: tokens.accessToken) == nil)
        bench.advance(.seconds(90))
        let second = try await bench.store.refresh(tokens.refreshToken)
        bench.advance(.seconds(99))
        #expect(try await bench.verify(second.accessToken).cacheLifetime == .seconds(5))
        bench.advance(.seconds(100))
        #expect(await bench.rejection(of: second.accessToken) == .sessionUnknown)
        #expect(await bench.rejection(ofRefreshing: second.refreshToken)?.code == .sessionUnknown)
        #expect(try await bench.store.list(subject: "usr_ann").isEmpty)
    }

    @Test func `is inspected without counting as used`() async throws {
        let bench = SessionBench { policy in
            policy.idleTimeout = .seconds(100)
            policy.accessTTL = .seconds(3600)
        }
        let tokens = try await bench.login()
        let context = AuthenticationContext(now: UnixTime(seconds: 0), deadline: .never)
        bench.advance(.seconds(90))
        let seen = try await bench.store.inspect(Credential(bearer: tokens.accessToken.copy), in: context)
        #expect(seen.principal.subject == "usr_ann")
        bench.advance(.seconds(10))
        #expect(await bench.rejection(of: tokens.accessToken) == .sessionUnknown)
        do {
            _ = try await bench.store.inspect(Credential(bearer: tokens.accessToken.copy), in: context)
            Issue.record("it has ended")
        } catch {
            #expect(error.code == .sessionUnknown)
        }
    }

    @Test func `ends the session at its absolute expiry despite refreshes`() async throws {
        let bench = SessionBench { policy in
            policy.refreshTTL = .seconds(1000)
            policy.idleTimeout = .seconds(300)
        }
        var tokens = try await bench.login()
        for used in [200, 400, 600, 800] {
            bench.advance(.seconds(200))
            tokens = try await bench.store.refresh(tokens.refreshToken)
            #expect(tokens.refreshLifetime == .seconds(1000 - used))
            #expect(tokens.accessLifetime == .seconds(min(900, 1000 - used)))
        }
        bench.advance(.milliseconds(199_999))
        #expect(await bench.rejection(of: tokens.accessToken) == nil)
        bench.advance(.milliseconds(1))
        #expect(await bench.rejection(of: tokens.accessToken) == .sessionUnknown)
        #expect(await bench.rejection(ofRefreshing: tokens.refreshToken)?.code == .sessionUnknown)
    }

    @Test func `returns the same new pair during the grace period and ends the session after it`() async throws {
        let bench = SessionBench()
        let first = try await bench.login()
        let second = try await bench.store.refresh(first.refreshToken)
        #expect(second.accessToken.copy != first.accessToken.copy)
        #expect(second.refreshToken.copy != first.refreshToken.copy)
        #expect(second.session == first.session)
        bench.advance(.milliseconds(29_999))
        let again = try await bench.store.refresh(first.refreshToken)
        #expect(again.accessToken.copy == second.accessToken.copy)
        #expect(again.refreshToken.copy == second.refreshToken.copy)
        #expect(again.accessLifetime == .milliseconds(870_001))
        #expect(await bench.rejection(of: first.accessToken) == nil, "the old access token lives to its own end")
        #expect(await bench.rejection(of: second.accessToken) == nil)
        bench.advance(.milliseconds(1))
        let reuse = await bench.rejection(ofRefreshing: first.refreshToken)
        #expect(reuse?.code == .sessionTokenReused && reuse?.kind == .invalid)
        for token in [first.accessToken, second.accessToken] {
            #expect(await bench.rejection(of: token) == .sessionUnknown)
        }
        #expect(await bench.rejection(ofRefreshing: second.refreshToken)?.code == .sessionUnknown)
        #expect(bench.revoked.value.count == 1)
    }

    @Test func `keeps each token's pair during concurrent grace periods`() async throws {
        let bench = SessionBench()
        var tokens = [try await bench.login()]
        for _ in 0..<5 {
            bench.advance(.seconds(1))
            tokens.append(try await bench.store.refresh(tokens[tokens.count - 1].refreshToken))
        }
        for index in 0..<5 {
            let again = try await bench.store.refresh(tokens[index].refreshToken)
            #expect(again.refreshToken.copy == tokens[index + 1].refreshToken.copy)
        }
        for pair in tokens { #expect(await bench.rejection(of: pair.accessToken) == nil) }
        #expect(bench.revoked.value.isEmpty)
    }

    @Test func `ends the session at reuse without a grace period`() async throws {
        let bench = SessionBench { $0.refreshReuseGrace = .zero }
        let first = try await bench.login()
        _ = try await bench.store.refresh(first.refreshToken)
        #expect(await bench.rejection(ofRefreshing: first.refreshToken)?.code == .sessionTokenReused)
    }

    @Test func `throttles a flood of rotations`() async throws {
        let bench = SessionBench()
        var tokens = try await bench.login()
        for _ in 0..<16 { tokens = try await bench.store.refresh(tokens.refreshToken) }
        let rejection = await bench.rejection(ofRefreshing: tokens.refreshToken)
        #expect(rejection?.code == .sessionThrottled && rejection?.kind == .throttled)
        bench.advance(.seconds(30))
        tokens = try await bench.store.refresh(tokens.refreshToken)
        #expect(await bench.rejection(of: tokens.accessToken) == nil)
    }

    @Test func `throttles beyond 64 live access tokens`() async throws {
        let bench = SessionBench { $0.refreshReuseGrace = .zero }
        var tokens = try await bench.login()
        for _ in 0..<63 { tokens = try await bench.store.refresh(tokens.refreshToken) }
        #expect(await bench.rejection(ofRefreshing: tokens.refreshToken)?.kind == .throttled)
        bench.advance(.seconds(900))
        #expect(await bench.rejection(ofRefreshing: tokens.refreshToken) == nil)
    }

    @Test func `neither token stands in for the other, and a forged one harms no session`() async throws {
        let bench = SessionBench()
        let tokens = try await bench.login()
        let (access, refresh) = (tokens.accessToken.text.dropFirst(4), tokens.refreshToken.text.dropFirst(4))
        for text in ["mat_\(refresh)", "mat_\(refresh.prefix(75))", "mrt_\(refresh)", "MAT_\(access)", "\(access)", ""]
        {
            #expect(await bench.rejection(of: Secret(text)) != nil)
        }
        // The secret of the access token, followed by an arbitrary MAC.
        let forged = [
            "mrt_\(access)", "mat_\(access)", "mrt_\(access)AAAAAAAAAAA", "mrt_\(access.dropLast())AAAAAAAAAAAA", "",
        ]
        for text in forged {
            #expect(await bench.rejection(ofRefreshing: Secret(text))?.kind == .invalid)
        }
        for index in 0..<tokens.refreshToken.count {
            var changed = tokens.refreshToken.copy
            changed[index] = changed[index] == 0x41 ? 0x42 : 0x41
            #expect(await bench.rejection(ofRefreshing: Secret(changed))?.kind == .invalid)
        }
        for index in 0..<tokens.accessToken.count {
            var changed = tokens.accessToken.copy
            changed[index] = changed[index] == 0x41 ? 0x42 : 0x41
            #expect(await bench.rejection(of: Secret(changed)) != nil)
        }
        #expect(bench.revoked.value.isEmpty)
        #expect(await bench.rejection(of: tokens.accessToken) == nil)
        #expect(await bench.rejection(ofRefreshing: tokens.refreshToken) == nil)
    }

    @Test func `ends the oldest beyond the cap`() async throws {
        let bench = SessionBench { $0.maximumPerSubject = 3 }
        var all: [IssuedTokens] = []
        for _ in 0..<5 {
            all.append(try await bench.login())
            bench.advance(.milliseconds(1))
        }
        let others = try await bench.login("usr_bob")
        for (index, tokens) in all.enumerated() {
            #expect(await bench.rejection(of: tokens.accessToken) == (index < 2 ? .sessionUnknown : nil))
        }
        #expect(await bench.rejection(of: others.accessToken) == nil)
        #expect(try await bench.store.list(subject: "usr_ann").map(\.id) == all[2...].reversed().map(\.session.id))
        #expect(bench.revoked.value.count == 2)
    }

    @Test func `does not count sessions that have ended towards the cap`() async throws {
        let bench = SessionBench { policy in
            policy.maximumPerSubject = 2
            policy.idleTimeout = .seconds(100)
        }
        _ = try await bench.login()
        bench.advance(.seconds(60))
        let second = try await bench.login()
        bench.advance(.seconds(60))
        let third = try await bench.login()
        #expect(await bench.rejection(of: second.accessToken) == nil)
        #expect(await bench.rejection(of: third.accessToken) == nil)
        #expect(bench.revoked.value.isEmpty)
    }

    @Test func `lists a subject's own sessions, newest first`() async throws {
        let bench = SessionBench()
        let first = try await bench.login()
        bench.advance(.seconds(120))
        let second = try await bench.login(provider: "wechat")
        _ = try await bench.login("usr_bob")
        bench.advance(.seconds(120))
        _ = try await bench.verify(first.accessToken)
        let list = try await bench.store.list(subject: "usr_ann")
        #expect(list.map(\.id) == [second.session.id, first.session.id])
        #expect(list.map(\.provider) == ["wechat", "apple"])
        #expect(list.map(\.createdAt.seconds) == [1_800_000_120, 1_800_000_000])
        #expect(list.map(\.lastSeenAt.seconds) == [1_800_000_120, 1_800_000_240])
        #expect(list.map(\.expiresAt.seconds) == [1_805_184_120, 1_805_184_000])
        #expect(try await bench.store.list(subject: "usr_eve").isEmpty)
    }

    @Test func `updates the last use lazily`() async throws {
        let bench = SessionBench()
        let tokens = try await bench.login()
        for (step, seen) in [(60, 0), (1, 61), (60, 61), (1, 122)] {
            bench.advance(.seconds(step))
            _ = try await bench.verify(tokens.accessToken)
            let list = try await bench.store.list(subject: "usr_ann")
            #expect(list.first?.lastSeenAt.seconds == 1_800_000_000 + Int64(seen))
        }
    }

    @Test func `ends one session of the subject and no other`() async throws {
        let bench = SessionBench()
        let (first, second) = (try await bench.login(), try await bench.login())
        let number = try await bench.verify(first.accessToken).number
        #expect(try await !bench.store.end(SessionReference(subject: "usr_bob", id: first.session.id)))
        for id in [
            "", "ses_", first.session.id + "0", "SES_" + first.session.id.dropFirst(4),
            "ses_" + String(repeating: "g", count: 32),
        ] {
            #expect(try await !bench.store.end(SessionReference(subject: "usr_ann", id: id)))
        }
        #expect(try await bench.store.end(first.session))
        #expect(try await !bench.store.end(first.session))
        #expect(await bench.rejection(of: first.accessToken) == .sessionUnknown)
        #expect(await bench.rejection(ofRefreshing: first.refreshToken)?.code == .sessionUnknown)
        #expect(await bench.rejection(of: second.accessToken) == nil)
        #expect(bench.revoked.value == [number])
    }

    @Test func `ends all, all of a provider, or all but one`() async throws {
        let bench = SessionBench()
        func logins() async throws -> [IssuedTokens] {
            [try await bench.login(), try await bench.login(provider: "wechat"), try await bench.login()]
        }
        func live(_ logins: [IssuedTokens]) async -> [Bool] {
            var live: [Bool] = []
            for tokens in logins { live.append(await bench.rejection(of: tokens.accessToken) == nil) }
            return live
        }
        var made = try await logins()
        try await bench.store.endAll(subject: "usr_ann", provider: "apple", except: made[2].session)
        #expect(await live(made) == [false, true, true])
        try await bench.store.endAll(subject: "usr_ann", provider: nil, except: nil)
        #expect(await live(made) == [false, false, false])
        made = try await logins()
        let bob = try await bench.login("usr_bob")
        try await bench.store.endAll(subject: "usr_ann", provider: nil, except: made[1].session)
        #expect(await live(made) == [false, true, false])
        #expect(await live([bob]) == [true])
        try await bench.store.endAll(subject: "usr_ann", provider: "appl", except: nil)
        #expect(await live(made) == [false, true, false])
    }

    @Test func `keeps a policy change from prolonging a session`() async throws {
        let backend = MemorySessions()
        let bench = SessionBench(backend: backend) { $0.refreshTTL = .seconds(1000) }
        let tokens = try await bench.login()
        let later = SessionBench(backend: backend, startingAt: bench.now.value + 1_000_000)
        #expect(await later.rejection(ofRefreshing: tokens.refreshToken)?.code == .sessionUnknown)
        let strict = SessionBench(backend: backend, startingAt: bench.now.value + 20_000) {
            $0.idleTimeout = .seconds(10)
        }
        #expect(await strict.rejection(of: tokens.accessToken) == .sessionUnknown)
    }

    @Test func `rejects claims that exceed the record size`() async throws {
        let bench = SessionBench()
        let huge = Identity(
            providerSubject: "1", issuer: "i", claims: ["c": .string(String(repeating: "x", count: 70_000))],
            authTime: .init(seconds: 0), issuedAt: .init(seconds: 0), expiresAt: .init(seconds: 0))
        let error = await #expect(throws: SessionError.self) {
            try await bench.store.create(
                subject: "s", provider: "p", identity: huge, client: SessionClient())
        }
        #expect(error?.code == .sessionRecordTooLarge)
    }
}
