import MartletCore
import MartletProvider
import MartletSession
import MartletSessionTesting
import MartletTesting
import Testing

/// A browser, whose requests are late and whose responses are lost, and a thief of its cookie, in simulated time.
@Suite struct CookieTheftTests {
    /// What happens to a browser at some time.
    private enum Event {
        /// The user opens a page.
        case page
        /// A request arrives, with the token that the browser had when it sent it.
        case arrival([UInt8])
        /// A response with a token arrives.
        case response([UInt8])
    }

    @Test(arguments: 0..<24 as Range<UInt64>)
    func `lost and late responses alone never end a session`(seed: UInt64) async throws {
        var generator = SeededGenerator(seed: seed)
        let access = Int64([120, 300, 900].randomElement(using: &generator) ?? 900)
        let loss = [0, 30, 90, 99].randomElement(using: &generator) ?? 0
        let bench = SessionBench { policy in
            policy.accessTTL = .seconds(access)
            policy.refreshTTL = .seconds(3_000 * 86_400)
        }
        var jar = try await bench.cookieLogin().token.copy
        var events: [(at: Int64, event: Event)] = [(bench.now.value, .page)]
        var (used, replaced) = (0, Set<[UInt8]>())
        while used < 2_000, let index = events.indices.min(by: { events[$0].at < events[$1].at }) {
            let (at, event) = events.remove(at: index)
            bench.now.withLock { $0 = max($0, at) }
            switch event {
            case .page:
                // Within the grace period of 30 s: up to 5 s for each request, up to 24 s for its response.
                for _ in 0..<Int.random(in: 1...5, using: &generator) {
                    events.append((at + Int64.random(in: 0...5_000, using: &generator), .arrival(jar)))
                }
                let pause = [1, 20, 60, 400, 10_000, 200_000].randomElement(using: &generator) ?? 1
                events.append((at + Int64.random(in: 0...Int64(pause) * 1_000, using: &generator), .page))
            case .arrival(let token):
                used += 1
                let code = await bench.rejection(ofCookie: Secret(token.map { $0 }))
                try #require(code == nil, "seed \(seed), request \(used)")
                guard let next = try await bench.use(Secret(token.map { $0 })).replacement?.token else { break }
                replaced.insert(next.copy)
                if Int.random(in: 0..<100, using: &generator) >= loss {
                    let delay = Int64.random(in: 0...24_000, using: &generator)
                    events.append((at + delay, .response(next.copy)))
                }
            case .response(let token): jar = token
            }
        }
        #expect(bench.revoked.value.isEmpty && replaced.count > (loss > 90 ? 0 : 5))
    }

    @Test(arguments: 0..<60 as Range<UInt64>)
    func `a thief and a victim who both go on are found within one rotation`(seed: UInt64) async throws {
        var generator = SeededGenerator(seed: seed)
        let loss = [0, 30, 80].randomElement(using: &generator) ?? 0
        let bench = SessionBench { $0.refreshTTL = .seconds(3_000 * 86_400) }
        let login = try await bench.cookieLogin()
        // The victim and the thief, who has a copy of its cookie.
        var jars = [login.token.copy, login.token.copy]
        /// Whoever does not have a token that the other one has used.
        var outdated: Int?
        for _ in 0..<5_000 {
            bench.advance(.seconds(Int.random(in: 31...900, using: &generator)))
            let actor = Int.random(in: 0..<2, using: &generator)
            if outdated == actor {
                #expect(await bench.rejection(ofCookie: Secret(jars[actor].map { $0 })) == .sessionTokenReused)
                #expect(await bench.rejection(ofCookie: Secret(jars[1 - actor].map { $0 })) == .sessionUnknown)
                #expect(bench.reused.value == [login.session] && bench.revoked.value.count == 1)
                return
            }
            // A few requests at a time.
            for _ in 0..<Int.random(in: 1...4, using: &generator) {
                bench.advance(.seconds(1))
                let session = try await bench.use(Secret(jars[actor].map { $0 }))
                if outdated == nil, jars[0] != jars[1], session.replacement == nil { outdated = 1 - actor }
                if let next = session.replacement?.token, Int.random(in: 0..<100, using: &generator) >= loss {
                    jars[actor] = next.copy
                }
            }
        }
        Issue.record("seed \(seed): never found")
    }

    @Test func `a thief alone keeps the session until the victim comes back`() async throws {
        let bench = SessionBench()
        let login = try await bench.cookieLogin()
        var stolen = Secret(login.token.copy)
        for _ in 0..<20 {
            bench.advance(.seconds(901))
            if let next = try await bench.use(stolen).replacement?.token { stolen = next }
            _ = try await bench.use(stolen)
        }
        bench.advance(.seconds(31))
        #expect(await bench.rejection(ofCookie: login.token) == .sessionTokenReused)
        #expect(await bench.rejection(ofCookie: stolen) == .sessionUnknown)
    }

    @Test func `a privilege change locks a thief of the cookie out`() async throws {
        let bench = SessionBench()
        let login = try await bench.cookieLogin()
        let stolen = Secret(login.token.copy)
        bench.advance(.seconds(1_000))
        // The thief has the replacement, too; the victim's password change replaces both.
        let next = try #require(try await bench.use(stolen).replacement?.token)
        let issued = try await bench.reissue(login.token)
        for token in [stolen, next] {
            let session = try await bench.use(token)
            #expect(session.replacement == nil && session.end == bench.now.value + 30_000)
            let error = await #expect(throws: SessionError.self) { try await bench.reissue(token) }
            #expect(error?.code == .sessionTokenExpired)
        }
        #expect(await bench.rejection(ofCookie: issued.token) == nil)
        bench.advance(.seconds(30))
        #expect(await bench.rejection(ofCookie: next) == .sessionTokenReused)
        #expect(bench.reused.value == [login.session])
    }
}
