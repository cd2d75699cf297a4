import MartletCore
import MartletProvider
import MartletSession
import MartletSessionTesting
import Testing

/// The client and the last address of a session.
@Suite struct SessionClientTests {
    private let home = [UInt8](repeating: 0, count: 10) + [255, 255, 192, 0, 2, 1]
    private let away = [0x20, 0x01, 0x0D, 0xB8] + [UInt8](repeating: 0, count: 11) + [7]

    private func client(_ address: [UInt8]) -> SessionClient {
        SessionClient(deviceName: "Anna\u{2019}s iPhone", userAgent: "App/1.0", address: address)
    }

    @Test func `is listed`() async throws {
        let bench = SessionBench()
        _ = try await bench.login(client: client(home))
        _ = try await bench.login()
        let listed = try await bench.store.list(subject: "usr_ann")
        #expect(listed.map(\.client) == [SessionClient(), client(home)])
        #expect(listed.map(\.lastAddress) == [[], home])
    }

    @Test func `tracks the last address of either token`() async throws {
        let bench = SessionBench()
        let tokens = try await bench.login(client: client(home))
        func last() async throws -> [UInt8]? { try await bench.store.list(subject: "usr_ann").first?.lastAddress }
        _ = try await bench.verify(tokens.accessToken, from: home)
        #expect(try await last() == home)
        _ = try await bench.verify(tokens.accessToken, from: away)
        #expect(try await last() == away)
        _ = try await bench.verify(tokens.accessToken)
        #expect(try await last() == away)
        let next = try await bench.store.refresh(tokens.refreshToken, from: home)
        #expect(try await last() == home)
        // A repeated refresh from another address counts as a use when the last use is stale.
        bench.advance(.seconds(29))
        _ = try await bench.store.refresh(tokens.refreshToken, from: away)
        _ = try await bench.verify(next.accessToken, from: away)
        #expect(try await last() == away)
        #expect(try await bench.store.list(subject: "usr_ann").first?.client == client(home))
    }

    @Test func `is not changed by an expired token`() async throws {
        let bench = SessionBench()
        let tokens = try await bench.login(client: client(home))
        bench.advance(.seconds(900))
        await #expect(throws: AuthenticationError.self) { try await bench.verify(tokens.accessToken, from: away) }
        #expect(try await bench.store.list(subject: "usr_ann").first?.lastAddress == home)
    }
}
