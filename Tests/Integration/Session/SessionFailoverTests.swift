import MartletCore
import MartletRedis
import MartletSession
import MartletSessionTesting
import MartletTesting
import Testing

/// What a master acknowledged, and its successor has never received.
@Suite(.timeLimit(.minutes(2))) struct SessionFailoverTests {
    /// Runs a body while the replicas receive nothing, then kills the master and waits for the next one.
    private func failOver(
        _ servers: RedisSentinelServers, _ clients: [RedisClient], losing body: () async throws -> Void
    ) async throws {
        for replica in servers.replicas { replica.freeze(true) }
        try await body()
        try servers.master.stop()
        for replica in servers.replicas { replica.freeze(false) }
        try await eventually("there is another master", within: .seconds(30)) {
            guard let port = servers.masterPort else { return false }
            return port != servers.master.port
        }
        for client in clients { _ = try await client.recovery(within: .seconds(20)) }
    }

    @Test func `a session that was ended right before stays ended`() async throws {
        let servers = try await onOwnThread { try RedisSentinelServers(replicas: 1, sentinels: 1) }
        try await withInstances(2, of: servers.master, at: servers.url) { clients in
            let clock = Box(Clock.system.unixMilliseconds)
            let instances = clients.map { SessionBench(backend: $0.sessions(), clock: clock) }
            let ended = try await instances[0].login()
            let kept = try await instances[0].login()
            try await Task.sleep(for: .milliseconds(500))
            try await failOver(servers, clients) {
                try await instances[1].store.endSession(withRefreshToken: ended.refreshToken, reporting: nil)
            }
            try await eventually("the end is repeated") { clients[1].status.repeated > 0 }
            try await Task.sleep(for: .milliseconds(200))
            #expect(await instances[0].rejection(of: ended.accessToken) == "session.unknown")
            await #expect(throws: SessionError.self) {
                try await instances[0].store.refresh(ended.refreshToken)
            }
            try await eventually("the store serves") { clients[0].status.state == .connected }
            var code = await instances[0].rejection(of: kept.accessToken)
            // While the new master is busy with its replica.
            if code == "session.store_unavailable" { code = await instances[0].rejection(of: kept.accessToken) }
            #expect(code == nil, "\(String(describing: code))")
        }
    }

    @Test func `a session that was created right before is there again`() async throws {
        let servers = try await onOwnThread { try RedisSentinelServers(replicas: 1, sentinels: 1) }
        try await withInstances(2, of: servers.master, at: servers.url) { clients in
            let clock = Box(Clock.system.unixMilliseconds)
            let instances = clients.map { SessionBench(backend: $0.sessions(), clock: clock) }
            let created = Box<IssuedTokens?>(nil)
            try await failOver(servers, clients) {
                let tokens = try await instances[0].login()
                created.withLock { $0 = tokens }
            }
            let tokens = try #require(created.value)
            try await eventually("the session is there") { await instances[1].rejection(of: tokens.accessToken) == nil }
            #expect(try await instances[1].store.refresh(tokens.refreshToken).accessToken.count > 0)
        }
    }

    @Test func `what was ended is repeated at a server that was restarted`() async throws {
        let server = try RedisServer()
        try await withInstances(1, of: server) { clients in
            let bench = SessionBench(backend: clients[0].sessions(), clock: Box(hourAhead()))
            let tokens = try await bench.login()
            try await bench.store.endSession(withRefreshToken: tokens.refreshToken, reporting: nil)
            try server.stop()
            try await eventually("the server is lost") { clients[0].status.state == .down }
            try server.restart()
            try await eventually("the end is repeated") {
                // The connection of this client may not have been made yet.
                let keys = (try? await clients[0].keys()) ?? []
                return keys.contains { String(decoding: $0, as: UTF8.self).contains("}:e:") }
            }
        }
    }

    @Test func `a session that another instance ended is not brought back`() async throws {
        let servers = try await onOwnThread { try RedisSentinelServers(replicas: 1, sentinels: 1) }
        try await withInstances(2, of: servers.master, at: servers.url) { clients in
            let clock = Box(Clock.system.unixMilliseconds)
            let instances = clients.map { SessionBench(backend: $0.sessions(), clock: clock) }
            let created = Box<IssuedTokens?>(nil)
            try await failOver(servers, clients) {
                let tokens = try await instances[0].login()
                try await instances[1].store.endSession(withRefreshToken: tokens.refreshToken, reporting: nil)
                created.withLock { $0 = tokens }
            }
            try await eventually("both have repeated") { clients.allSatisfy { $0.status.state == .connected } }
            try await Task.sleep(for: .milliseconds(500))
            let tokens = try #require(created.value)
            #expect(await instances[0].rejection(of: tokens.accessToken) == "session.unknown")
        }
    }
}
