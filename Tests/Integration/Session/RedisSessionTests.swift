import MartletCore
import MartletJSON
import MartletProvider
import MartletRedis
import MartletSession
import MartletSessionTesting
import MartletTesting
import Testing

@Suite(.timeLimit(.minutes(3))) struct RedisSessionTests {
    @Test func `whatever order things happen in, the rules hold across instances`() async throws {
        let server = try RedisServer()
        try await withInstances(3, of: server, options: patient) { clients in
            var results: [String: Int] = [:]
            for seed in 0..<12 as Range<UInt64> {
                try await clients[0].ask("FLUSHALL")
                var history = SessionHistory(seed: seed, startingAt: hourAhead(), on: clients.map { $0.sessions() })
                try await history.run(steps: 500)
                results.merge(history.results, uniquingKeysWith: +)
            }
            for result in ["verify yes", "refresh yes", "refresh session.token_reused", "verify session.unknown"] {
                #expect(results[result, default: 0] > 10, "\(result)")
            }
        }
    }

    @Test func `200 concurrent refreshes of one token, at four instances, make one pair`() async throws {
        let server = try RedisServer()
        try await withInstances(4, of: server, options: patient) { clients in
            let clock = Box(hourAhead())
            let instances = clients.map { SessionBench(backend: $0.sessions(), clock: clock) }
            let tokens = try await instances[0].login()
            for round in 0..<3 {
                let current = try await chain(tokens, of: round, at: instances[0])
                let pairs = await withTaskGroup(of: [UInt8]?.self) { group in
                    for caller in 0..<200 {
                        group.addTask {
                            guard let new = try? await instances[caller % 4].store.refresh(current.refreshToken) else {
                                return nil
                            }
                            return new.accessToken.copy + new.refreshToken.copy
                        }
                    }
                    return await group.reduce(into: [[UInt8]?]()) { $0.append($1) }
                }
                #expect(pairs.count == 200 && Set(pairs).count == 1 && pairs.first != .some(nil))
            }
            for instance in instances { #expect(await instance.rejection(of: tokens.accessToken) == nil) }
            #expect(instances.allSatisfy { $0.revoked.value.isEmpty })
        }
    }

    @Test func `a renewed session is the same at every instance, and its change is published`() async throws {
        let server = try RedisServer()
        try await withInstances(3, of: server, options: patient) { clients in
            let clock = Box(hourAhead())
            let instances = clients.map { SessionBench(backend: $0.sessions(), clock: clock) }
            let tokens = try await instances[0].login()
            instances[0].advance(.seconds(60))
            let proof = instances[0].proof(acr: "mfa")
            #expect(try await instances[1].renew(tokens.accessToken, with: proof) == proof)
            for instance in instances {
                let identity = try await instance.verify(tokens.accessToken).principal.identity
                #expect(identity.authTime == proof.authTime && identity.claims["acr"]?.string == "mfa")
            }
            let number = try await instances[0].verify(tokens.accessToken).number
            #expect(instances.map(\.changed.value) == [[], [number], []])
            // Of concurrent renewals each either wins or is repeated.
            await withTaskGroup(of: SessionProof?.self) { group in
                for caller in 0..<30 {
                    group.addTask {
                        try? await instances[caller % 3].renew(
                            tokens.accessToken, with: instances[0].proof(acr: "level\(caller)"))
                    }
                }
                for await renewed in group { #expect(renewed == nil || renewed?.authTime == proof.authTime) }
            }
            _ = try await instances[2].store.end(tokens.session)
            await #expect(throws: SessionError.self) { try await instances[0].renew(tokens.accessToken, with: proof) }
            // What is left is the mark of its end.
            let left = try await clients[0].keys().map { String(decoding: $0, as: UTF8.self) }
            #expect(left.count == 1 && left.allSatisfy { $0.contains("}:e:") })
        }
    }

    @Test func `a reader of Redis finds nothing readable and nothing usable`() async throws {
        let server = try RedisServer()
        try await withInstances(1, of: server) { clients in
            let client = clients[0]
            let bench = SessionBench(backend: client.sessions(), startingAt: hourAhead())
            let first = try await bench.login()
            let second = try await bench.store.refresh(first.refreshToken)
            var seen = try await client.keys()
            #expect(seen.count == 3)
            for key in seen {
                seen += try await client.command([Array("HGETALL".utf8), key]).parts
                seen += try await client.command([Array("ZRANGE".utf8), key, [0x30], Array("-1".utf8)]).parts
                for command in ["GET", "DUMP"] {
                    if case .bytes(let value) = try await client.command([Array(command.utf8), key]) {
                        seen.append(value)
                    }
                }
            }
            var planted = ["usr_ann", "apple", "000123.abc", "ann@example.com", "email", "Ann", "claims", "sub"].map {
                Array($0.utf8)
            }
            for token in [first.accessToken, first.refreshToken, second.accessToken, second.refreshToken] {
                let text = token.copy
                let bytes = try #require(Base64URL.decode(text[4...]))
                // Both halves, as bytes, digits and text; a part is as telling as the whole.
                for part in [bytes[8..<24], bytes[24..<40], bytes[40..<56]] {
                    planted += [Array(part), Array(part.map { hexadecimal($0) }.joined().utf8)]
                }
                planted += [Array(text[20..<40]), Array(text[40..<60])]
            }
            for value in seen {
                for secret in planted { #expect(!value.contains(secret), "\(String(decoding: secret, as: UTF8.self))") }
            }
        }
    }

    @Test func `every key has an end, and the hash tag of its subject`() async throws {
        let server = try RedisServer()
        try await withInstances(1, of: server) { clients in
            let client = clients[0]
            let bench = SessionBench(backend: client.sessions(), startingAt: hourAhead()) { policy in
                policy.idleTimeout = .seconds(1000)
                policy.refreshTTL = .seconds(1500)
            }
            let start = bench.now.value
            let tokens = try await bench.login()
            #expect(try await client.ends("s", at: start + 1_000_000))
            #expect(try await client.ends("u", at: start + 1_500_000))
            bench.advance(.seconds(100))
            _ = try await bench.verify(tokens.accessToken)
            #expect(try await client.ends("s", at: start + 1_100_000))
            bench.advance(.seconds(500))
            _ = try await bench.store.refresh(tokens.refreshToken)
            #expect(try await client.ends("s", at: start + 1_500_000))
            #expect(try await client.ends("g", at: start + 630_000))
            let tags = try await client.keys().map { String(decoding: $0.prefix(26), as: UTF8.self) }
            #expect(Set(tags).count == 1 && tags[0].hasPrefix("martlet:{") && tags[0].hasSuffix("}"))
        }
    }

    @Test func `leaves nothing behind when sessions end by themselves`() async throws {
        let server = try RedisServer()
        try await withInstances(1, of: server) { clients in
            let bench = SessionBench(backend: clients[0].sessions(), startingAt: Clock.system.unixMilliseconds) {
                // Redis goes by the true time, so that the refresh below has as long as this on a busy machine.
                $0.refreshTTL = .seconds(12)
                $0.refreshReuseGrace = .seconds(11)
            }
            let tokens = try await bench.login()
            _ = try await bench.store.refresh(tokens.refreshToken)
            try await eventually("the keys are gone", within: .seconds(60)) {
                try await clients[0].ask("DBSIZE") == .integer(0)
            }
            #expect(await bench.rejection(of: tokens.accessToken) == .sessionUnknown)
        }
    }

    @Test func `a login takes little room`() async throws {
        let server = try RedisServer()
        try await withInstances(1, of: server) { clients in
            let client = clients[0]
            let bench = SessionBench(backend: client.sessions(), startingAt: hourAhead())
            func room() async throws -> Int64 {
                var sum: Int64 = 0
                for key in try await client.keys() {
                    let reply = try await client.command([
                        Array("MEMORY".utf8), Array("USAGE".utf8), key, Array("SAMPLES".utf8), [0x30],
                    ])
                    if case .integer(let bytes) = reply { sum += bytes }
                }
                return sum
            }
            let phone = SessionClient(
                deviceName: "Anna\u{2019}s iPhone", userAgent: "App/2.1 CFNetwork/1494.0.7 Darwin/23.4.0",
                address: [UInt8](repeating: 0, count: 10) + [255, 255, 192, 0, 2, 1])
            let tokens = try await bench.login(client: phone)
            #expect(try await room() < 1_536)
            _ = try await bench.verify(tokens.accessToken, from: [UInt8](repeating: 1, count: 16))
            #expect(try await room() < 1_600)
        }
    }

    @Test func `a session that is refreshed for long stays small`() async throws {
        let server = try RedisServer()
        try await withInstances(1, of: server, options: patient) { clients in
            let bench = SessionBench(backend: clients[0].sessions(), startingAt: hourAhead())
            var tokens = try await bench.login()
            for _ in 0..<50 {
                bench.advance(.seconds(800))
                tokens = try await bench.store.refresh(tokens.refreshToken)
            }
            let fields = try await clients[0].fields(of: try await clients[0].key("s")).map { $0.name.prefix(2) }
            let counts = ["a:", "q:"].map { kind in fields.count { $0 == kind } }
            #expect(counts == [2, 1])
            #expect(fields.count < 26)
        }
    }

    @Test func `lists and ends as many sessions as a subject may have`() async throws {
        let server = try RedisServer()
        try await withInstances(1, of: server, options: patient) { clients in
            let bench = SessionBench(backend: clients[0].sessions(), startingAt: hourAhead()) {
                $0.maximumPerSubject = 10_000
            }
            for _ in 0..<510 { _ = try await bench.login() }
            let last = try await bench.login()
            let listed = try await bench.store.list(subject: "usr_ann")
            #expect(listed.count == 500 && listed.first?.id == last.session.id)
            var all: [String] = []
            try await bench.store.forEachSession(of: "usr_ann") { session in
                all.append(session.id)
                return true
            }
            #expect(all.count == 511 && Set(all).count == 511 && all.first == last.session.id)
            let oldest = SessionReference(subject: "usr_ann", id: all.last ?? "")
            #expect(try await bench.store.isLive(oldest))
            try await bench.store.endAll(subject: "usr_ann", provider: "apple", except: last.session)
            #expect(bench.revoked.value.count == 510)
            #expect(try await bench.store.list(subject: "usr_ann").map(\.id) == [last.session.id])
            #expect(clients[0].status.reconnects == 0)
        }
    }

    @Test func `of too many sessions the oldest of the same app ends first`() async throws {
        let server = try RedisServer()
        try await withInstances(1, of: server) { clients in
            let bench = SessionBench(backend: clients[0].sessions(), startingAt: hourAhead()) {
                $0.maximumPerSubject = 3
            }
            let findings = try await bench.findingsOfApps()
            #expect(findings == [])
        }
    }

    @Test func `a verification is one round trip`() async throws {
        let server = try RedisServer()
        try await withInstances(1, of: server) { clients in
            let bench = SessionBench(backend: clients[0].sessions(), startingAt: hourAhead())
            let tokens = try await bench.login()
            for _ in 0..<2 { _ = try await bench.verify(tokens.accessToken) }
            let before = clients[0].status.commands
            for _ in 0..<10 {
                bench.advance(.seconds(61))
                _ = try await bench.verify(tokens.accessToken)
            }
            #expect(clients[0].status.commands == before + 10)
        }
    }

    @Test func `tells the other instances which sessions have ended`() async throws {
        let server = try RedisServer()
        try await withInstances(1, of: server) { clients in
            let bench = SessionBench(backend: clients[0].sessions(), startingAt: hourAhead()) { policy in
                policy.maximumPerSubject = 2
                policy.refreshReuseGrace = .zero
            }
            let heard = Box<[UInt64]>([])
            try await withSubscriber(of: server, channel: RevocationMessage.channel(prefix: "martlet:")) { message in
                heard.withLock { $0 += RevocationMessage.numbers(in: message) ?? [0] }
            } during: {
                let first = try await bench.login()
                bench.advance(.milliseconds(1))
                let second = try await bench.login()
                bench.advance(.milliseconds(1))
                let third = try await bench.login()
                _ = try await bench.store.refresh(second.refreshToken)
                #expect(await bench.rejection(ofRefreshing: second.refreshToken)?.code == .sessionTokenReused)
                #expect(try await bench.store.end(third.session))
                for _ in 0..<2 { _ = try await bench.login() }
                try await bench.store.endAll(subject: "usr_ann", provider: "apple", except: nil)
                let expected = [first, second, third].map { number(of: $0) } + bench.revoked.value[3...]
                #expect(bench.revoked.value == expected && expected.count == 5)
                try await eventually("all are heard of") { heard.value.count >= 5 }
                #expect(heard.value.sorted() == expected.sorted())
            }
        }
    }

    /// The pair after so many refreshes.
    private func chain(_ tokens: IssuedTokens, of length: Int, at bench: SessionBench) async throws -> IssuedTokens {
        var tokens = tokens
        for _ in 0..<length { tokens = try await bench.store.refresh(tokens.refreshToken) }
        return tokens
    }

    private func number(of tokens: IssuedTokens) -> UInt64 {
        UInt64(tokens.session.id.dropFirst(4).prefix(16), radix: 16) ?? 0
    }
}

func hexadecimal(_ byte: UInt8) -> String { String(byte >> 4, radix: 16) + String(byte & 15, radix: 16) }
