import MartletCore
import MartletProvider
import MartletTesting
import Testing

@testable import MartletProxy
@testable import MartletSignIn

/// What the endpoints let a network fail at, which needs no proof.
@Suite struct `A network's budget` {
    static let here = ClientNetwork(address: [UInt8](repeating: 0, count: 10) + [0xFF, 0xFF, 192, 0, 2, 1])
    static let elsewhere = ClientNetwork(address: [UInt8](repeating: 0, count: 10) + [0xFF, 0xFF, 198, 51, 100, 7])
    private static let refusal = "429 throttled signin.budget_exceeded"
    private static let most = 3000

    private static func post(
        _ stand: Stand, _ target: String, _ body: String, from network: ClientNetwork? = here, bearer: String? = nil
    ) async -> Stand.Reply {
        await stand.send("POST", target, bearer: bearer, type: Stand.json, Array(body.utf8), from: network)
    }

    /// Posts until the budget is used up.
    /// - Returns: how many were answered before.
    private static func exhaust(_ stand: Stand, _ target: String, _ body: String, bearer: String? = nil) async -> Int {
        for count in 0..<most {
            let reply = await post(stand, target, body, bearer: bearer)
            if reply.summary == refusal {
                #expect(reply.response.failure?.retryAfter == 1)
                return count
            }
        }
        return most
    }

    /// What each kind of request is answered with.
    private static func all(_ stand: Stand, from network: ClientNetwork? = here) async -> [String] {
        let wrong = #"{"proof":"anna"}"#
        return [
            await post(stand, "/auth/nonce", "", from: network).summary,
            await post(stand, "/auth/login/apple", wrong, from: network).summary,
            await post(stand, "/auth/login/password", wrong, from: network).summary,
            await post(stand, "/auth/refresh", #"{"refresh_token":"mrt_x"}"#, from: network).summary,
        ]
    }

    @Test(arguments: [
        ("/auth/nonce", "", 2000, 0), ("/auth/login/apple", #"{"proof":"anna"}"#, 600, 1),
        ("/auth/login/password", #"{"proof":"anna"}"#, 600, 2),
        ("/auth/refresh", #"{"refresh_token":"mrt_x"}"#, 600, 3),
    ])
    func `bounds one kind for one network alone`(target: String, body: String, most: Int, kind: Int) async {
        let stand = Stand()
        stand.password.script.withLock { $0.error = .rejected("test.reason") }
        stand.apple.script.withLock { $0.error = .denied("test.reason") }
        var expected = [
            "200", "403 not_allowed test.reason", "401 credential_invalid test.reason",
            "401 credential_invalid session.unknown",
        ]
        #expect(await Self.exhaust(stand, target, body) == most)
        #expect(await Self.all(stand, from: Self.elsewhere) == expected)
        expected[kind] = Self.refusal
        #expect(await Self.all(stand) == expected)
        stand.time.advance(seconds: 60)
        expected[kind] = kind == 0 ? "200" : await Self.all(stand, from: Self.elsewhere)[kind]
        #expect(await Self.all(stand) == expected, "half of it has come back")
    }

    @Test func `is used up before anybody is asked`() async {
        let stand = Stand()
        stand.apple.script.withLock { $0.error = .rejected("test.reason") }
        #expect(await Self.exhaust(stand, "/auth/login/apple", #"{"proof":"anna"}"#) == 600)
        #expect(stand.apple.script.value.logins == 600)
        stand.store.isAway = true
        #expect(await Self.post(stand, "/auth/login/apple", #"{"proof":"anna"}"#).summary == Self.refusal)
        #expect(stand.apple.script.value.logins == 600)
    }

    @Test func `is not touched by what succeeds, by an outage, or by what cannot be read`() async throws {
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

    @Test func `of nonces is not touched by those that an outage kept back`() async {
        let stand = Stand()
        stand.store.isAway = true
        for _ in 0..<2100 { #expect(await Self.post(stand, "/auth/nonce", "").status == 503) }
        stand.store.isAway = false
        #expect(await Self.exhaust(stand, "/auth/nonce", "") == 2000)
    }

    @Test func `of logins holds for links too`() async throws {
        let stand = Stand()
        let token = try await stand.login("apple", "anna")
        stand.password.script.withLock { $0.error = .rejected("test.reason") }
        #expect(await Self.exhaust(stand, "/auth/link/password", #"{"proof":"x"}"#, bearer: token) == 600)
        #expect(await Self.post(stand, "/auth/login/password", #"{"proof":"x"}"#).summary == Self.refusal)
        #expect(await stand.send("GET", "/auth/session", bearer: token, from: Self.here).status == 200)
    }

    @Test func `counts logins under way`() async {
        let stand = Stand()
        let gate = Box(false)
        let held = Box(0)
        stand.apple.script.withLock {
            $0.interruption = {
                held.withLock { $0 += 1 }
                while !gate.value { try? await Task.sleep(for: .milliseconds(5)) }
            }
        }
        await withTaskGroup(of: Void.self) { group in
            for _ in 0..<600 {
                group.addTask { _ = await Self.post(stand, "/auth/login/apple", #"{"proof":"anna"}"#) }
            }
            while held.value < 600 { await Task.yield() }
            #expect(await Self.post(stand, "/auth/login/apple", #"{"proof":"bert"}"#).summary == Self.refusal)
            gate.withLock { $0 = true }
        }
        #expect(await Self.post(stand, "/auth/login/apple", #"{"proof":"bert"}"#).status == 200)
    }
}
