import MartletCore
import MartletProvider
import MartletTesting
import Testing

@testable import MartletResponder
@testable import MartletSignIn

@Suite struct `A repeated login` {
    private static func repetition(_ name: String) -> SignIn.Repetition {
        SignIn.Repetition(name: name, key: Secret([UInt8](repeating: 7, count: 32)))
    }

    private static func stand(_ name: String = "one") -> Stand {
        let stand = Stand()
        stand.apple.script.withLock { $0.repetition = repetition(name) }
        return stand
    }

    private static let body = #"{"proof":"anna"}"#

    @Test func `gets the same response, and creates no second session`() async {
        let stand = Self.stand()
        let first = await stand.post("/auth/login/apple", Self.body)
        let second = await stand.post("/auth/login/apple", Self.body)
        #expect(first.status == 200 && second.response.body == first.response.body)
        #expect(second.response.fields.map { "\($0)" } == first.response.fields.map { "\($0)" })
        #expect(stand.sessions.entries.count == 1)
    }

    @Test func `is another login where the provider says so, or after a while`() async {
        let stand = Self.stand()
        _ = await stand.post("/auth/login/apple", Self.body)
        stand.apple.script.withLock { $0.repetition = Self.repetition("two") }
        _ = await stand.post("/auth/login/apple", Self.body)
        #expect(stand.sessions.entries.count == 2)
        stand.time.advance(seconds: 31)
        _ = await stand.post("/auth/login/apple", Self.body)
        #expect(stand.sessions.entries.count == 3)
    }

    @Test func `of another provider is another login`() async {
        let stand = Self.stand()
        stand.password.script.withLock { $0.repetition = Self.repetition("one") }
        _ = await stand.post("/auth/login/apple", Self.body)
        let other = await stand.post("/auth/login/password", Self.body)
        #expect(other["provider"] == "password" && stand.sessions.entries.count == 2)
    }

    @Test func `after a failure may succeed`() async {
        let stand = Self.stand()
        stand.sessions.callsLeft = 0
        #expect(await stand.post("/auth/login/apple", Self.body).status == 503)
        stand.sessions.callsLeft = Int.max
        #expect(await stand.post("/auth/login/apple", Self.body).status == 200)
    }

    @Test func `is distinguished by its purpose`() async throws {
        let stand = Stand()
        let first = await stand.post("/auth/login/apple", Self.body)
        let token = try #require(first["access_token"])
        let id = try #require(first["session_id"])
        _ = await stand.post("/auth/link/apple", bearer: token, Self.body)
        #expect(stand.apple.script.value.purposes == [.login, .link(sessionID: id)])
        let network = ClientNetwork(address: [UInt8](repeating: 1, count: 16))
        func scope(_ purpose: AuthenticationContext.Purpose, _ client: ClientNetwork?) -> [UInt8]? {
            AuthenticationContext(now: UnixTime(seconds: 0), deadline: .never, client: client, purpose: purpose)
                .repetitionScope
        }
        #expect(scope(.login, network) != nil && scope(.login, nil) == nil && scope(.request, network) == nil)
        #expect(scope(.link(sessionID: "a"), nil) == scope(.link(sessionID: "a"), network))
        #expect(scope(.link(sessionID: "a"), nil) != scope(.link(sessionID: "b"), nil))
    }

    @Test func `waits for the first, but not past its deadline`() async throws {
        let stand = Self.stand()
        let setup = stand.endpoints.setup
        let first = LoginRepetition(Self.repetition("one"), provider: "apple", for: .anonymous, setup: setup)
        guard case .first = try await first.claim(until: .never) else {
            Issue.record("not the first")
            return
        }
        await #expect(throws: StoreError.self) {
            try await first.claim(until: setup.clock.monotonicTime + .milliseconds(10))
        }
        async let second = first.claim(until: .never)
        await first.complete([1, 2, 3])
        guard case .repeated([1, 2, 3]) = try await second else {
            Issue.record("another response")
            return
        }
    }

    @Test func `decrypts nothing without the request's own key`() async throws {
        let setup = Self.stand().endpoints.setup
        let first = LoginRepetition(Self.repetition("one"), provider: "apple", for: .anonymous, setup: setup)
        _ = try await first.claim(until: .never)
        await first.complete(Array("mat_planted".utf8))
        let other = SignIn.Repetition(name: "one", key: Secret([UInt8](repeating: 8, count: 32)))
        await #expect(throws: StoreError.self) {
            try await LoginRepetition(other, provider: "apple", for: .anonymous, setup: setup)
                .claim(until: setup.clock.monotonicTime)
        }
    }
}
