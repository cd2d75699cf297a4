import AppleProvider
import MartletCore
import MartletProvider
import MartletTesting
import Testing

/// Which logins get the outcome of the first, and what is used up by one that is not approved.
@Suite struct `A repeated login with Apple` {
    private static let home = ClientNetwork(address: [0x20, 1, 0xD, 0xB8] + [UInt8](repeating: 0, count: 12))
    private static let elsewhere = ClientNetwork(address: [0x20, 1, 0xD, 0xB9] + [UInt8](repeating: 0, count: 12))

    private let seconds: Box<Int64>
    private let store: MemoryStore
    private let nonce: String

    init() async throws {
        let seconds = Box<Int64>(1)
        let clock = Clock(
            unixTime: { UnixTime(seconds: Bench.now) },
            monotonicTime: { MonotonicTime(nanoseconds: seconds.value * 1_000_000_000) })
        (self.seconds, store) = (seconds, MemoryStore(clock: clock))
        nonce = try await NonceIssuer(store: store, keyPrefix: "test:", clock: Bench.clock).make()
    }

    private func bench(_ apple: ScriptedApple) throws -> Bench {
        try Bench(Bench.developerLines([("nonce", .text("required"))]), store: store, http: apple)
    }

    private func tokens() throws -> String {
        try ScriptedApple.tokens { $0.claims["nonce"] = JSONText(string: nonce) }
    }

    private func form(_ more: [String: String] = [:]) throws -> SignInForm {
        let texts = ["nonce": nonce, "authorization_code": ExchangeTests.code].merging(more) { $1 }
        return Bench.Request(texts: texts).with(
            try Bench.token { token in
                token.claims["nonce"] = JSONText(string: nonce)
                token.claims["c_hash"] = JSONText(string: ScriptedApple.halfHash(ExchangeTests.code))
            })
    }

    private func signIn(
        _ bench: Bench, _ form: SignInForm, _ purpose: AuthenticationContext.Purpose = .login,
        from network: ClientNetwork? = home, approval: AuthenticationError? = nil
    ) async -> Result<SignIn, AuthenticationError> {
        var context = AuthenticationContext(
            now: UnixTime(seconds: Bench.now), deadline: .never, client: network, purpose: purpose)
        if let approval { context.approval = { (_) async throws(AuthenticationError) in throw approval } }
        do throws(AuthenticationError) {
            return .success(try await bench.provider.signIn(with: form, in: context))
        } catch {
            return .failure(error)
        }
    }

    @Test func `gets the same outcome, and its code is sent once`() async throws {
        let apple = ScriptedApple(200, try tokens())
        let (bench, form) = (try bench(apple), try form())
        let first = try await signIn(bench, form).get()
        let second = try await signIn(bench, form).get()
        #expect(apple.received.count == 1)
        #expect(first.repetition != nil && first.repetition?.name == second.repetition?.name)
        // It proves nothing anew: what has ended since then stays ended.
        #expect(second.grant?.token.withBytes { $0 } == Array("refresh".utf8) && !second.isFresh)
        #expect(second.identity.claims == first.identity.claims)
    }

    @Test func `may come at the same time`() async throws {
        let apple = ScriptedApple(200, try tokens())
        let (bench, form) = (try bench(apple), try form())
        let codes = await withTaskGroup(of: ErrorCode?.self) { group in
            for _ in 0..<8 { group.addTask { await signIn(bench, form).code } }
            return await group.reduce(into: [ErrorCode?]()) { $0.append($1) }
        }
        #expect(codes.allSatisfy { $0 == nil } && apple.received.count == 1)
    }

    @Test func `gets the same error`() async throws {
        let apple = ScriptedApple([.success(.init(status: 503, body: []))])
        let (bench, form) = (try bench(apple), try form())
        for _ in 0..<2 {
            let result = await signIn(bench, form)
            #expect(result.code == "apple.api_bad_response" && result.disposition == .unavailable)
        }
        #expect(apple.received.count == 1)
    }

    @Test func `from elsewhere, of another content or later is none`() async throws {
        let apple = ScriptedApple(200, try tokens())
        let (bench, form) = (try bench(apple), try form())
        #expect(await signIn(bench, form).code == nil)
        #expect(await signIn(bench, form, from: Self.elsewhere).code == "apple.nonce_reused")
        #expect(await signIn(bench, form, from: nil).code == "apple.nonce_reused")
        #expect(await signIn(bench, form, .link(sessionID: "ses_1")).code == "apple.nonce_reused")
        #expect(await signIn(bench, try self.form(["authorization_code": ""])).code == "apple.nonce_reused")
        seconds.withLock { $0 += 9 }
        #expect(await signIn(bench, form).code == nil)
        seconds.withLock { $0 += 2 }
        #expect(await signIn(bench, form).code == "apple.nonce_reused")
        #expect(apple.received.count == 1)
    }

    @Test func `may follow one that was not approved`() async throws {
        let apple = ScriptedApple(200, try tokens())
        let (bench, form) = (try bench(apple), try form())
        let taken = AuthenticationError.denied("test.taken")
        #expect(await signIn(bench, form, .link(sessionID: "ses_1"), approval: taken).code == "test.taken")
        #expect(apple.received.isEmpty)
        #expect(await signIn(bench, form).code == nil)
    }

    @Test func `that could not use anything up is attempted again`() async throws {
        let (bench, form) = (try bench(ScriptedApple(200, try tokens())), try form())
        let broken = try Bench(
            Bench.developerLines([("nonce", .text("required"))]), store: BrokenStore(), http: ScriptedApple([]))
        #expect(await signIn(broken, form).code == "apple.store_unavailable")
        #expect(await signIn(bench, form).code == nil)
    }
}
