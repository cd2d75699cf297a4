import MartletCore
import MartletSession
import MartletSessionTesting
import MartletTesting
import Testing

@Suite struct MemorySessionsTests {
    @Test func `rejects logins when it is full, and accepts them when sessions have ended`() async throws {
        let backend = MemorySessions(maximumSessions: 20)
        let bench = SessionBench(backend: backend) { policy in
            policy.maximumPerSubject = 2
            policy.idleTimeout = .seconds(100)
        }
        var all: [IssuedTokens] = []
        for number in 0..<20 { all.append(try await bench.login("usr_\(number / 2)")) }
        let error = await #expect(throws: SessionError.self) { try await bench.login("usr_new") }
        #expect(error?.code == .sessionStoreFull && error?.kind == .unavailable)
        #expect(backend.count == 20 && bench.revoked.value.isEmpty)
        _ = try await bench.login("usr_0")
        #expect(backend.count == 20 && bench.revoked.value.count == 1, "one for one")
        bench.advance(.seconds(100))
        _ = try await bench.login("usr_new")
        #expect(backend.count == 1)
    }

    @Test func `counts bytes too`() async throws {
        let bench = SessionBench(backend: MemorySessions(maximumBytes: 3000))
        for _ in 0..<2 { _ = try await bench.login() }
        let error = await #expect(throws: SessionError.self) { try await bench.login() }
        #expect(error?.code == .sessionStoreFull)
    }

    @Test func `200 concurrent refreshes of one token return one pair`() async throws {
        let bench = SessionBench()
        let tokens = try await bench.login()
        let pairs = await withTaskGroup(of: [UInt8]?.self) { group in
            for _ in 0..<200 {
                group.addTask { try? await bench.store.refresh(tokens.refreshToken).refreshToken.copy }
            }
            return await group.reduce(into: [[UInt8]?]()) { $0.append($1) }
        }
        #expect(pairs.count == 200 && Set(pairs).count == 1 && pairs.first != .some(nil))
    }
}
