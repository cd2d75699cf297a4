import MartletCore
import MartletProvider
import MartletTesting
import Testing

@testable import WeChatProvider

@Suite struct `WeChat codes` {
    private static let token = `WeChat exchange`.token

    private static func bench(
        _ weChat: ScriptedWeChat = ScriptedWeChat(), time: Time = Time(), store: (any SharedStoring)? = nil
    ) throws -> Bench {
        weChat.respond(token, .json(`WeChat exchange`.tokenResponse(#","unionid":"U_1""#)))
        return try Bench("profile: false", weChat: weChat, time: time, store: store)
    }

    @Test(arguments: [
        "", "a b", "a&b=c", "a%26", "a#", "a/b", "a.b", "a+b", "é", "a\n", "a\0", String(repeating: "a", count: 129),
    ])
    func `what is not written as a code is rejected and not sent`(code: String) async throws {
        let bench = try Self.bench()
        let error = try #require(await bench.failure("ios", code))
        #expect(error.code == "wechat.bad_code")
        #expect(error.disposition == .rejected)
        #expect(bench.weChat.calls.isEmpty)
    }

    @Test(arguments: ["0", "aZ_-9", String(repeating: "a", count: 128)])
    func `what is written as a code is sent`(code: String) async throws {
        #expect(try await Self.bench().signIn("ios", code).identity.providerSubject == "u:U_1")
    }

    @Test func `the same request gets the same result for ten seconds, and is rejected from then on`() async throws {
        let bench = try Self.bench()
        let first = try await bench.signIn("ios", "c1")
        bench.time.advance(.milliseconds(9_900))
        let second = try await bench.signIn("ios", "c1")
        #expect(second.identity.providerSubject == first.identity.providerSubject)
        #expect(second.identity.claims == first.identity.claims)
        #expect(second.identity.authTime == first.identity.authTime)
        #expect(second.aliases == first.aliases)
        for wait in [Duration.milliseconds(100), .seconds(600), .seconds(280)] {
            bench.time.advance(wait)
            let error = try #require(await bench.failure("ios", "c1"))
            #expect(error.code == "wechat.code_reused")
            #expect(error.disposition == .rejected)
        }
        #expect(bench.weChat.calls.count == 1)
    }

    @Test(
        arguments: [
            (ScriptedWeChat.Reply.json(#"{"errcode":40029}"#), "wechat.upstream_bad_code"),
            (.json(#"{"errcode":50002}"#), "wechat.upstream_limited_user"),
            (.json(#"{"errcode":45011}"#), "wechat.upstream_rate"),
            (.failure("fetch.timeout"), "wechat.upstream_unreachable"),
        ] as [(ScriptedWeChat.Reply, ErrorCode)])
    func `an error is repeated, and the code is not sent again`(
        reply: ScriptedWeChat.Reply, code: ErrorCode
    ) async throws {
        let bench = try Self.bench()
        bench.weChat.respond(Self.token, reply)
        let first = try #require(await bench.failure("ios", "c1"))
        bench.weChat.respond(Self.token, .json(`WeChat exchange`.tokenResponse()))
        let second = try #require(await bench.failure("ios", "c1"))
        #expect(first.code == code)
        #expect(second.code == code)
        #expect(second.disposition == first.disposition)
        #expect(second.retryAfter == first.retryAfter)
        bench.time.advance(.seconds(11))
        #expect(await bench.failure("ios", "c1")?.code == "wechat.code_reused")
        #expect(bench.weChat.calls.count == 1)
    }

    @Test func `another instance returns the same result`() async throws {
        let (time, weChat) = (Time(), ScriptedWeChat())
        let store = MemoryStore(clock: time.clock)
        let benches = try (0..<2).map { _ in try Self.bench(weChat, time: time, store: store) }
        let first = try await benches[0].signIn("ios", "c1")
        #expect(try await benches[1].signIn("ios", "c1").identity.claims == first.identity.claims)
        #expect(weChat.calls.count == 1)
    }

    @Test func `one code of two apps is two codes`() async throws {
        let bench = try Self.bench()
        _ = try await bench.signIn("ios", "c1")
        #expect(await bench.failure("web", "c1")?.code == "wechat.scope_missing")
        #expect(bench.weChat.calls.count == 2)
    }

    @Test func `concurrent requests send the code once and get one result`() async throws {
        let bench = try Self.bench()
        let arrived = Box(0)
        bench.weChat.hold {
            arrived.withLock { $0 += 1 }
            // The first completes when the others have polled for its outcome a few times.
            for _ in 0..<200 { await Task.yield() }
        }
        let subjects = await withTaskGroup(of: String?.self) { group in
            for _ in 0..<20 {
                group.addTask { try? await bench.signIn("ios", "c1").identity.providerSubject }
            }
            return await group.reduce(into: []) { $0.append($1) }
        }
        #expect(subjects.count == 20)
        #expect(arrived.value == 1)
        #expect(bench.weChat.calls.count == 1)
        // Time passes only by sleeping here: a request that ran out of it has no result, but none was rejected.
        #expect(subjects.contains("u:U_1"))
    }

    @Test func `a different request for a code in flight is rejected immediately`() async throws {
        let bench = try Self.bench()
        bench.weChat.respond("/sns/jscode2session", .json(#"{"openid":"o","session_key":"AAECAwQFBgcICQoLDA0ODw=="}"#))
        let failure = Box<ErrorCode?>(nil)
        bench.weChat.hold {
            let error = await bench.failure("mini", "c1", ["raw_data": "{}", "signature": "00"])
            failure.withLock { $0 = error?.code }
        }
        _ = try await bench.signIn("mini", "c1")
        #expect(failure.value == "wechat.code_reused")
    }

    @Test func `a duplicate waits until its deadline, and then fails with an unknown outcome`() async throws {
        let bench = try Self.bench()
        let duplicate = Box<AuthenticationError?>(nil)
        bench.weChat.hold {
            let error = await bench.failure("ios", "c1")
            duplicate.withLock { $0 = error }
        }
        _ = try await bench.signIn("ios", "c1")
        #expect(duplicate.value?.code == "wechat.outcome_unknown")
        #expect(duplicate.value?.disposition == .unavailable)
        #expect(bench.weChat.calls.count == 1)
    }

    @Test func `a client that disconnects and retries gets its result`() async throws {
        let bench = try Self.bench()
        let task = Box<Task<Void, Never>?>(nil)
        bench.weChat.hold { task.value?.cancel() }
        let first = Task { _ = try? await bench.signIn("ios", "c1") }
        task.withLock { $0 = first }
        await first.value
        #expect(try await bench.signIn("ios", "c1").identity.providerSubject == "u:U_1")
        #expect(bench.weChat.calls.count == 1)
    }

    @Test func `a code is sent by a call that is never repeated, a profile by one that may be`() async throws {
        let weChat = ScriptedWeChat()
        let bench = try Bench(weChat: weChat)
        weChat.respond(Self.token, .json(`WeChat exchange`.tokenResponse()))
        weChat.respond("/sns/userinfo", .json(#"{"openid":"o-1"}"#))
        weChat.respond("/sns/jscode2session", .json(#"{"openid":"o","session_key":"AAECAwQFBgcICQoLDA0ODw=="}"#))
        for app in ["ios", "page", "mini"] { _ = await bench.failure(app, "c1") }
        _ = await bench.failure("web", "c1")
        let sent = Set(weChat.calls.map { "\($0.isRepeatable) \(ScriptedWeChat.path(of: $0.url))" })
        #expect(sent == ["false \(Self.token)", "false /sns/jscode2session", "true /sns/userinfo"])
    }

    @Test func `a code that cannot be sent yet stays good`() async throws {
        let bench = try Self.bench()
        bench.weChat.isFull = true
        let error = try #require(await bench.failure("ios", "c1"))
        #expect(error.code == "wechat.overloaded" && error.disposition == .unavailable)
        #expect(bench.weChat.calls.isEmpty)
        bench.weChat.isFull = false
        let first = try await bench.signIn("ios", "c1")
        // An identical request needs no call.
        bench.weChat.isFull = true
        #expect(try await bench.signIn("ios", "c1").identity.claims == first.identity.claims)
    }

    @Test func `a flood for one application leaves capacity for another`() async throws {
        let weChat = ScriptedWeChat()
        let bench = try Self.bench(weChat)
        weChat.respond("/sns/jscode2session", .json(#"{"openid":"o","session_key":"AAECAwQFBgcICQoLDA0ODw=="}"#))
        let gate = Gate()
        weChat.hold { await gate.pass() }
        let flood = (0..<ExchangeLimit.perAddress).map { number in
            Task { await bench.failure("ios", "flood\(number)")?.code }
        }
        try await eventually("all are under way") { gate.waiting == ExchangeLimit.perAddress }
        weChat.hold {}
        #expect(await bench.failure("ios", "one-more")?.code == "wechat.overloaded")
        _ = try await bench.signIn("mini", "c1")
        gate.open()
        for task in flood { #expect(await task.value == nil) }
        _ = try await bench.signIn("ios", "one-more")
    }

    @Test func `one address leaves exchanges of an application to others`() {
        let limit = ExchangeLimit()
        func entered(_ app: String, _ owner: WorkOwner, _ count: Int = 200) -> Int {
            (0..<count).filter { _ in limit.acquire(app, for: owner) }.count
        }
        let greedy = WorkOwner(group: 1, member: 1)
        #expect(entered("ios", greedy) == 32)
        #expect(entered("ios", WorkOwner(group: 1, member: 2)) == 32)
        // Half of them are for other networks.
        #expect(entered("ios", WorkOwner(group: 1, member: 3)) == 0)
        #expect(entered("ios", WorkOwner(group: 2, member: 1)) == 32)
        #expect(entered("mini", greedy) == 32)
        limit.release("ios", for: greedy)
        #expect(entered("ios", greedy) == 1)
    }

    @Test func `without the store nothing is sent`() async throws {
        let bench = try Self.bench(store: BrokenStore())
        let error = try #require(await bench.failure("ios", "c1"))
        #expect(error.code == "wechat.store_unavailable")
        #expect(error.disposition == .unavailable)
        #expect(bench.weChat.calls.isEmpty)
    }

    @Test func `without time nothing is sent and the code stays good`() async throws {
        let bench = try Self.bench()
        let late = AuthenticationContext(now: bench.login.now, deadline: bench.time.clock.monotonicTime)
        await #expect(throws: AuthenticationError.self) {
            try await bench.provider.signIn(with: Bench.form(["app": "ios", "code": "c1"]), in: late)
        }
        #expect(bench.weChat.calls.isEmpty)
        _ = try await bench.signIn("ios", "c1")
    }

    @Test func `the store reveals no code, no token and no user`() async throws {
        let time = Time()
        let store = RecordingStore(MemoryStore(clock: time.clock))
        let bench = try Self.bench(time: time, store: store)
        bench.weChat.respond(
            "/sns/jscode2session", .json(#"{"openid":"o-planted","session_key":"AAECAwQFBgcICQoLDA0ODw=="}"#))
        _ = try await bench.signIn("ios", "planted_code_1")
        _ = try await bench.signIn("mini", "planted_code_2")
        let everything = store.everything
        #expect(everything.count > 200)
        for word in ["planted", "o-1", "U_1", "AAECAwQFBgcICQoLDA0ODw", Bench.secret, "openid"] {
            #expect(!everything.contains(word), "the store has \(word)")
        }
    }

    @Test func `nothing that is secret is logged`() async throws {
        let bench = try Self.bench()
        _ = try await bench.signIn("ios", "planted_code_1")
        bench.time.advance(.seconds(11))
        _ = await bench.failure("ios", "planted_code_1")
        for (index, row) in `WeChat exchange`.rows.enumerated() {
            bench.weChat.respond(Self.token, .json(#"{"errcode":\#(row.errcode),"errmsg":"planted"}"#))
            _ = await bench.failure("ios", "planted_code_\(index + 2)")
        }
        bench.weChat.respond(Self.token, .failure("fetch.timeout"))
        _ = await bench.failure("ios", "planted_code_x")
        #expect(bench.log.text.count > 500)
        for word in ["planted", "o-1", "U_1", "http"] { #expect(!bench.log.text.contains(word), "the log has \(word)") }
    }
}

/// Forwards to a store and records everything that is written.
final class RecordingStore: SharedStoring {
    private let store: MemoryStore
    private let written = Box<[UInt8]>([])

    init(_ store: MemoryStore) { self.store = store }

    /// Bytes that are not UTF-8 become replacement characters.
    var everything: String { String(decoding: written.value, as: UTF8.self) }

    private func record(_ key: String, _ value: [UInt8]) { written.withLock { $0 += Array(key.utf8) + value } }

    func value(for key: String) async -> StoreReply<[UInt8]> { await store.value(for: key) }
    func set(_ value: [UInt8], for key: String, lifetime: Duration) async throws(StoreError) {
        record(key, value)
        try await store.set(value, for: key, lifetime: lifetime)
    }
    func setIfAbsent(_ value: [UInt8], for key: String, lifetime: Duration) async throws(StoreError) -> Bool {
        record(key, value)
        return try await store.setIfAbsent(value, for: key, lifetime: lifetime)
    }
    func remove(_ key: String, ifEqualTo value: [UInt8]) async throws(StoreError) {
        try await store.remove(key, ifEqualTo: value)
    }
    func remove(_ key: String) async throws(StoreError) { try await store.remove(key) }
    func take(_ key: String) async -> StoreReply<[UInt8]> { await store.take(key) }
    func increment(_ key: String, lifetime: Duration) async throws(StoreError) -> CounterReading {
        try await store.increment(key, lifetime: lifetime)
    }
    func counter(_ key: String) async throws(StoreError) -> CounterReading { try await store.counter(key) }
}
