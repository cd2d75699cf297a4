import Foundation
import MartletTesting
import Testing

/// What a flood of one kind, from one network, leaves to other clients.
@Suite struct `A flood of what needs no proof` {
    private static let server = "trusted_proxies: [127.0.0.0/8]"

    /// The fields of a request that a trusted proxy passes on.
    private static func from(_ address: String, json: Bool = true) -> [(String, String)] {
        [("X-Forwarded-For", address)] + (json ? [("Content-Type", "application/json")] : [])
    }

    private static func json(_ members: [String: String]) throws -> [UInt8] {
        Array(try JSONSerialization.data(withJSONObject: members))
    }

    /// Posts until one is rejected with 429, and returns the statuses before.
    private static func exhaust(
        _ gateway: Gateway, _ target: String, from address: String, most: Int, _ body: (Int) throws -> [UInt8]
    ) throws -> [Int] {
        let client = try gateway.connect()
        var statuses: [Int] = []
        for number in 0..<most {
            let response = try client.exchange("POST", target, from(address), body: try body(number))
            guard response.status == 429 else {
                statuses.append(response.status)
                continue
            }
            expectRejection(response, 429, "throttled")
            #expect((Int(response["Retry-After"] ?? "") ?? 0) >= 1)
            return statuses
        }
        throw TestFailure("\(most) posts to \(target), and none was rejected")
    }

    private static let alice = ["username": "alice", "password": SignInStage.password]

    private static func login(_ stage: SignInStage, from address: String) throws -> HTTPMessage {
        try stage.send("POST", "/auth/login/password", from(address), json(alice))
    }

    private static func nonce(_ stage: SignInStage, from address: String) throws -> HTTPMessage {
        try stage.send("POST", "/auth/nonce", from(address, json: false))
    }

    @Test func `nonces, ends at its network, whose other requests go on`() throws {
        try withSignIn(server: Self.server) { stage in
            let statuses = try Self.exhaust(stage.gateway, "/auth/nonce", from: "2001:db8:1:1::1", most: 4000) { _ in []
            }
            #expect(statuses.count >= 2000 && statuses.allSatisfy { $0 == 200 })
            for other in ["2001:db8:1:2::1", "2001:db8:2::1", "198.51.100.7"] {
                #expect(try Self.nonce(stage, from: other).status == 200, "\(other)")
            }
            #expect(try Self.login(stage, from: "2001:db8:1:1::2").status == 200)
            try waitUntil("there is one again") { try Self.nonce(stage, from: "2001:db8:1:1::3").status == 200 }
            try waitUntil("the log says so") { stage.gateway.everything.contains("signin.budget_exceeded") }
        }
    }

    @Test func `refreshes, ends at its network, whose logins go on`() throws {
        try withSignIn(server: Self.server) { stage in
            let tokens = try stage.passwordLogin()
            let statuses = try Self.exhaust(stage.gateway, "/auth/refresh", from: "203.0.113.1", most: 2000) {
                try Self.json(["refresh_token": "mrt_\($0)"])
            }
            #expect(statuses.count >= 600 && statuses.allSatisfy { $0 == 401 })
            #expect(try Self.login(stage, from: "203.0.113.1").status == 200)
            let refresh = try Self.json(["refresh_token": tokens.refresh])
            #expect(try stage.send("POST", "/auth/refresh", Self.from("203.0.113.2"), refresh).status == 200)
        }
    }

    @Test func `Apple logins, ends at its network, whose passwords go on`() throws {
        try withSignIn(server: Self.server) { stage in
            let body = try Self.json(["identity_token": "x"])
            let statuses = try Self.exhaust(stage.gateway, "/auth/login/apple", from: "203.0.113.1", most: 2000) { _ in
                body
            }
            #expect(statuses.count >= 600 && statuses.allSatisfy { $0 == 401 })
            #expect(try Self.login(stage, from: "203.0.113.1").status == 200)
            let good = try Self.json(["identity_token": stage.apple.token()])
            #expect(try stage.send("POST", "/auth/login/apple", Self.from("203.0.113.2"), good).status == 200)
        }
    }

    @Test func `WeChat codes, ends at its network, and WeChat is asked no more`() throws {
        let stage = try WeChatStage()
        let config = stage.configuration().replacing(
            "server:\n", with: "server:\n  \(Self.server)\n", maxReplacements: 1)
        try withMartlet(config) { gateway in
            let before = try stage.exchanges()
            let target = "/auth/login/wechat"
            let statuses = try Self.exhaust(gateway, target, from: "203.0.113.1", most: 400) {
                try Self.json(["app": "ios", "code": "bogus\($0)"])
            }
            #expect(statuses.count >= 120 && statuses.allSatisfy { $0 == 401 })
            #expect(try stage.exchanges() - before == statuses.count)
            // The code of a refused post was neither claimed nor sent.
            let code = try stage.code()
            let good = try Self.json(["app": "ios", "code": code])
            let client = try gateway.connect()
            var refused = 0
            while try client.exchange("POST", target, Self.from("203.0.113.1"), body: good).status == 429 {
                refused += 1
            }
            #expect(try stage.exchanges() - before == statuses.count + 1)
            let other = try Self.json(["app": "ios", "code": stage.code()])
            #expect(try client.exchange("POST", target, Self.from("203.0.113.2"), body: other).status == 200)
            #expect(try client.exchange("POST", "/auth/nonce", Self.from("203.0.113.1"), body: []).status == 200)
            #expect(refused < 100_000)
        }
        try stage.stop()
    }

    @Test func `wrong passwords, leaves hashes to other networks`() throws {
        let throttle = "throttle: { attempts: 1000000, per_address: { attempts: 1000000 } }"
        try withSignIn(password: throttle, server: Self.server) { stage in
            let gateway = stage.gateway
            let isOver = Box(false)
            let flood = (0..<120).map { number in
                Background { () -> [Int] in
                    let client = try gateway.connect()
                    var statuses: [Int] = []
                    while !isOver.value {
                        let body = try Self.json(["username": "nobody\(number)", "password": "wrong"])
                        try client.send("POST", "/auth/login/password", Self.from("203.0.113.1"), body: body)
                        statuses.append(try client.response(to: "POST", within: .seconds(30)).status)
                        if statuses.last == 503 { pause(.milliseconds(20)) }
                    }
                    return statuses
                }
            }
            pause(.milliseconds(500))
            for number in 0..<10 {
                let started = ContinuousClock.now
                let response = try Self.login(stage, from: "198.51.100.\(number)")
                #expect(response.status == 200, "after \(ContinuousClock.now - started)")
            }
            isOver.withLock { $0 = true }
            let statuses = try flood.flatMap { try $0.value() }
            #expect(statuses.contains(401) && statuses.contains(503), "it was a flood")
        }
    }

    @Test func `of passwords is hashed at a lower priority than event loops have`() throws {
        try withSignIn { stage in
            #expect(try Self.login(stage, from: "198.51.100.1").status == 200)
            let niceness = try stage.gateway.niceness()
            #expect(niceness["martlet-hash"] == 10 && niceness["martlet-loop-0"] == 0, "\(niceness)")
        }
    }
}
