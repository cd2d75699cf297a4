import MartletCore
import MartletProvider
import MartletTesting
import Testing

@testable import MartletResponder
@testable import MartletSignIn

/// The endpoints' budgets for unauthenticated requests.
@Suite struct `A network's budget` {
    static let here = ClientNetwork(address: [UInt8](repeating: 0, count: 10) + [0xFF, 0xFF, 192, 0, 2, 1])
    static let elsewhere = ClientNetwork(address: [UInt8](repeating: 0, count: 10) + [0xFF, 0xFF, 198, 51, 100, 7])
    private static let rejection = "429 throttled signin.budget_exceeded"
    private static let most = 3000

    private static func post(
        _ stand: Stand, _ target: String, _ body: String, from network: ClientNetwork? = here, bearer: String? = nil
    ) async -> Stand.Reply {
        await stand.send("POST", target, bearer: bearer, type: Stand.json, Array(body.utf8), from: network)
    }

    /// Posts until the budget is used up.
    /// - Returns: how many requests were processed before.
    private static func exhaust(_ stand: Stand, _ target: String, _ body: String, bearer: String? = nil) async -> Int {
        for count in 0..<most {
            let reply = await post(stand, target, body, bearer: bearer)
            if reply.summary == rejection {
                #expect(reply.response.failure?.retryAfter == 1)
                return count
            }
        }
        return most
    }

    /// The result of each kind of request.
    private static func all(_ stand: Stand, from network: ClientNetwork? = here) async -> [String] {
        let wrong = #"{"proof":"anna"}"#
        return [
            await post(stand, "/auth/nonce", "", from: network).summary,
            await post(stand, "/auth/login/apple", wrong, from: network).summary,
            await post(stand, "/auth/login/password", wrong, from: network).summary,
            await post(stand, "/auth/refresh", #"{"refresh_token":"mrt_x"}"#, from: network).summary,
            await post(stand, "/auth/revoke", #"{"token":"mrt_x"}"#, from: network).summary,
        ]
    }

    @Test func `a network that sends what cannot be read is refused, and no other`() async {
        let stand = Stand()
        for _ in 0..<600 {
            _ = await Self.post(stand, "/auth/login/password", "{")
            _ = await stand.send("POST", "/auth/nonce", type: "text/plain", Array("x".utf8), from: Self.here)
            _ = await stand.send("POST", "/auth/refresh", type: "text/plain", Array("x".utf8), from: Self.here)
        }
        let failure = stand.endpoints.rejection(of: Self.here)
        #expect(failure?.status == 429 && failure?.reason == .signInBudgetExceeded && failure?.retryAfter == 1)
        #expect(stand.endpoints.rejection(of: Self.elsewhere) == nil && stand.endpoints.rejection(of: nil) == nil)
        stand.time.advance(seconds: 1)
        #expect(stand.endpoints.rejection(of: Self.here) == nil)
        // What is read and rejected has budgets of its own.
        let other = Stand()
        other.password.script.withLock { $0.error = .rejected("test.reason") }
        for _ in 0..<Self.most { _ = await Self.post(other, "/auth/login/password", #"{"proof":"anna"}"#) }
        #expect(other.endpoints.rejection(of: Self.here) == nil)
    }

    @Test(arguments: [
        ("/auth/nonce", "", 2000, 0), ("/auth/login/apple", #"{"proof":"anna"}"#, 600, 1),
        ("/auth/login/password", #"{"proof":"anna"}"#, 600, 2),
        ("/auth/refresh", #"{"refresh_token":"mrt_x"}"#, 600, 3),
        ("/auth/revoke", #"{"token":"mrt_x"}"#, 600, 4),
    ])
    func `limits only one kind for one network`(target: String, body: String, most: Int, kind: Int) async {
        let stand = Stand()
        stand.password.script.withLock { $0.error = .rejected("test.reason") }
        stand.apple.script.withLock { $0.error = .denied("test.reason") }
        var expected = [
            "200", "403 not_allowed test.reason", "401 credential_invalid test.reason",
            "401 credential_invalid session.unknown", "200",
        ]
        #expect(await Self.exhaust(stand, target, body) == most)
        #expect(await Self.all(stand, from: Self.elsewhere) == expected)
        expected[kind] = Self.rejection
        #expect(await Self.all(stand) == expected)
        stand.time.advance(seconds: 60)
        expected[kind] = kind == 0 ? "200" : await Self.all(stand, from: Self.elsewhere)[kind]
        #expect(await Self.all(stand) == expected, "half of the budget has drained")
    }

    @Test func `is checked before the provider is called`() async {
        let stand = Stand()
        stand.apple.script.withLock { $0.error = .rejected("test.reason") }
        #expect(await Self.exhaust(stand, "/auth/login/apple", #"{"proof":"anna"}"#) == 600)
        #expect(stand.apple.script.value.logins == 600)
        stand.store.isUnavailable = true
        #expect(await Self.post(stand, "/auth/login/apple", #"{"proof":"anna"}"#).summary == Self.rejection)
        #expect(stand.apple.script.value.logins == 600)
    }

    @Test func `is not charged for successes, outages or invalid bodies`() async throws {
        let stand = Stand()
        for _ in 0..<700 {
            #expect(await Self.post(stand, "/auth/login/apple", #"{"proof":"anna"}"#).status == 200)
        }
        stand.apple.script.withLock { $0.error = .unavailable("test.reason") }
        for _ in 0..<700 {
            #expect(await Self.post(stand, "/auth/login/apple", #"{"proof":"anna"}"#).status == 503)
            #expect(await Self.post(stand, "/auth/login/apple", #"{"proof":1}"#).status == 400)
            #expect(await Self.post(stand, "/auth/refresh", "{}").status == 400)
        }
        stand.sessions.callsLeft = 0
        for _ in 0..<700 {
            #expect(await Self.post(stand, "/auth/refresh", #"{"refresh_token":"mrt_x"}"#).status == 503)
        }
        stand.apple.script.withLock { $0.error = .rejected("test.reason") }
        #expect(await Self.exhaust(stand, "/auth/login/apple", #"{"proof":"anna"}"#) == 600)
    }

    @Test func `of nonces is not charged for outages`() async {
        let stand = Stand()
        stand.store.isUnavailable = true
        for _ in 0..<2100 { #expect(await Self.post(stand, "/auth/nonce", "").status == 503) }
        stand.store.isUnavailable = false
        #expect(await Self.exhaust(stand, "/auth/nonce", "") == 2000)
    }

    @Test func `of logins applies to links too`() async throws {
        let stand = Stand()
        let token = try await stand.login("apple", "anna")
        stand.password.script.withLock { $0.error = .rejected("test.reason") }
        #expect(await Self.exhaust(stand, "/auth/link/password", #"{"proof":"x"}"#, bearer: token) == 600)
        #expect(await Self.post(stand, "/auth/login/password", #"{"proof":"x"}"#).summary == Self.rejection)
        #expect(await stand.send("GET", "/auth/session", bearer: token, from: Self.here).status == 200)
    }

    @Test func `counts logins in flight`() async {
        let stand = Stand()
        let gate = Gate()
        stand.apple.script.withLock { $0.interruption = { await gate.pass() } }
        await withTaskGroup(of: Void.self) { group in
            for _ in 0..<600 {
                group.addTask { _ = await Self.post(stand, "/auth/login/apple", #"{"proof":"anna"}"#) }
            }
            while gate.waiting < 600 { await Task.yield() }
            #expect(await Self.post(stand, "/auth/login/apple", #"{"proof":"bert"}"#).summary == Self.rejection)
            gate.open()
        }
        #expect(await Self.post(stand, "/auth/login/apple", #"{"proof":"bert"}"#).status == 200)
    }
}
