import Foundation
import MartletTesting
import Testing

/// Limits that count over all instances, in a real Redis server.
@Suite(.timeLimit(.minutes(2))) struct SharedLimitTests {
    private static let routes = """
        - { name: limited, match: { path: /limited/** }, auth: none, upstream: api, limits: { rate: [some], announce: true } }
        - name: both
          match: { path: /both/** }
          auth: { providers: [apple] }
          limits: { rate: [some, person] }
          upstream: api
        """

    /// A shared limit by address.
    private static func limits(_ rate: String) -> String {
        "  some: { key: address, \(rate), shared: true }\n  person: { key: subject, rate: 9/s }"
    }

    /// Two instances with one store.
    private static func withInstances(
        _ limits: String, seal: Bool = false,
        _ body: (_ first: Gateway, _ second: Gateway, RedisServer, AppleFixture) throws -> Void
    ) throws {
        let redis = try RedisServer()
        let folder = try TemporaryFolder()
        try folder.write(Data((0..<32).map { UInt8($0) }).base64EncodedString(), to: "store.key")
        try FileManager.default.setAttributes([.posixPermissions: 0o600], ofItemAtPath: folder.file("store.key"))
        let sealing = seal ? ", seal: { key_file: \(folder.file("store.key")) }" : ""
        let more = "store: { url: \"\(redis.url)\"\(sealing) }\nrate_limits:\n\(limits)\n"
        try withAppleGateway(routes: routes, more: more) { first, upstream, apple throws in
            var config = GatewayConfig(endpoints: [upstream.url], providers: apple.provider(), routes: routes)
            config.more = more
            try withMartlet(config.text) { second throws in try body(first, second, redis, apple) }
        }
    }

    @Test func `two instances together pass what one may`() throws {
        try Self.withInstances(Self.limits("rate: 4/h")) { first, second, redis, _ throws in
            #expect(try first.get("/limited/a")["RateLimit"]?.hasPrefix("\"some\";r=3;t=") == true)
            #expect(try second.get("/limited/a")["RateLimit"]?.hasPrefix("\"some\";r=2;t=") == true)
            #expect(try first.get("/limited/a").status == 200)
            #expect(try second.get("/limited/a").status == 200)
            for gateway in [first, second, first, second] {
                let rejected = try gateway.get("/limited/a")
                expectRejection(rejected, 429, "throttled")
                let seconds = Int(rejected["Retry-After"] ?? "") ?? 0
                #expect((850...900).contains(seconds), "\(seconds)")
                #expect(rejected["RateLimit-Policy"] == "\"some\";q=4;w=3600")
                #expect(rejected["RateLimit"] == "\"some\";r=0;t=\(seconds)")
            }
            // Neither the address nor the limit's name is in the store, and the record expires.
            let keys = try redis.command("KEYS *")
            #expect(keys.contains("martlet:limit:") && !keys.contains("127.0.0.1") && !keys.contains("some"))
        }
    }

    @Test func `under load both instances together keep the bound`() throws {
        try Self.withInstances(Self.limits("rate: 100/s, burst: 50")) { first, second, _, _ throws in
            expectBound([first, second])
        }
    }

    @Test(arguments: [("local", [200, 429], 429), ("deny", [503, 503], 503), ("allow", [200, 200], 200)])
    func `while the store is unavailable, on_store_error decides, and afterwards the store`(
        _ policy: String, _ statuses: [Int], _ last: Int
    ) throws {
        let limits = """
              some: { key: "header:X-Key", rate: 2/h, shared: true, on_store_error: \(policy) }
              person: { key: subject, rate: 9/s }
            """
        try Self.withInstances(limits) { first, second, redis, _ throws in
            func get(_ gateway: Gateway, _ key: String) throws -> HTTPMessage {
                try gateway.get("/limited/a", [("X-Key", key)])
            }
            #expect(try get(first, "a").status == 200)
            try redis.stop()
            try waitUntil("the outage is known") {
                try first.askAdmin("/readyz").text.contains("\"store\",\"state\":\"down\"")
            }
            // The instance counted along what the store let pass.
            #expect(try [get(first, "a").status, get(first, "a").status] == statuses)
            if policy == "deny" {
                let rejected = try get(first, "a")
                expectRejection(rejected, 503, "overloaded")
                #expect(rejected["Retry-After"] == "1")
                try waitUntil("the log names the limit") {
                    first.log.contains { $0["reason"] == "limits.store_unavailable" && $0["condition"] == "some" }
                }
            }
            #expect(try get(first, "a").status == last)
            try redis.restart()
            for key in ["b", "c"] {
                try waitUntil("the store counts key \(key) again") {
                    // Each attempt with another key, since it takes a token.
                    let own = "\(key)-\(UInt32.random(in: 0 ... .max))"
                    let results = try [get(first, own), get(second, own), get(first, own)].map(\.status)
                    return results == [200, 200, 429]
                }
            }
        }
    }

    @Test func `a store that hangs delays a request only for a moment, and soon none`() throws {
        try Self.withInstances(Self.limits("rate: 3/h")) { first, _, redis, _ throws in
            #expect(try first.get("/limited/a").status == 200)
            redis.freeze(true)
            defer { redis.freeze(false) }
            let stopwatch = Stopwatch()
            let statuses = try (0..<20).map { _ in try first.get("/limited/a").status }
            #expect(statuses == [200, 200] + Array(repeating: 429, count: 18))
            // Three requests wait at most, each for less than a tenth of a second.
            #expect(stopwatch.undisturbed < .seconds(3))
        }
    }

    @Test(arguments: [false, true])
    func `callers are counted over all instances, and a limit that rejects gives back the other's token`(
        _ seal: Bool
    ) throws {
        let limits = """
              some: { key: address, rate: 3/h, shared: true }
              person: { key: subject, rate: 1/h, shared: true }
            """
        try Self.withInstances(limits, seal: seal) { first, second, redis, apple throws in
            let (ada, grace) = (try apple.token(subject: "ada"), try apple.token(subject: "grace"))
            func get(_ gateway: Gateway, _ token: String) throws -> HTTPMessage {
                try gateway.get("/both/a", bearer(token))
            }
            #expect(try get(first, ada).status == 200)
            for gateway in [second, first, second] {
                let rejected = try get(gateway, ada)
                expectRejection(rejected, 429, "throttled")
                #expect(rejected["RateLimit"]?.hasPrefix("\"person\";r=0;t=") == true)
            }
            #expect(try get(second, grace).status == 200)
            #expect(try first.get("/limited/a").status == 200, "the third token by address")
            #expect(try second.get("/limited/a").status == 429)
            let keys = try redis.command("KEYS martlet:limit:*")
            #expect(!keys.contains("ada") && !keys.contains("person"))
        }
    }

    @Test func `a store that was filled with nonsense is used all the same`() throws {
        try Self.withInstances(Self.limits("rate: 1/h")) { first, second, redis, _ throws in
            #expect(try first.get("/limited/a").status == 200)
            let key = try redis.command("KEYS martlet:limit:*").split(separator: "\r\n").last ?? ""
            #expect(key.hasPrefix("martlet:limit:"))
            _ = try redis.command("SET \(key) nonsense")
            #expect(try second.get("/limited/a").status == 200)
            #expect(try second.get("/limited/a").status == 429)
        }
    }
}
