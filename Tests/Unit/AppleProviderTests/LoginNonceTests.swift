import AppleProvider
import MartletCore
import MartletProvider
import MartletTesting
import Testing

/// A login's nonce: what body and token say under each policy.
struct NonceCase: Sendable, CustomTestStringConvertible {
    let policy: String
    let body: String?
    let token: String?
    let code: ErrorCode?

    init(_ policy: String, _ body: String?, _ token: String?, _ code: ErrorCode?) {
        (self.policy, self.body, self.token, self.code) = (policy, body, token, code)
    }

    var testDescription: String { "\(policy): \(body ?? "none") in the body, \(token ?? "none") in the token" }
}

@Suite struct LoginNonceTests {
    /// The example of the protocol's notes.
    static let raw = "gateway-nonce-0001"
    static let hash = "c507eefc808c1c16f4dabf38769aa1f4d1251150722a8cab9ccc5d6dc25ddc6a"

    static let cases: [NonceCase] = [
        .init("optional", nil, nil, nil), .init("optional", raw, raw, nil),
        .init("optional", raw, nil, "apple.nonce_missing"), .init("optional", nil, raw, "apple.nonce_missing"),
        .init("optional", raw, "other", "apple.nonce_mismatch"), .init("optional", raw, "", "apple.nonce_mismatch"),
        .init("optional", "", raw, "apple.nonce_missing"), .init("optional", raw, hash, "apple.nonce_mismatch"),
        .init("optional", "e\u{301}", "\u{E9}", "apple.nonce_mismatch"),
        .init("required", nil, nil, "apple.nonce_missing"), .init("required", raw, nil, "apple.nonce_missing"),
        .init("required", nil, raw, "apple.nonce_missing"), .init("required", raw, "other", "apple.nonce_mismatch"),
        .init("required", raw, raw, "apple.nonce_reused"),
        .init("off", nil, nil, nil), .init("off", raw, nil, nil), .init("off", nil, raw, nil),
        .init("off", raw, "other", nil),
    ]

    /// A store that has given out these nonces.
    static func store(_ nonces: String...) async throws -> MemoryStore {
        let store = MemoryStore(clock: Bench.clock)
        for nonce in nonces {
            try await store.set([1], for: NonceKey.storeKey(of: nonce, prefix: "test:"), lifetime: .seconds(300))
        }
        return store
    }

    static func bench(_ policy: String, form: String = "raw", _ store: any SharedStoring) throws -> Bench {
        try Bench([("nonce", .text(policy)), ("nonce_form", .text(form))], store: store)
    }

    @Test(arguments: cases)
    func `must be in both and agree`(_ nonce: NonceCase) async throws {
        let bench = try Self.bench(nonce.policy, try await Self.store())
        let result = try await bench.login(nonce: nonce.body, token: nonce.token)
        #expect(result.code == nonce.code)
        #expect(result.disposition == (nonce.code == nil ? nil : .rejected))
    }

    @Test func `that is required is ours, once`() async throws {
        let bench = try Self.bench("required", try await Self.store(Self.raw))
        #expect(try await bench.login(nonce: Self.raw, token: Self.raw).code == nil)
        #expect(try await bench.login(nonce: Self.raw, token: Self.raw).code == "apple.nonce_reused")
        #expect(try await bench.login(nonce: "made-up", token: "made-up").code == "apple.nonce_reused")
    }

    @Test func `that is optional is used up if it is ours`() async throws {
        let store = try await Self.store(Self.raw)
        let bench = try Self.bench("optional", store)
        #expect(try await bench.login(nonce: Self.raw, token: Self.raw).code == nil)
        guard case .miss = await store.take(NonceKey.storeKey(of: Self.raw, prefix: "test:")) else {
            Issue.record("the nonce is still there")
            return
        }
    }

    @Test(arguments: ["optional", "required"])
    func `that we gave out never turns into an app's own`(policy: String) async throws {
        let ours = NonceKey.mark + Self.raw
        let bench = try Self.bench(policy, try await Self.store(ours))
        #expect(try await bench.login(nonce: ours, token: ours).code == nil)
        #expect(try await bench.login(nonce: ours, token: ours).code == "apple.nonce_reused")
        let expired = NonceKey.mark + "gateway-nonce-0002"
        #expect(try await bench.login(nonce: expired, token: expired).code == "apple.nonce_reused")
    }

    @Test func `may be hashed by the app`() async throws {
        let bench = try Self.bench("required", form: "sha256_hex", try await Self.store(Self.raw, "other"))
        #expect(try await bench.login(nonce: "other", token: "other").code == "apple.nonce_mismatch")
        for token in [Self.raw, Self.hash.uppercased(), String(Self.hash.dropLast()), Self.hash + " "] {
            #expect(try await bench.login(nonce: Self.raw, token: token).code == "apple.nonce_mismatch", "\(token)")
        }
        #expect(try await bench.login(nonce: Self.hash, token: Self.hash).code == "apple.nonce_mismatch")
        #expect(try await bench.login(nonce: Self.raw, token: Self.hash).code == nil)
        #expect(try await bench.login(nonce: Self.raw, token: Self.hash).code == "apple.nonce_reused")
    }

    @Test func `is not used up by a login that fails`() async throws {
        let store = try await Self.store(Self.raw)
        let bench = try Self.bench("required", store)
        func attempt(_ texts: [String: String], _ change: (inout Token) -> Void = { _ in }) async throws -> ErrorCode? {
            let texts = texts.merging(["nonce": Self.raw]) { text, _ in text }
            return try await bench.login(.init(texts: texts)) {
                $0.claims["nonce"] = JSONText(string: Self.raw)
                change(&$0)
            }.code
        }
        #expect(try await attempt(["user": "other"]) == "apple.user_mismatch")
        #expect(
            try await attempt(["authorization_code": "x"]) { $0.claims["c_hash"] = "\"y\"" } == "apple.code_mismatch")
        #expect(try await attempt([:]) { $0.claims["aud"] = "\"com.other\"" } == "apple.bad_audience")
        #expect(try await attempt(["nonce": "other"]) == "apple.nonce_mismatch")
        let forged = Bench.Post(texts: ["nonce": Self.raw]).with(
            try Bench.token(by: SigningKey("RSAKEY1")) { $0.claims["nonce"] = JSONText(string: Self.raw) })
        #expect(await bench.login(form: forged).code == "apple.bad_signature")
        #expect(try await attempt([:]) == nil)
    }

    @Test(arguments: ["optional", "required"])
    func `cannot be decided without the store`(policy: String) async throws {
        let result = try await Self.bench(policy, BrokenStore()).login(nonce: Self.raw, token: Self.raw)
        #expect(result.code == "apple.store_unavailable" && result.disposition == .unavailable)
    }

    @Test func `needs no store where there is none to use up`() async throws {
        #expect(try await Self.bench("optional", BrokenStore()).login(nonce: nil, token: nil).code == nil)
        #expect(try await Self.bench("off", BrokenStore()).login(nonce: Self.raw, token: Self.raw).code == nil)
        let wrong = try await Self.bench("required", BrokenStore()).login(nonce: Self.raw, token: "other")
        #expect(wrong.code == "apple.nonce_mismatch")
    }

    @Test func `is taken by one of many at once`() async throws {
        let bench = try Self.bench("required", try await Self.store(Self.raw))
        await bench.provider.start()
        let form = Bench.Post(texts: ["nonce": Self.raw]).with(
            try Bench.token { $0.claims["nonce"] = JSONText(string: Self.raw) })
        let codes = await withTaskGroup(of: ErrorCode?.self) { group in
            for _ in 0..<50 { group.addTask { await bench.login(form: form).code } }
            return await group.reduce(into: [ErrorCode?]()) { $0.append($1) }
        }
        await bench.provider.shutdown()
        #expect(codes.count { $0 == nil } == 1 && codes.count { $0 == "apple.nonce_reused" } == 49)
    }

    @Test func `that is no text is refused`() async throws {
        let result = try await Self.bench("optional", MemoryStore(clock: Bench.clock))
            .login(.init(texts: ["nonce": "1"])) { $0.claims["nonce"] = 1 }
        #expect(result.code == "apple.bad_claim")
    }

    @Test func `of a bearer token is not looked at`() async throws {
        let bench = try Self.bench("required", BrokenStore())
        #expect(try await bench.verdict(Bench.token { $0.claims["nonce"] = "\"anything\"" }) == nil)
    }
}
