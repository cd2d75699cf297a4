import MartletCore
import MartletProvider
import MartletSession
import MartletSessionTesting
import MartletTesting
import Testing

@Suite struct SessionReportTests {
    @Test func `a session that may end no other is not created beyond the limit`() async throws {
        let bench = SessionBench { $0.maximumPerSubject = 2 }
        let first = try await bench.login()
        bench.advance(.seconds(1))
        _ = try await bench.login()
        func create() async throws(SessionError) -> IssuedTokens {
            try await bench.store.create(
                subject: "usr_ann", provider: "apple", identity: .ann, client: SessionClient(), evicting: false,
                mark: nil)
        }
        let error = await #expect(throws: SessionError.self) { try await create() }
        #expect(error?.code == .sessionContended)
        #expect(try await bench.store.list(subject: "usr_ann").count == 2 && bench.revoked.value.isEmpty)
        #expect(try await bench.store.end(first.session))
        let second = try await create()
        #expect(await bench.rejection(of: second.accessToken) == nil)
    }

    @Test func `of too many sessions the oldest of the same app ends first`() async throws {
        #expect(try await SessionBench { $0.maximumPerSubject = 3 }.findingsOfApps() == [])
    }

    @Test func `reuse of a refresh token is reported while the session is alive`() async throws {
        let bench = SessionBench { $0.refreshReuseGrace = .zero }
        let tokens = try await bench.login("usr_ann")
        let used = Secret(tokens.refreshToken.copy)
        _ = try await bench.store.refresh(tokens.refreshToken)
        let reported = Box<[SessionReference]>([])
        let wasAlive = Box(false)
        for _ in 0..<2 {
            await #expect(throws: SessionError.self) {
                try await bench.store.refresh(Secret(used.copy), from: []) { session in
                    reported.withLock { $0.append(session) }
                    let live = try? await bench.store.list(subject: "usr_ann").map(\.id)
                    wasAlive.withLock { $0 = live == [session.id] }
                }
            }
        }
        #expect(reported.value == [tokens.session] && wasAlive.value)
        #expect(try await bench.store.list(subject: "usr_ann").isEmpty)
    }

    @Test func `a token that the session did not issue is not reported`() async throws {
        let bench = SessionBench { $0.refreshReuseGrace = .zero }
        let tokens = try await bench.login()
        var forged = tokens.refreshToken.copy
        forged[forged.count - 1] ^= 1
        let token = Secret(forged)
        await #expect(throws: SessionError.self) {
            try await bench.store.refresh(token, from: []) { _ in Issue.record("reported") }
        }
        #expect(try await bench.store.list(subject: "usr_ann").count == 1)
    }
}
