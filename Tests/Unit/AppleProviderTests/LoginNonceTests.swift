import AppleProvider
import MartletCore
import MartletCrypto
import MartletTesting
import Testing

@testable import MartletProvider

/// A login's nonce: the values in body and token under each policy.
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

    /// A store, and a nonce that was issued with it.
    static func store() async throws -> (store: MemoryStore, nonce: String) {
        let store = MemoryStore(clock: Bench.clock)
        let issuer = NonceIssuer(store: store, keyPrefix: "test:", clock: Bench.clock)
        return (store, try await issuer.make())
    }

    static func bench(_ policy: String, form: String = "raw", _ store: any SharedStoring) throws -> Bench {
        try Bench([("nonce", .text(policy)), ("nonce_form", .text(form))], store: store)
    }

    @Test(arguments: cases)
    func `must be in both and agree`(_ nonce: NonceCase) async throws {
        let bench = try Self.bench(nonce.policy, MemoryStore(clock: Bench.clock))
        let result = try await bench.login(nonce: nonce.body, token: nonce.token)
        #expect(result.code == nonce.code)
        // A body without the member is the client's error, and says nothing of the token.
        let isIncomplete = nonce.code == "apple.nonce_missing" && (nonce.body ?? "").isEmpty
        #expect(result.disposition == (nonce.code == nil ? nil : isIncomplete ? .malformed : .rejected))
    }

    @Test func `that is required is ours, once`() async throws {
        let (store, nonce) = try await Self.store()
        let bench = try Self.bench("required", store)
        #expect(try await bench.login(nonce: nonce, token: nonce).code == nil)
        #expect(try await bench.login(nonce: nonce, token: nonce).code == "apple.nonce_reused")
        #expect(try await bench.login(nonce: "made-up", token: "made-up").code == "apple.nonce_reused")
    }

    @Test(arguments: ["optional", "required"])
    func `that we gave out never turns into an app's own`(policy: String) async throws {
        let (store, ours) = try await Self.store()
        let bench = try Self.bench(policy, store)
        #expect(try await bench.login(nonce: ours, token: ours).code == nil)
        #expect(try await bench.login(nonce: ours, token: ours).code == "apple.nonce_reused")
        let strange = NonceIssuer.prefix + "gateway-nonce-0002"
        #expect(try await bench.login(nonce: strange, token: strange).code == "apple.nonce_reused")
        let (_, foreign) = try await Self.store()
        #expect(try await bench.login(nonce: foreign, token: foreign).code == "apple.nonce_reused")
    }

    @Test func `that is missing in the body is a missing member`() async throws {
        let (store, ours) = try await Self.store()
        for policy in ["required", "optional"] {
            let bench = try Self.bench(policy, store)
            let result = try await bench.login(nonce: nil, token: ours)
            #expect(result.code == "apple.nonce_missing" && result.disposition == .malformed)
            guard case .failure(let error) = result else { continue }
            #expect(error.bodyErrors.map { "\($0.pointer) \($0.code.rawValue)" } == ["/nonce missing"])
            let other = try await bench.login(nonce: ours, token: nil)
            #expect(other.code == "apple.nonce_missing" && other.disposition == .rejected)
        }
    }

    @Test func `may be hashed by some apps`() async throws {
        let forms: Bench.Value = .block([("com.example.app", .text("sha256_hex"))])
        let bench = try Bench([("nonce_form", forms)])
        for (audience, form) in [("com.example.app", Self.hash), ("com.example.web", Self.raw)] {
            for token in [Self.raw, Self.hash] {
                let result = try await bench.login(.init(texts: ["nonce": Self.raw])) {
                    $0.claims["nonce"] = JSONText(string: token)
                    $0.claims["aud"] = JSONText(string: audience)
                }
                #expect(result.code == (token == form ? nil : "apple.nonce_mismatch"), "\(audience)")
            }
        }
        for bad in [("com.other", "raw"), ("com.example.app", "md5")] {
            let error = #expect(throws: Bench.ConfigurationRejected.self) {
                _ = try Bench([("nonce_form", .block([(bad.0, .text(bad.1))]))])
            }
            #expect(error?.codes.first == "config.bad_value")
        }
    }

    @Test func `may be hashed by the app`() async throws {
        let (store, ours) = try await Self.store()
        let hash = Self.hexadecimal(SHA256.digest(Array(ours.utf8)))
        let bench = try Self.bench("required", form: "sha256_hex", store)
        for token in [ours, hash.uppercased(), String(hash.dropLast()), hash + " "] {
            #expect(try await bench.login(nonce: ours, token: token).code == "apple.nonce_mismatch", "\(token)")
        }
        #expect(try await bench.login(nonce: hash, token: hash).code == "apple.nonce_mismatch")
        #expect(try await bench.login(nonce: ours, token: hash).code == nil)
        #expect(try await bench.login(nonce: ours, token: hash).code == "apple.nonce_reused")
        let own = try Self.bench("optional", form: "sha256_hex", MemoryStore(clock: Bench.clock))
        #expect(try await own.login(nonce: Self.raw, token: Self.hash).code == nil)
    }

    private static func hexadecimal(_ bytes: [UInt8]) -> String {
        bytes.map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
    }

    @Test func `is not used up by a login that fails`() async throws {
        let (store, raw) = try await Self.store()
        let bench = try Self.bench("required", store)
        func attempt(_ texts: [String: String], _ change: (inout Token) -> Void = { _ in }) async throws -> ErrorCode? {
            let texts = texts.merging(["nonce": raw]) { text, _ in text }
            return try await bench.login(.init(texts: texts)) {
                $0.claims["nonce"] = JSONText(string: raw)
                change(&$0)
            }.code
        }
        #expect(try await attempt(["user": "other"]) == "apple.user_mismatch")
        #expect(
            try await attempt(["authorization_code": "x"]) { $0.claims["c_hash"] = "\"y\"" } == "apple.code_mismatch")
        #expect(try await attempt([:]) { $0.claims["aud"] = "\"com.other\"" } == "apple.bad_audience")
        #expect(try await attempt(["nonce": "other"]) == "apple.nonce_mismatch")
        let forged = Bench.Request(texts: ["nonce": raw]).with(
            try Bench.token(by: SigningKey("RSAKEY1")) { $0.claims["nonce"] = JSONText(string: raw) })
        #expect(await bench.login(form: forged).code == "apple.bad_signature")
        #expect(try await attempt([:]) == nil)
    }

    @Test(arguments: ["optional", "required"])
    func `cannot be decided without the store`(policy: String) async throws {
        let (_, ours) = try await Self.store()
        let result = try await Self.bench(policy, BrokenStore()).login(nonce: ours, token: ours)
        #expect(result.code == "apple.store_unavailable" && result.disposition == .unavailable)
    }

    @Test func `needs no store where there is none to use up`() async throws {
        #expect(try await Self.bench("optional", BrokenStore()).login(nonce: nil, token: nil).code == nil)
        #expect(try await Self.bench("optional", BrokenStore()).login(nonce: Self.raw, token: Self.raw).code == nil)
        #expect(try await Self.bench("off", BrokenStore()).login(nonce: Self.raw, token: Self.raw).code == nil)
        for token in ["other", Self.raw] {
            let wrong = try await Self.bench("required", BrokenStore()).login(nonce: Self.raw, token: token)
            #expect(wrong.code == (token == "other" ? "apple.nonce_mismatch" : "apple.nonce_reused"))
        }
    }

    @Test func `is consumed by one of many concurrent logins`() async throws {
        let (store, ours) = try await Self.store()
        let bench = try Self.bench("required", store)
        await bench.provider.start()
        let form = Bench.Request(texts: ["nonce": ours]).with(
            try Bench.token { $0.claims["nonce"] = JSONText(string: ours) })
        let codes = await withTaskGroup(of: ErrorCode?.self) { group in
            for _ in 0..<50 { group.addTask { await bench.login(form: form).code } }
            return await group.reduce(into: [ErrorCode?]()) { $0.append($1) }
        }
        await bench.provider.shutdown()
        #expect(codes.count { $0 == nil } == 1 && codes.count { $0 == "apple.nonce_reused" } == 49)
    }

    @Test func `that is not a string is rejected`() async throws {
        let result = try await Self.bench("optional", MemoryStore(clock: Bench.clock))
            .login(.init(texts: ["nonce": "1"])) { $0.claims["nonce"] = 1 }
        #expect(result.code == "apple.bad_claim")
    }

    @Test func `of a bearer token is ignored`() async throws {
        let bench = try Self.bench("required", BrokenStore())
        #expect(try await bench.failureCode(Bench.token { $0.claims["nonce"] = "\"anything\"" }) == nil)
    }
}
