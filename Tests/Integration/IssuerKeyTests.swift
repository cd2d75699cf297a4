import Foundation
import MartletTesting
import Testing

/// Section 8: whose keys count, how often they are asked for, and what happens without them.
@Suite struct `Issuer keys` {
    @Test func `without any keys it is 503, and better as soon as the issuer is back`() throws {
        let apple = try AppleFixture()
        apple.stop()
        let more = "jwks: { unknown_kid_cooldown: 1s, fetch_timeout: 1s }"
        try withAppleGateway(more: more, apple: apple) { gateway, upstream, _ throws in
            for path in ["/closed", "/maybe/a"] {
                expectUnavailable(try gateway.get(path, bearer(apple.token())), path)
            }
            expectUnauthorized(try gateway.get("/closed"), "credential_missing")
            expectUnauthorized(try gateway.get("/closed", bearer("abc")), "credential_invalid")
            #expect(try gateway.get("/public/a").status == 200)
            #expect(try gateway.get("/maybe/a").status == 200)
            try apple.restart()
            let token = try apple.token()
            try waitUntil("the keys are fetched", within: .seconds(30)) {
                try gateway.get("/closed", bearer(token)).status == 200
            }
            #expect(upstream.requests.count == 3)
        }
    }

    @Test func `reloads while the issuer is down lose no key, and refreshing goes on behind them`() throws {
        let apple = try AppleFixture()
        let upstream = try ScriptedUpstream()
        var config = GatewayConfig(
            endpoints: [upstream.url], providers: apple.provider(), routes: GatewayConfig.closed)
        config.listen = "- address: 127.0.0.1:\(try refusedPort())"
        config.admin = "address: 127.0.0.1:\(try refusedPort())"
        config.more = "jwks: { ttl: 2s, fetch_timeout: 1s }"
        try withMartlet(config.text) { gateway throws in
            #expect(try gateway.get("/closed", bearer(apple.token())).status == 200)
            apple.stop()
            for round in 1...2 {
                var next = config
                next.routes += "\n- { name: r\(round), match: { path: /r }, auth: none, upstream: api }"
                try gateway.reload(next.text)
                try waitUntil("reload \(round)") {
                    gateway.everything.components(separatedBy: "configuration reloaded").count == round + 1
                }
                let unseen = try apple.token(subject: "after reload \(round)")
                #expect(try gateway.get("/closed", bearer(unseen)).status == 200)
            }
            let seen = try apple.token(subject: "seen")
            #expect(try gateway.get("/closed", bearer(seen)).status == 200)
            try apple.restart()
            try waitUntil("the keys are refreshed", within: .seconds(20)) { apple.fetches >= 1 }
            apple.setKeys([try SigningKey("another")])
            try waitUntil("the loops know that a key is gone", within: .seconds(20)) {
                try gateway.get("/closed", bearer(seen)).status == 401
            }
        }
    }

    static let badDocuments: [(String, ScriptedUpstream.Script)] = [
        ("not found", { try $0.respond(404) }), ("an error", { try $0.respond(500) }),
        ("not JSON", { try $0.respond(200, body: "<html>") }), ("an array", { try $0.respond(200, body: "[]") }),
        ("no keys", { try $0.respond(200, body: #"{"keys":[]}"#) }),
        (
            "only an unusable key",
            { try $0.respond(200, body: #"{"keys":[{"kty":"oct","kid":"test-key-1","k":"AAAA"}]}"#) }
        ),
        ("a member twice", { try $0.respond(200, body: #"{"keys":[],"keys":[]}"#) }),
        (
            "over 64 KiB",
            { exchange in
                let text = String(decoding: try AppleFixture.document([.shared()]), as: UTF8.self)
                try exchange.respond(200, body: text + String(repeating: " ", count: 65_536))
            }
        ),
        (
            "over 20 keys",
            { exchange in
                let key = try SigningKey.shared()
                let names = (0..<20).map { "{\"kty\":\"RSA\",\"kid\":\"k\($0)\",\"n\":\"AQAB\",\"e\":\"AQAB\"}" }
                let good = String(decoding: try AppleFixture.document([key]), as: UTF8.self).dropLast(2)
                try exchange.respond(200, body: good + "," + names.joined(separator: ",") + "]}")
            }
        ),
        ("too late", { _ in pause(.seconds(3)) }),
        (
            "cut short",
            { exchange in
                try exchange.send("HTTP/1.1 200 OK\r\nContent-Length: 5000\r\n\r\n{\"keys\":[")
                exchange.closes = true
            }
        ),
    ]

    @Test func `a bad document is a failed fetch, which is 503`() throws {
        for (what, script) in Self.badDocuments {
            let apple = try AppleFixture()
            apple.respond(with: script)
            try withAppleGateway(more: "jwks: { fetch_timeout: 1s }", apple: apple) { gateway, _, _ throws in
                expectUnavailable(try gateway.get("/closed", bearer(apple.token())), what)
            }
        }
    }

    @Test func `a redirect is not followed`() throws {
        let apple = try AppleFixture()
        let other = try AppleFixture()
        apple.respond { try $0.respond(302, [("Location", other.url)]) }
        try withAppleGateway(apple: apple) { gateway, _, _ throws in
            expectUnavailable(try gateway.get("/closed", bearer(apple.token())))
            #expect(other.fetches == 0)
        }
    }

    @Test func `a flood of random kids causes one fetch at most`() throws {
        try withAppleGateway { gateway, upstream, apple throws in
            #expect(try gateway.get("/closed", bearer(apple.token())).status == 200)
            let before = apple.fetches
            let client = try gateway.connect()
            for _ in 0..<300 {
                let token = try apple.token { $0.header["kid"] = JSONText(string: "k\(UInt64.random(in: 0 ... .max))") }
                let response = try client.exchange("GET", "/closed", bearer(token))
                #expect(response.status == 401)
            }
            #expect(apple.fetches - before <= 1, "\(apple.fetches - before) fetches")
            #expect(upstream.requests.count == 1)
        }
    }

    @Test func `many callers with no keys at hand share one fetch`() throws {
        let apple = try AppleFixture()
        apple.respond { exchange in
            pause(.milliseconds(300))
            try exchange.respond(200, bytes: AppleFixture.document([.shared()]))
        }
        try withAppleGateway(apple: apple) { gateway, _, _ throws in
            let callers = try (0..<20).map { index in
                let token = try apple.token(subject: "s\(index)")
                return Background { try gateway.get("/closed", bearer(token)).status }
            }
            let statuses = try callers.map { try $0.value() }
            #expect(statuses.allSatisfy { $0 == 200 }, "\(statuses)")
            #expect(apple.fetches <= 2, "\(apple.fetches) fetches")
        }
    }

    @Test func `instances that start together query the issuer once`() throws {
        let apple = try AppleFixture()
        let redis = try RedisServer()
        var config = GatewayConfig(
            endpoints: ["builtin:echo"], providers: apple.provider(), routes: GatewayConfig.closed)
        for round in 1...3 {
            config.more = "store: { url: \"\(redis.url)\", key_prefix: \"round\(round):\" }"
            let text = config.text
            let starting = (0..<4).map { _ in Background { try Gateway(text) } }
            let gateways = try starting.map { try $0.value() }
            for gateway in gateways {
                #expect(try gateway.get("/closed", bearer(apple.token())).status == 200)
                try gateway.stop()
            }
            let lines = gateways.flatMap(\.log).filter { ["warning", "warn"].contains($0["level"] ?? "") }
            #expect(apple.fetches == round, "\(lines)")
        }
    }

    @Test func `a key that could not be fetched is 503 until the issuer responds`() throws {
        let more = "jwks: { unknown_kid_cooldown: 2s, fetch_timeout: 1s }"
        try withAppleGateway(more: more) { gateway, upstream, apple throws in
            #expect(try gateway.get("/closed", bearer(apple.token())).status == 200)
            let fresh = try SigningKey("fresh")
            let token = try Token(kid: fresh.identifier).signed(by: fresh)
            apple.stop()
            for _ in 0..<3 { expectUnavailable(try gateway.get("/closed", bearer(token))) }
            #expect(try gateway.get("/closed", bearer(apple.token(subject: "another"))).status == 200)
            try apple.restart()
            apple.setKeys([apple.key, fresh])
            try waitUntil("the key is found", within: .seconds(20)) {
                let response = try gateway.get("/closed", bearer(token))
                #expect(response.status != 401)
                return response.status == 200
            }
            #expect(upstream.requests.count == 3)
        }
    }

    @Test func `a key that joins is found by the first token that names it`() throws {
        try withAppleGateway { gateway, _, apple throws in
            #expect(try gateway.get("/closed", bearer(apple.token())).status == 200)
            let fresh = try SigningKey("fresh")
            apple.setKeys([apple.key, fresh])
            #expect(try gateway.get("/closed", bearer(Token(kid: "fresh").signed(by: fresh))).status == 200)
        }
    }

    @Test func `a key that leaves takes its cached tokens along`() throws {
        try withAppleGateway(more: "jwks: { ttl: 2s }") { gateway, _, apple throws in
            let token = try apple.token()
            #expect(try gateway.get("/closed", bearer(token)).status == 200)
            let fresh = try SigningKey("fresh")
            apple.setKeys([fresh])
            try waitUntil("the cached token is refused", within: .seconds(10)) {
                try gateway.get("/closed", bearer(token)).status == 401
            }
            #expect(try gateway.get("/closed", bearer(Token(kid: "fresh").signed(by: fresh))).status == 200)
        }
    }

    @Test func `another key under a known name replaces the first`() throws {
        try withAppleGateway(more: "jwks: { ttl: 2s }") { gateway, _, apple throws in
            let token = try apple.token()
            #expect(try gateway.get("/closed", bearer(token)).status == 200)
            let impostor = try SigningKey(apple.key.identifier)
            apple.setKeys([impostor])
            try waitUntil("the old key is gone", within: .seconds(10)) {
                try gateway.get("/closed", bearer(Token(kid: impostor.identifier).signed(by: impostor))).status == 200
            }
            expectUnauthorized(try gateway.get("/closed", bearer(token)), "credential_invalid")
        }
    }

    @Test func `while the issuer fails, the last good keys go on`() throws {
        try withAppleGateway(more: "jwks: { ttl: 1s, max_stale: 1h }") { gateway, _, apple throws in
            #expect(try gateway.get("/closed", bearer(apple.token())).status == 200)
            apple.respond { try $0.respond(500) }
            let before = apple.fetches
            try waitUntil("the issuer is asked again and fails") { apple.fetches > before }
            pause(.milliseconds(1500))
            #expect(try gateway.get("/closed", bearer(apple.token(subject: "unseen"))).status == 200)
        }
    }

    @Test func `stale keys end at max_stale`() throws {
        try withAppleGateway(more: "jwks: { ttl: 1s, max_stale: 3s, fetch_timeout: 500ms }") {
            gateway, _, apple throws in
            #expect(try gateway.get("/closed", bearer(apple.token())).status == 200)
            apple.stop()
            try waitUntil("the keys are too old", within: .seconds(12)) {
                try gateway.get("/closed", bearer(apple.token(subject: "s\(UInt32.random(in: 0 ... .max))"))).status
                    == 503
            }
        }
    }

    @Test func `keys are kept fresh after a reload, and when their provider comes back`() throws {
        let apple = try AppleFixture()
        let upstream = try ScriptedUpstream { try $0.respond(200, body: "ok") }
        var config = GatewayConfig(endpoints: [upstream.url], providers: apple.provider(), routes: GatewayConfig.closed)
        config.more = "jwks: { unknown_kid_cooldown: 1ms }\n"
        func reload(_ gateway: Gateway, _ marker: String, routes: String) throws {
            config.routes = "- { name: m, match: { path: /\(marker) }, auth: none, upstream: api }\n" + routes
            try gateway.reload(config.text)
            try waitUntil("the new routes hold") { try gateway.get("/\(marker)", []).status == 200 }
        }
        func expectFresh(_ gateway: Gateway, _ name: String) throws {
            let key = try SigningKey(name)
            apple.setKeys([apple.key, key])
            #expect(try gateway.get("/closed", bearer(Token(kid: name).signed(by: key))).status == 200)
        }
        try withMartlet(config.text) { gateway throws in
            #expect(try gateway.get("/closed", bearer(apple.token())).status == 200)
            try reload(gateway, "one", routes: GatewayConfig.closed)
            try expectFresh(gateway, "second")
            config.providers = ""
            try reload(gateway, "two", routes: GatewayConfig.open)
            config.providers = apple.provider()
            try reload(gateway, "three", routes: GatewayConfig.closed)
            try expectFresh(gateway, "third")
        }
    }
}
