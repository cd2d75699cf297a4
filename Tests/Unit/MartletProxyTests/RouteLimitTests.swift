import MartletAuthenticator
import MartletConfig
import MartletCore
import MartletDecisionsTesting
import MartletHTTP
import MartletResponder
import MartletTraffic
import Testing

@testable import MartletDecisions
@testable import MartletProxy

/// Limits on the requests of a route.
@Suite struct RouteLimitTests {
    private static let hello = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n"

    private static func get(_ fields: String = "", host: String = "a") -> String {
        "GET /api/x HTTP/1.1\r\nHost: \(host)\r\n\(fields)\r\n"
    }

    /// Begins and routes a request of a client, and ends it if it passes.
    /// - Returns: whether it passes, and what the client got otherwise.
    private func ask(
        _ bench: LoopBench, _ head: String = get(), from client: BenchClient? = nil, subject: Int? = nil
    ) -> (passes: Bool, text: String) {
        let client = client ?? bench.openClient()
        let exchange = bench.begin(head, on: client.downstream)
        var passes = bench.route(head, exchange)
        if passes, let subject {
            passes = bench.admitCaller(exchange, head, subject: subject)
        }
        let text = client.end.text()
        if passes { bench.run { $0.finish(exchange) } }
        return (passes, text)
    }

    private static func problem(_ fields: String, request: Int) -> String {
        BenchText.problem(429, "Too Many Requests", "throttled", request: request, fields: fields)
    }

    // MARK: Rates

    @Test func `a client over its rate gets 429, with when to come back`() throws {
        let bench = try LoopBench {
            $0.limit("per_address", [.address], RequestRate(count: 1, perSeconds: 60), burst: 2)
        }
        #expect(ask(bench).passes && ask(bench).passes)
        bench.advance(milliseconds: 500)
        let rejected = ask(bench)
        let fields =
            "Retry-After: 60\r\nRateLimit-Policy: \"per_address\";q=1;w=60\r\nRateLimit: \"per_address\";r=0;t=60\r\n"
        #expect(rejected.text == Self.problem(fields, request: 3))
        #expect(bench.counted().reasons == ["limits.rate_exceeded": 1])
        bench.advance(milliseconds: 59_500)
        #expect(ask(bench).passes && !ask(bench).passes)
        #expect(bench.log().filter { $0.contains("429 limits.rate_exceeded route=api") }.count == 2)
    }

    @Test func `routes without limits are not limited`() throws {
        let bench = try LoopBench { $0.limit("per_address", [.address], RequestRate(count: 1), burst: 1) }
        let other = "GET /plain/x HTTP/1.1\r\nHost: a\r\n\r\n"
        for _ in 0..<5 { #expect(ask(bench, other).passes) }
    }

    @Test func `trusted proxies name the client that is counted`() throws {
        let bench = try LoopBench { $0.limit("per_address", [.address], RequestRate(count: 1), burst: 1) }
        let client = bench.openClient(isTrusted: true)
        func from(_ address: String) -> Bool {
            ask(bench, Self.get("X-Forwarded-For: \(address)\r\n"), from: client).passes
        }
        #expect(from("198.51.100.1") && from("198.51.100.2") && !from("198.51.100.1"))
        #expect(from("2001:db8::1") && !from("2001:db8::2") && from("2001:db8:0:1::1"))
        // The proxy itself.
        #expect(ask(bench, from: client).passes)
    }

    @Test(
        arguments: [
            ([.host], Self.get(), Self.get(host: "A:80"), Self.get(host: "b")),
            (
                [.header("x-key")], Self.get("X-KEY: 1\r\n"), Self.get("x-key: 1\r\nX-Key: 2\r\n"),
                Self.get("X-Key: 2\r\n")
            ),
            ([.header("x-key")], Self.get(), Self.get("X-Other: 1\r\n"), Self.get("X-Key: 1\r\n")),
            ([.header("x-key")], Self.get("X-Key:\r\n"), Self.get("X-Key: \r\n"), Self.get()),
            ([.host, .header("x-key")], Self.get("X-Key: 1\r\n"), Self.get("X-Key: 1\r\n"), Self.get("X-Key: 2\r\n")),
            ([.route, .address], Self.get(), Self.get(host: "b"), ""),
        ] as [([RateLimitConfiguration.Key], String, String, String)])
    func `requests with equal keys share a bucket, one without a key as well`(
        _ keys: [RateLimitConfiguration.Key], _ first: String, _ same: String, _ other: String
    ) throws {
        let bench = try LoopBench { $0.limit("some", keys, RequestRate(count: 1), burst: 1) }
        #expect(ask(bench, first).passes)
        #expect(!ask(bench, same).passes)
        if !other.isEmpty { #expect(ask(bench, other).passes) }
    }

    @Test func `a limit by the caller is decided behind the authenticator`() throws {
        let bench = try LoopBench { $0.limit("per_person", [.subject], RequestRate(count: 1), burst: 1) }
        // Without a caller nothing is taken.
        for _ in 0..<3 { #expect(ask(bench).passes) }
        #expect(ask(bench, subject: 7).passes && ask(bench, subject: 8).passes)
        let rejected = ask(bench, subject: 7)
        #expect(!rejected.passes && rejected.text.contains("RateLimit: \"per_person\";r=0;t=1\r\n"))
        // Anonymous callers share a bucket.
        #expect(ask(bench, subject: 0).passes && !ask(bench, subject: 0).passes)
    }

    @Test func `where one limit rejects a request, the other gets its token back`() throws {
        let bench = try LoopBench { settings in
            settings.limit("per_person", [.subject], RequestRate(count: 1, perSeconds: 60), burst: 1)
            settings.limit("per_address", [.address], RequestRate(count: 1, perSeconds: 60), burst: 3)
            settings.limit("per_host", [.host], RequestRate(count: 1, perSeconds: 3600), burst: 3)
        }
        #expect(ask(bench, subject: 1).passes)
        for _ in 0..<5 { #expect(!ask(bench, subject: 1).passes) }
        #expect(ask(bench, subject: 2).passes && ask(bench, subject: 3).passes)
        // The longest of both, in the first phase.
        let rejected = ask(bench, subject: 4).text
        #expect(rejected.contains("Retry-After: 3600\r\n"), "\(rejected)")
        bench.advance(milliseconds: 60_000)
        #expect(ask(bench, Self.get(host: "b"), subject: 5).passes)
        for _ in 0..<3 { #expect(!ask(bench, subject: 6).passes) }
        bench.advance(milliseconds: 60_000)
        #expect(ask(bench, Self.get(host: "b"), subject: 6).passes)
    }

    @Test func `a request that waited for its verification is counted once`() throws {
        let bench = try LoopBench { settings in
            settings.limit("per_address", [.address], RequestRate(count: 1), burst: 1)
            settings.routeLimits.concurrency = 1
        }
        let client = bench.openClient()
        let exchange = bench.begin(Self.get(), on: client.downstream)
        #expect(bench.route(Self.get(), exchange) && bench.route(Self.get(), exchange))
        #expect(bench.isAlive(exchange))
    }

    // MARK: Announcing

    @Test func `responses tell what is left where the route says so`() throws {
        let bench = try LoopBench { settings in
            settings.limit("per_address", [.address], RequestRate(count: 10), burst: 20)
            settings.limit("per_host", [.host], RequestRate(count: 30, perSeconds: 60), burst: 30)
            settings.routeLimits.announces = true
        }
        let forwarded = bench.forward()
        forwarded.server.end.send(Self.hello + "\r\nhello")
        bench.event(forwarded.upstream)
        let head = String(BenchText.head(Self.hello).dropLast())
        let fields =
            "RateLimit-Policy: \"per_address\";q=10;w=1, \"per_host\";q=30;w=60\r\n"
            + "RateLimit: \"per_address\";r=19;t=1, \"per_host\";r=29;t=2\r\n\r\n"
        #expect(forwarded.client.end.text() == head + fields + "hello")
        // An error of the gateway, too.
        let failed = bench.forward()
        bench.run { $0.fail(failed.exchange, .upstreamUnavailable("upstream.connect_failed")) }
        #expect(failed.client.end.text().contains("RateLimit: \"per_address\";r=18;t=1, \"per_host\";r=28;t=4\r\n"))
    }

    @Test func `responses tell nothing where the route does not say so`() throws {
        let bench = try LoopBench { $0.limit("per_address", [.address], RequestRate(count: 10), burst: 20) }
        let forwarded = bench.forward()
        forwarded.server.end.send(Self.hello + "\r\nhello")
        bench.event(forwarded.upstream)
        #expect(forwarded.client.end.text() == BenchText.head(Self.hello) + "hello")
    }

    // MARK: Concurrency

    @Test func `over its concurrency a route responds 503, until a request has ended`() throws {
        let bench = try LoopBench { $0.routeLimits.concurrency = 2 }
        let (first, second) = (bench.forward(), bench.forward())
        let rejected = ask(bench)
        let text = BenchText.problem(
            503, "Service Unavailable", "overloaded", request: 3, fields: "Retry-After: 1\r\n")
        #expect(!rejected.passes && rejected.text == text)
        #expect(bench.counted().reasons == ["limits.concurrency_exceeded": 1])
        first.server.end.send(Self.hello + "\r\nhello")
        bench.event(first.upstream)
        #expect(ask(bench).passes)
        // However it ends: its client leaves, the endpoint fails, the gateway rejects it.
        bench.run { $0.abandon(second.downstream) }
        let (third, fourth) = (bench.forward(), bench.forward())
        #expect(!ask(bench).passes)
        bench.run { $0.fail(third.exchange, .upstreamTimeout("upstream.timeout")) }
        bench.run { $0.reject(fourth.exchange, .bodyTooLarge) }
        let count = bench.run { $0.context.snapshot.routeLimits.plans[0].counter.current }
        #expect(count == 0)
    }

    // MARK: Reload

    @Test func `a reload keeps what was counted, unless the limit counts by something else`() throws {
        var settings = SampleSettings()
        settings.limit("kept", [.address], RequestRate(count: 1), burst: 1)
        settings.limit("changed", [.address], RequestRate(count: 1), burst: 1)
        settings.routeLimits.concurrency = 5
        let former = settings.snapshot().routeLimits
        var next = SampleSettings()
        next.formerLimits = former
        next.limit("kept", [.address], RequestRate(count: 7), burst: 3)
        next.limit("changed", [.host], RequestRate(count: 1), burst: 1)
        next.routeLimits.concurrency = 3
        let plans = next.snapshot().routeLimits
        #expect(plans.plans[0].limits[0].table === former.plans[0].limits[0].table)
        #expect(plans.plans[0].limits[1].table !== former.plans[0].limits[1].table)
        #expect(plans.plans[0].counter == former.plans[0].counter && plans.plans[0].concurrency == 3)
        // A counter outlives its route, because exchanges refer to it.
        var without = SampleSettings()
        without.formerLimits = plans
        var again = next
        again.formerLimits = without.snapshot().routeLimits
        #expect(again.snapshot().routeLimits.plans[0].counter == former.plans[0].counter)
    }

    @Test func `limits by the caller are found, and come last`() {
        var settings = SampleSettings()
        settings.limit("first", [.address, .subject], RequestRate(count: 1), burst: 1)
        settings.limit("second", [.address], RequestRate(count: 1), burst: 1)
        let snapshot = settings.snapshot()
        let plan = snapshot.routeLimits.plans[0]
        #expect(plan.limits.map(\.name) == ["second", "first"] && plan.countBeforeCaller == 1)
        #expect(snapshot.routeLimits.needCaller && !snapshot.hasOtherCredentials && !snapshot.editsHeads)
        #expect(snapshot.compiledRoutes.map(\.limitPlan) == [-1, 0, -1, -1, -1])
    }
}
