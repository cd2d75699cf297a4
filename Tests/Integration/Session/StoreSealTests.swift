import Foundation
import MartletCore
import MartletProvider
import MartletRedis
import MartletSession
import MartletSessionTesting
import MartletTesting
import Testing

/// A Redis that others may write to, and the instances that share it.
@Suite(.timeLimit(.minutes(3))) struct `The seal of a shared store` {
    private func seal(_ keys: UInt8..., clock: Clock) throws -> StoreSeal {
        try #require(
            StoreSeal(
                keys: keys.map { Secret([UInt8](repeating: $0, count: StoreSeal.keyLength)) }, clock: clock,
                logger: .silent))
    }

    private func bench(_ client: RedisClient, _ seal: StoreSeal?, _ clock: Box<Int64>) -> SessionBench {
        SessionBench(
            backend: RedisSessions(client: client, keyPrefix: "martlet:", seal: seal), clock: clock, seal: seal)
    }

    @Test func `sessions that someone else wrote are none`() async throws {
        let server = try RedisServer()
        try await withInstances(2, of: server) { clients in
            let clock = Box(hourAhead())
            let seal = try seal(1, clock: .reading(clock))
            let (planter, instance) = (bench(clients[0], nil, clock), bench(clients[1], seal, clock))
            let planted = try await planter.login()
            #expect(await instance.rejection(of: planted.accessToken) == "session.token_unknown")
            #expect(await instance.rejection(ofRefreshing: planted.refreshToken)?.code == "session.token_unknown")
            #expect(try await instance.store.list(subject: "usr_ann").isEmpty)
            try await planter.store.endAll(subject: "usr_ann", provider: nil, except: nil)

            // The fields of a planted session in the place of a genuine one's.
            let genuine = try await instance.login("usr_bob")
            let key = try await clients[0].key("s")
            let fields = try await clients[0].fields(of: key)
            let other = try await planter.login("usr_eve")
            let keys = try await clients[0].keys().filter {
                $0 != key && String(decoding: $0, as: UTF8.self).contains("}:s")
            }
            for field in try await clients[0].fields(of: try #require(keys.first)) {
                try await clients[0].set(field.name, to: field.value, of: key)
            }
            #expect(await instance.rejection(of: genuine.accessToken) == "session.record_unreadable")
            #expect(await instance.rejection(of: other.accessToken) == "session.token_unknown")
            for field in fields { try await clients[0].set(field.name, to: field.value, of: key) }
            #expect(await instance.rejection(of: genuine.accessToken) == nil)
            #expect(try #require(seal.failures.counts[.session]) >= 4)
        }
    }

    @Test func `a session lives no longer than its sealed times, whatever the numbers beside them say`() async throws {
        let server = try RedisServer()
        try await withInstances(1, of: server) { clients in
            let clock = Box(Clock.system.unixMilliseconds)
            let seal = try seal(1, clock: .reading(clock))
            let instance = bench(clients[0], seal, clock)
            let tokens = try await instance.login()
            let key = try await clients[0].key("s")
            let far = Array(String(clock.value + 400 * 86_400_000).utf8)
            for name in ["x", "s"] { try await clients[0].set(name, to: far, of: key) }
            _ = try await clients[0].command([Array("PERSIST".utf8), key])
            #expect(await instance.rejection(of: tokens.accessToken) == nil)
            #expect(await instance.rejection(ofRefreshing: tokens.refreshToken)?.kind == .invalid)
            instance.advance(.seconds(61 * 86_400))
            #expect(await instance.rejection(of: tokens.accessToken) != nil)
        }
    }

    @Test func `keys change while sessions are in use`() async throws {
        let server = try RedisServer()
        try await withInstances(2, of: server) { clients in
            let clock = Box(hourAhead())
            func instance(_ index: Int, _ keys: StoreSeal) -> SessionBench { bench(clients[index], keys, clock) }
            let time = Clock.reading(clock)
            var tokens = try await instance(0, try seal(1, clock: time)).login()
            // Known everywhere, then used everywhere; each step at one instance before the other.
            let steps = [
                (try seal(1, 2, clock: time), try seal(1, clock: time)),
                (try seal(1, 2, clock: time), try seal(1, 2, clock: time)),
                (try seal(2, 1, clock: time), try seal(1, 2, clock: time)),
                (try seal(2, 1, clock: time), try seal(2, 1, clock: time)),
            ]
            for (first, second) in steps {
                for (index, keys) in [first, second].enumerated() {
                    let bench = instance(index, keys)
                    #expect(await bench.rejection(of: tokens.accessToken) == nil)
                    tokens = try await bench.store.refresh(tokens.refreshToken)
                }
                for (index, keys) in [first, second].enumerated() {
                    #expect(await instance(index, keys).rejection(of: tokens.accessToken) == nil)
                    #expect(keys.failures.counts.values.allSatisfy { $0 == 0 })
                }
            }
            let young = try await instance(0, try seal(2, 1, clock: time)).login("usr_bob")
            let changed = instance(1, try seal(2, clock: time))
            #expect(await changed.rejection(of: young.accessToken) == nil)
            #expect(await changed.rejection(of: tokens.accessToken) != nil)
        }
    }

    @Test func `what ends is published under the seal, whichever script ends it`() async throws {
        let server = try RedisServer()
        try await withInstances(1, of: server) { clients in
            let clock = Box(hourAhead())
            let (seal, channel) = (try seal(1, clock: .reading(clock)), Array("martlet:revoked".utf8))
            let instance = SessionBench(
                backend: RedisSessions(client: clients[0], keyPrefix: "martlet:", seal: seal), clock: clock, seal: seal
            ) { $0.maximumPerSubject = 2 }
            let (ended, unverified) = (Box<[UInt64]>([]), Box(0))
            try await withSubscriber(of: server, channel: "martlet:revoked") { published in
                guard let message = seal.open(message: published, on: channel) else {
                    return unverified.withLock { $0 += 1 }
                }
                ended.withLock { $0 += RevocationMessage.numbers(in: message) ?? [] }
            } during: {
                // By eviction, by one's own token, all of them.
                for _ in 0..<3 { _ = try await instance.login() }
                let last = try await instance.login()
                try await instance.store.endSession(withRefreshToken: last.refreshToken, reporting: nil)
                try await instance.store.endAll(subject: "usr_ann", provider: nil, except: nil)
                try await eventually("four sessions have ended") { ended.value.count >= 4 }
                #expect(Set(ended.value) == Set(instance.revoked.value) && unverified.value == 0)
            }
        }
    }

    @Test func `ends nothing where publishing is not permitted`() async throws {
        let server = try RedisServer()
        try await withInstances(1, of: server) { clients in
            let clock = Box(hourAhead())
            let instance = bench(clients[0], try seal(1, clock: .reading(clock)), clock)
            let tokens = try await instance.login()
            _ = try server.command("ACL SETUSER default resetchannels")
            await #expect(throws: SessionError.self) { try await instance.store.end(tokens.session) }
            await #expect(throws: SessionError.self) {
                try await instance.store.endSession(withRefreshToken: tokens.refreshToken, reporting: nil)
            }
            _ = try server.command("ACL SETUSER default allchannels")
            #expect(await instance.rejection(of: tokens.accessToken) == nil)
        }
    }

    @Test func `values of Redis are sealed`() async throws {
        let server = try RedisServer()
        try await withInstances(1, of: server) { clients in
            let seal = try seal(1, clock: .system)
            let store = SealedStore(clients[0], seal: seal).partition(.keys, for: .gateway)
            try await store.set([7], for: "martlet:k", lifetime: .seconds(60))
            guard case .found(let value) = await store.value(for: "martlet:k") else { throw TestFailure("lost") }
            #expect(value == [7])
            try await clients[0].set([7], for: "martlet:k", lifetime: .seconds(60))
            guard case .miss = await store.value(for: "martlet:k") else { throw TestFailure("planted") }
            #expect(try await store.setIfAbsent([8], for: "martlet:k", lifetime: .seconds(60)))
            #expect(seal.failures.counts[.key] == 2)
        }
    }
}

/// Gateways with `store.seal`.
@Suite(.timeLimit(.minutes(3))) struct `A gateway with a sealed store` {
    private static func config(_ apple: AppleFixture, _ redis: RedisServer, seal: String) -> GatewayConfig {
        var config = GatewayConfig(
            endpoints: ["builtin:echo"], providers: apple.provider(),
            routes: "- { name: closed, match: { path: /** }, auth: { providers: [apple] }, upstream: api }")
        config.more = "store: { url: \"\(redis.url)\", seal: \(seal) }\njwks: { ttl: 1h, fetch_timeout: 1s }\n"
        return config
    }

    @Test func `keygen writes a key that only its owner may read, and replaces none`() throws {
        let folder = try TemporaryFolder()
        let path = folder.file("store.key")
        let made = try run(try Executable.martlet(), ["keygen", "store", "--out", path])
        #expect(made.ending == .exited(0) && made.output.isEmpty, "\(made)")
        let text = try String(contentsOfFile: path, encoding: .utf8)
        #expect(Data(base64Encoded: text.trimmingCharacters(in: .newlines))?.count == 32)
        let mode = try FileManager.default.attributesOfItem(atPath: path)[.posixPermissions] as? Int
        #expect(mode == 0o600)
        let again = try run(try Executable.martlet(), ["keygen", "store", "--out", path])
        #expect(again.ending == .exited(78) && again.errorOutput.contains("the file exists"), "\(again)")
        #expect(try String(contentsOfFile: path, encoding: .utf8) == text)
        let printed = try run(try Executable.martlet(), ["keygen", "store"])
        #expect(Data(base64Encoded: printed.output.trimmingCharacters(in: .newlines))?.count == 32)
        #expect(
            try run(try Executable.martlet(), ["keygen", "shop"]).errorOutput.contains("one of accounts, store"))
    }

    @Test func `check warns of a store on the network without a seal`() throws {
        let apple = try AppleFixture()
        let redis = try RedisServer()
        let folder = try TemporaryFolder()
        _ = try run(try Executable.martlet(), ["keygen", "store", "--out", folder.file("store.key")])
        for (url, seal, warns) in [
            ("redis://redis.internal", "", true), ("redis://127.0.0.1", "", false), ("redis://localhost", "", false),
            ("redis+unix:///run/redis.sock", "", false), ("redis+sentinel://10.0.0.1/m", "", true),
            ("redis+cluster://10.0.0.1", "", true),
            ("redis://redis.internal", ", seal: { key_file: store.key }", false),
            ("redis://redis.internal", ", seal: { key_file: store.key, mode: observe }", false),
        ] {
            var config = Self.config(apple, redis, seal: "{}")
            config.more = "store: { url: \"\(url)\"\(seal) }\n"
            let result = try run(
                try Executable.martlet(), ["check", "--config", try folder.write(config.text, to: "config.yaml")])
            #expect(result.ending == .exited(0), "\(result)")
            #expect(result.description.contains("there is no 'seal'") == warns, "\(url): \(result)")
            #expect(result.description.contains("'seal' only observes") == seal.contains("observe"), "\(result)")
        }
    }

    @Test(arguments: [false, true])
    func `does not use keys that someone planted`(isSealed: Bool) throws {
        let (apple, redis) = (try AppleFixture(), try RedisServer())
        let keys = try TemporaryFolder()
        _ = try run(try Executable.martlet(), ["keygen", "store", "--out", keys.file("store.key")])
        var config = Self.config(apple, redis, seal: "{ key_file: \"\(keys.file("store.key"))\" }")
        if !isSealed {
            config.more = config.more.replacing(", seal: { key_file: \"\(keys.file("store.key"))\" }", with: "")
        }
        var name = ""
        try withMartlet(config.text) { gateway in
            #expect(try gateway.get("/x", bearer(apple.token())).status == 200)
            // Written once the request has what it waited for.
            try waitUntil("the keys are in the store") {
                let names = try redis.command("KEYS martlet:jwks:*").split(separator: "\r\n")
                name = String(names.first { $0.hasPrefix("martlet:jwks:") && $0.count { $0 == ":" } == 2 } ?? "")
                return !name.isEmpty
            }
        }
        // The issuer is down, so that nothing corrects the record.
        apple.stop()
        let attacker = try SigningKey("attacker")
        let document = String(decoding: try AppleFixture.document([attacker]), as: UTF8.self)
        let record = "martlet-jwks-1 \(Int(Date().timeIntervalSince1970))\n\(document)"
        let words = ["SET", name, record].map { "$\($0.utf8.count)\r\n\($0)" }.joined(separator: "\r\n")
        #expect(try redis.command("*3\r\n\(words)") == "+OK\r\n")
        let forged = try Token(kid: attacker.identifier, subject: "anyone").signed(by: attacker)
        try withMartlet(config.text) { gateway in
            let response = try gateway.get("/x", bearer(forged))
            guard isSealed else { return #expect(response.status == 200, "the planted record is a good one") }
            expectUnavailable(response)
            let page = try gateway.askAdmin("/metrics").text
            #expect(page.contains("martlet_store_bad_seal_total{kind=\"key\"} "))
            #expect(!page.contains("martlet_store_bad_seal_total{kind=\"key\"} 0\n"))
        }
    }

    @Test func `drops forged messages, and reloads its keys`() throws {
        let (apple, redis) = (try AppleFixture(), try RedisServer())
        let keys = try TemporaryFolder()
        for name in ["old", "new"] {
            _ = try run(try Executable.martlet(), ["keygen", "store", "--out", keys.file(name)])
        }
        var config = Self.config(apple, redis, seal: "{ key_file: \"\(keys.file("old"))\" }")
        config.listen = "- address: 127.0.0.1:\(try refusedPort())"
        config.admin = "address: 127.0.0.1:\(try refusedPort())"
        try withMartlet(config.text) { gateway in
            let body = Array("{\"identity_token\":\"\(try apple.token())\"}".utf8)
            let json = [("Content-Type", "application/json")]
            let tokens = try Tokens(gateway.exchange("POST", "/auth/login/apple", json, body: body))
            #expect(try gateway.get("/x", bearer(tokens.access)).status == 200)
            for message in ["0123456789abcdef", "verdicts", "changed:0123456789abcdef"] {
                _ = try redis.command("PUBLISH martlet:revoked \(message)")
            }
            try waitUntil("the messages are counted") {
                try gateway.askAdmin("/metrics").text.contains("martlet_store_bad_seal_total{kind=\"message\"} 3\n")
            }
            #expect(gateway.everything.contains("store.bad_seal"))
            var next = config
            next.more = next.more.replacing(
                "key_file: \"\(keys.file("old"))\"",
                with: "key_files: [\"\(keys.file("new"))\", \"\(keys.file("old"))\"]")
            try gateway.reload(next.text)
            try waitUntil("reloaded") { gateway.everything.contains("configuration reloaded") }
            #expect(try gateway.get("/x", bearer(tokens.access)).status == 200)
            let refresh = Array("{\"refresh_token\":\"\(tokens.refresh)\"}".utf8)
            let renewed = try Tokens(gateway.exchange("POST", "/auth/refresh", json, body: refresh))
            #expect(try gateway.get("/x", bearer(renewed.access)).status == 200)
        }
    }
}
