import Foundation
import MartletCore
import MartletProvider
import MartletRedis
import MartletSession
import MartletSessionTesting
import MartletTesting
import Testing

/// Sessions in Redis that an earlier version wrote.
@Suite(.timeLimit(.minutes(1))) struct `Records of earlier versions` {
    /// What a version left in Redis, as the commands that write it, with the tokens of its session.
    private struct Records: Decodable {
        let at: Int64
        let subject: String
        let access_token: String
        let refresh_token: String
        let spent_refresh_token: String
        let commands: [[Data]]
    }

    private func records(_ name: String) throws -> Records {
        let file = URL(filePath: #filePath).deletingLastPathComponent().appending(path: "Fixtures/\(name)")
        return try JSONDecoder().decode(Records.self, from: Data(contentsOf: file))
    }

    /// A server with the records, at the time they were written.
    private func withRecords(
        _ name: String, _ body: (Records, RedisClient, Box<Int64>) async throws -> Void
    ) async throws {
        let (records, server) = (try records(name), try RedisServer())
        try await withInstances(1, of: server) { clients in
            for command in records.commands { _ = try await clients[0].command(command.map { Array($0) }) }
            try await body(records, clients[0], Box(records.at))
        }
    }

    @Test(arguments: ["records-1.json"])
    func `are read and continued`(name: String) async throws {
        try await withRecords(name) { records, client, clock in
            let bench = SessionBench(backend: client.sessions(), clock: clock)
            let session = try await bench.verify(Secret(records.access_token))
            #expect(session.principal.subject == records.subject && session.principal.provider == "password")
            let listed = try await bench.store.list(subject: records.subject)
            #expect(listed.map(\.client.deviceName) == ["Ada's phone"])
            let again = try await bench.store.refresh(Secret(records.spent_refresh_token))
            #expect(again.refreshToken.text == records.refresh_token)
            #expect(again.accessToken.text == records.access_token)
            // Redis may have deleted the session after this, because it expires by the clock of the server.
            let next = try await bench.store.refresh(Secret(records.refresh_token))
            #expect(next.session.subject == records.subject && next.provider == "password")
        }
    }

    @Test(arguments: ["records-1.json"])
    func `are read under a seal while unsealed ones are accepted`(name: String) async throws {
        try await withRecords(name) { records, client, clock in
            func bench(until end: Int64?) throws -> SessionBench {
                let seal = StoreSeal(
                    keys: [Secret([UInt8](repeating: 1, count: StoreSeal.keyLength))],
                    acceptingUnsealedUntil: end.map { UnixTime(seconds: $0) }, clock: .reading(clock), logger: .silent)
                return SessionBench(
                    backend: RedisSessions(client: client, keyPrefix: "martlet:", seal: seal), clock: clock, seal: seal)
            }
            #expect(try await bench(until: nil).rejection(of: Secret(records.access_token)) == "session.token_unknown")
            let transition = try bench(until: records.at / 1000 + 60)
            #expect(await transition.rejection(of: Secret(records.access_token)) == nil)
            _ = try await transition.store.refresh(Secret(records.refresh_token))
        }
    }
}
