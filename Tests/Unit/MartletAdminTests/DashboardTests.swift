import MartletCore
import MartletProvider
import MartletRedis
import MartletReports
import MartletResponder
import Testing

@testable import MartletAdmin

@Suite struct `Dashboard page` {
    @Test func `shows the state and the counters`() {
        var fixture = ReportFixture()
        var buckets = [Int](repeating: 0, count: latencyBounds.count + 1)
        buckets[3] = 10
        var loop = ReportFixture.loop(
            0, [("api", 200, 1234), ("old", 502, 1), ("-", 404, 2)], reasons: ["router.no_route": 2])
        loop.latency = [("api", buckets, 10_000)]
        loop.endpoints = [
            .init(upstream: "up", endpoint: "http://a:1", idle: 1, active: 0, failures: 5, isEjected: true)
        ]
        loop.handshakes = ["TLSv1.3": 3, "TLSv1.3 resumed": 1, "tls.bad_certificate": 2]
        (loop.http2.connections, loop.http2.openConnections, loop.http2.streams) = (9, 2, 4321)
        fixture.loops = [loop]
        fixture.store = ReportFixture.redis(.down, failures: ["redis.timeout": 2])
        fixture.providers = [
            ReportFixture.provider("apple", .ready, [.init(name: "jwks_keys", help: "", kind: .gauge, value: 3)])
        ]
        let page = Dashboard(fixture.report).html
        for part in [
            ">degraded<", "1,234", "old (removed)", "router.no_route", "http://a:1", "ejected", "connection refused",
            "jwks_keys 3", "1.2.3", "750 µs", "1 min 40 s", "redis.timeout 2", "127.0.0.1:8080",
            "1.3 4", "1, 25.0 %", "tls.bad_certificate 2", "2 open of 9", "0 open of 4,321",
        ] {
            #expect(page.contains(part), "\(part)")
        }
    }

    @Test func `contains no scripts and no external resources`() {
        let page = Dashboard(ReportFixture().report).html
        for part in ["<script", "<img", "<link", "@import", "url(", "http://", "https://", "javascript:", " on"] {
            let found = part == " on" ? page.contains(" onload") || page.contains(" onclick") : page.contains(part)
            #expect(!found, "\(part)")
        }
        let fields = Dashboard(ReportFixture().report).response.fields
        #expect(fields.first { $0.name == "Content-Security-Policy" }?.value.hasPrefix("default-src 'none'") == true)
    }

    @Test func `no text gets out of its place`() {
        let nasty = "<script>alert('1')</script>\"&\u{1b}"
        var fixture = ReportFixture()
        var loop = ReportFixture.loop(0, [(nasty, 200, 1)], reasons: [nasty: 1])
        loop.endpoints = [.init(upstream: nasty, endpoint: nasty, idle: 0, active: 0, failures: 0, isEjected: false)]
        fixture.loops = [loop]
        fixture.routes = [nasty]
        fixture.addresses = [nasty]
        fixture.providers = [
            .init(
                name: nasty, kind: nasty,
                health: .init(
                    state: .degraded, detail: nasty, gauges: [.init(name: nasty, help: nasty, kind: .gauge, value: 1)]))
        ]
        fixture.loops[0].handshakes = [nasty: 1, "TLSv\(nasty)": 1]
        fixture.loops[0].tunnels.ends = [nasty: 1]
        let page = Dashboard(fixture.report).html
        #expect(!page.contains("<script") && !page.contains("alert('") && !page.contains("\u{1b}"))
        #expect(page.contains("&lt;script&gt;alert(&#39;1&#39;)&lt;/script&gt;&quot;&amp;\u{FFFD}"))
    }

    @Test func `every element that is opened is closed`() {
        var fixture = ReportFixture()
        fixture.loops = [ReportFixture.loop(0, [("api", 200, 1)], reasons: ["a.b": 1])]
        fixture.store = ReportFixture.redis(.connected)
        fixture.providers = [ReportFixture.provider("apple", .ready)]
        let page = Dashboard(fixture.report).html
        for tag in ["section", "table", "tbody", "thead", "tr", "td", "th", "div", "span", "h2", "small", "strong"] {
            let opened = page.split(separator: "<\(tag)>").count - 1 + page.split(separator: "<\(tag) ").count - 1
            #expect(opened == page.split(separator: "</\(tag)>").count - 1, "\(tag)")
        }
    }
}

@Suite struct `Formatted numbers` {
    @Test(arguments: [
        (0, "0"), (999, "999"), (1000, "1,000"), (1_234_567, "1,234,567"), (-1234, "-1,234"),
        (Int.min, "-9,223,372,036,854,775,808"),
    ])
    func `counts are grouped`(value: Int, text: String) { #expect(NumberFormat.count(value) == text) }

    @Test(
        arguments: [(-5, "0 s"), (59, "59 s"), (61, "1 min 1 s"), (3660, "1 h 1 min"), (90_000, "1 d 1 h")]
            as [(Int64, String)])
    func `durations have two units`(seconds: Int64, text: String) { #expect(NumberFormat.duration(seconds) == text) }

    @Test(
        arguments: [(nil, "–"), (0.4, "0 µs"), (999, "999 µs"), (1500, "1.5 ms"), (2_340_000, "2.3 s"), (.nan, "–")]
            as [(Double?, String)])
    func `latencies choose their unit`(value: Double?, text: String) { #expect(NumberFormat.latency(value) == text) }

    @Test(arguments: [(12, "12 B"), (1536, "1.5 KiB"), (64 << 20, "64.0 MiB"), (3 << 30, "3.0 GiB")])
    func `sizes choose their unit`(value: Int, text: String) { #expect(NumberFormat.bytes(value) == text) }
}

@Suite struct `Latency quantiles` {
    static func histogram(_ counts: [Int: Int]) -> LatencyHistogram {
        var buckets = [Int](repeating: 0, count: latencyBounds.count + 1)
        for (index, count) in counts { buckets[index] = count }
        var histogram = LatencyHistogram()
        histogram.add(buckets, sumMicroseconds: 0)
        return histogram
    }

    @Test func `lie inside their bucket`() {
        #expect(LatencyHistogram().quantile(0.5) == nil)
        #expect(Self.histogram([0: 10]).quantile(0.5) == 50)
        #expect(Self.histogram([0: 1, 1: 1]).quantile(0.5) == 100)
        #expect(Self.histogram([0: 1, 1: 1]).quantile(1) == 250)
        #expect(Self.histogram([3: 100]).quantile(0.99) == 995)
        #expect(Self.histogram([3: 90, 6: 10]).quantile(0.95) == 7500)
        #expect(Self.histogram([latencyBounds.count: 5]).quantile(0.5) == 10_000_000)
    }
}
