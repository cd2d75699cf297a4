import MartletAccounts
import MartletCore
import MartletEvents
import MartletProvider
import MartletRedis
import MartletResponder
import Testing

@testable import MartletAdmin

@Suite struct `Metrics page` {
    static func parse(_ fixture: ReportFixture) throws -> PrometheusText {
        try PrometheusText(MetricsPage(fixture.report).text)
    }

    @Test func `an idle gateway has a well-formed page`() throws {
        let page = try Self.parse(ReportFixture())
        #expect(page.value("martlet_build_info", ["version": "1.2.3", "instance_id": "edge-1"]) == 1)
        #expect(page.value("martlet_process_resident_memory_bytes") == 65_536)
        #expect(page.value("martlet_process_start_time_seconds") == 1_700_000_000)
        #expect(page.value("martlet_log_lines_lost_total", ["file": "stdout"]) == 3)
        // Unknown values are missing, not 0.
        #expect(page.kinds["martlet_process_max_fds"] == nil)
        #expect(page.kinds["martlet_redis_commands_total"] == nil)
    }

    @Test func `as OpenMetrics, families of counters have no suffix, and buckets have examples`() throws {
        var fixture = ReportFixture()
        var loop = ReportFixture.loop(0, [("api", 200, 3)])
        loop.latency = [("api", [1, 2] + [Int](repeating: 0, count: latencyBounds.count - 1), 500)]
        func example(_ trace: String, at time: Int64) -> LoopReport.Exemplar {
            LoopReport.Exemplar(route: "api", bucket: 1, trace: trace, microseconds: 150, unixMilliseconds: time)
        }
        loop.exemplars = [example("new", at: 1_700_000_000_007)]
        var other = ReportFixture.loop(1, [])
        other.exemplars = [example("old", at: 1_600_000_000_000)]
        fixture.loops = [loop, other]
        let text = MetricsPage(fixture.report, .openMetrics).text
        let lines = text.split(separator: "\n", omittingEmptySubsequences: false).map(String.init)
        #expect(lines.suffix(2) == ["# EOF", ""] && !lines.dropLast(2).contains("# EOF"))
        #expect(lines.contains("# TYPE martlet_proxy_requests counter"))
        #expect(lines.contains(#"martlet_proxy_requests_total{route="api",status="200"} 3"#))
        let bucket = #"martlet_proxy_request_duration_seconds_bucket{route="api",le="0.00025"} 3"#
        #expect(lines.contains(bucket + #" # {trace_id="new"} 0.00015 1700000000.007"#))
        #expect(lines.filter { $0.contains(" # {") }.count == 1 && lines.contains { $0.contains(#"le="1.0"}"#) })
        for line in lines where line.hasPrefix("# TYPE") {
            #expect(!line.contains("_total "), "\(line)")
        }
        let plain = MetricsPage(fixture.report).text
        #expect(!plain.contains("trace_id") && plain.contains(#"le="1"}"#) && !plain.contains("EOF"))
    }

    @Test func `OpenMetrics is for those who ask for it`() {
        for accept in [
            "application/openmetrics-text", "application/openmetrics-text; version=1.0.0; charset=utf-8",
            "text/plain;q=0.5,application/openmetrics-text;q=0.5", "Application/OpenMetrics-Text, text/plain;q=0.9",
        ] {
            #expect(MetricsFormat(accept: accept) == .openMetrics, "\(accept)")
        }
        for accept in [
            nil, "", "*/*", "text/plain", "text/plain, application/openmetrics-text;q=0.9",
            "application/openmetrics-text;q=0", "application/openmetrics-text;q=x",
        ] {
            #expect(MetricsFormat(accept: accept) == .prometheus, "\(accept ?? "none")")
        }
    }

    @Test func `spans that were lost are counted, where requests are traced`() throws {
        var fixture = ReportFixture()
        #expect(try Self.parse(fixture).kinds["martlet_tracing_spans_dropped_total"] == nil)
        fixture.tracing = (sent: 5, lost: [("queue_full", 2), ("rejected", 0)])
        let page = try Self.parse(fixture)
        #expect(page.value("martlet_tracing_spans_sent_total") == 5)
        #expect(page.value("martlet_tracing_spans_dropped_total", ["reason": "queue_full"]) == 2)
        #expect(page.value("martlet_tracing_spans_dropped_total", ["reason": "rejected"]) == 0)
    }

    @Test func `stored values that do not verify are counted by kind`() throws {
        var fixture = ReportFixture()
        fixture.store = ReportFixture.redis(.connected)
        #expect(try Self.parse(fixture).kinds["martlet_store_bad_seal_total"] == nil)
        var status = RedisStatus(since: MonotonicTime(nanoseconds: 0))
        status.badSeals = [.session: 3]
        fixture.store = .redis(status)
        let page = try Self.parse(fixture)
        #expect(page.value("martlet_store_bad_seal_total", ["kind": "session"]) == 3)
        #expect(page.value("martlet_store_bad_seal_total", ["kind": "message"]) == 0)
    }

    @Test func `rate limits are shown one by one, the store's failures only where one is shared`() throws {
        var fixture = ReportFixture()
        #expect(try Self.parse(fixture).kinds["martlet_rate_limit_admitted_total"] == nil)
        let own = LimitReport(name: "own", admitted: 5, limited: 4, entries: 3, evictions: 2)
        fixture.limits = AdminReport.Limits([
            own, LimitReport(name: "z", admitted: 0, limited: 1, entries: 1, evictions: 0),
        ])
        let page = try Self.parse(fixture)
        for (name, value) in [("admitted_total", 5.0), ("limited_total", 4), ("entries", 3), ("evictions_total", 2)] {
            #expect(page.value("martlet_rate_limit_\(name)", ["limit": "own"]) == value)
        }
        #expect(page.value("martlet_rate_limit_limited_total", ["limit": "z"]) == 1)
        #expect(page.kinds["martlet_rate_limit_store_failures_total"] == nil)
        fixture.limits = AdminReport.Limits([own], storeFailures: 7)
        #expect(try Self.parse(fixture).value("martlet_rate_limit_store_failures_total") == 7)
    }

    @Test func `an overload is shown by its cause, where it is watched`() throws {
        var fixture = ReportFixture()
        var loop = ReportFixture.loop(0, [])
        (loop.overload.slowTurns, loop.overload.overloadedLoops) = (3, 1)
        fixture.loops = [loop, loop]
        #expect(try Self.parse(fixture).kinds["martlet_server_overloaded"] == nil)
        fixture.isMemoryHigh = true
        let page = try Self.parse(fixture)
        #expect(page.value("martlet_server_overloaded", ["cause": "loop"]) == 2)
        #expect(page.value("martlet_server_overloaded", ["cause": "memory"]) == 1)
        #expect(page.value("martlet_server_slow_turns_total") == 6)
    }

    @Test func `requests are summed over loops by route and status, rejections by reason`() throws {
        var fixture = ReportFixture()
        fixture.loops = [
            ReportFixture.loop(0, [("api", 200, 5), ("api", 401, 2)], reasons: ["auth.credential_missing": 2]),
            ReportFixture.loop(
                1, [("api", 200, 7), ("-", 404, 1)], reasons: ["router.no_route": 1, "auth.credential_missing": 1]),
        ]
        fixture.loops[1].requests.append(.init(route: "api", status: 200, isCheck: true, count: 4))
        fixture.responding = 1
        let page = try Self.parse(fixture)
        #expect(page.value("martlet_proxy_requests_total", ["route": "api", "status": "200"]) == 12)
        #expect(page.value("martlet_proxy_requests_total", ["route": "api", "status": "200", "via": "check"]) == 4)
        #expect(page.value("martlet_proxy_requests_total", ["route": "api", "status": "401"]) == 2)
        #expect(page.value("martlet_proxy_requests_total", ["route": "-", "status": "404"]) == 1)
        #expect(page.value("martlet_proxy_refusals_total", ["reason": "auth.credential_missing"]) == 3)
        #expect(page.value("martlet_proxy_loops") == 2)
        #expect(page.value("martlet_proxy_loops_answering") == 1)
    }

    @Test func `buckets are cumulative, in seconds, and end in the count`() throws {
        var fixture = ReportFixture()
        var buckets = [Int](repeating: 0, count: latencyBounds.count + 1)
        buckets[0] = 1
        buckets[3] = 2
        buckets[latencyBounds.count] = 4
        fixture.loops = (0..<2).map { number in
            var loop = ReportFixture.loop(number)
            loop.latency = [("api", buckets, 2_500_000)]
            return loop
        }
        let page = try Self.parse(fixture)
        let name = "martlet_proxy_request_duration_seconds"
        let rows = page.samples.filter { $0.name == name + "_bucket" }
        #expect(rows.map(\.value) == rows.map(\.value).sorted() && rows.count == latencyBounds.count + 1)
        #expect(rows.first?.labels == ["route": "api", "le": "0.0001"] && rows.last?.labels["le"] == "+Inf")
        #expect(page.value(name + "_bucket", ["route": "api", "le": "0.0001"]) == 2)
        #expect(page.value(name + "_bucket", ["route": "api", "le": "0.001"]) == 6)
        #expect(page.value(name + "_bucket", ["route": "api", "le": "10"]) == 6)
        #expect(page.value(name + "_bucket", ["route": "api", "le": "+Inf"]) == 14)
        #expect(page.value(name + "_count", ["route": "api"]) == 14)
        #expect(page.value(name + "_sum", ["route": "api"]) == 5)
    }

    @Test func `transport counters are summed over loops`() throws {
        var fixture = ReportFixture()
        fixture.loops = (0..<2).map { number in
            var loop = ReportFixture.loop(number)
            loop.handshakes = ["TLSv1.3": 5, "TLSv1.3 resumed": 3, "TLSv1.2": 1, "tls.handshake_timed_out": number]
            (loop.http2.connections, loop.http2.errors, loop.http2.openConnections) = (4, 1, 2)
            (loop.http2.streams, loop.http2.resets, loop.http2.openStreams) = (40, 6, 7)
            loop.connections.proxyHeaderRejections = ["proxy_protocol.bad_signature": 2]
            return loop
        }
        let page = try Self.parse(fixture)
        let handshakes = "martlet_tls_handshakes_total"
        #expect(page.value(handshakes, ["version": "1.3", "outcome": "full"]) == 10)
        #expect(page.value(handshakes, ["version": "1.3", "outcome": "resumed"]) == 6)
        #expect(page.value(handshakes, ["version": "1.2", "outcome": "full"]) == 2)
        #expect(page.value(handshakes, ["version": "-", "outcome": "tls.handshake_timed_out"]) == 1)
        #expect(page.value("martlet_http2_connections_open") == 4)
        #expect(page.value("martlet_http2_connections_total") == 8)
        #expect(page.value("martlet_http2_connections_refused_total") == 2)
        #expect(page.value("martlet_http2_streams_open") == 14)
        #expect(page.value("martlet_http2_streams_total") == 80)
        #expect(page.value("martlet_http2_resets_total") == 12)
        #expect(
            page.value("martlet_proxy_header_refusals_total", ["reason": "proxy_protocol.bad_signature"]) == 4)
    }

    @Test func `endpoints are summed over loops, an endpoint that is listed twice counts once`() throws {
        var fixture = ReportFixture()
        let healthy = EndpointReport(
            upstream: "api", endpoint: "http://a", idle: 2, active: 1, failures: 0, isEjected: false)
        let ejected = EndpointReport(
            upstream: "api", endpoint: "http://b", idle: 0, active: 0, failures: 5, isEjected: true)
        fixture.loops = (0..<3).map { number in
            var loop = ReportFixture.loop(number)
            loop.endpoints = [healthy, ejected, healthy]
            return loop
        }
        let page = try Self.parse(fixture)
        let a = ["upstream": "api", "endpoint": "http://a"]
        let b = ["upstream": "api", "endpoint": "http://b"]
        #expect(page.value("martlet_proxy_upstream_connections_idle", a) == 6)
        #expect(page.value("martlet_proxy_upstream_requests_active", a) == 3)
        #expect(page.value("martlet_proxy_upstream_failures_in_row", b) == 15)
        #expect(page.value("martlet_proxy_upstream_ejecting_loops", a) == 0)
        #expect(page.value("martlet_proxy_upstream_ejecting_loops", b) == 3)
    }

    @Test func `probes are counted by upstream and result, where there are health checks`() throws {
        var fixture = ReportFixture()
        #expect(try Self.parse(fixture).value("martlet_upstream_endpoints_unhealthy", ["upstream": "api"]) == nil)
        fixture.healthChecks = [
            (upstream: "api", successes: 7, failures: 3, delayed: 1, unhealthy: 2),
            (upstream: "web", successes: 1, failures: 0, delayed: 0, unhealthy: 0),
        ]
        let page = try Self.parse(fixture)
        func value(_ name: String, _ labels: [String: String]) -> Double? {
            page.value("martlet_upstream_\(name)", labels)
        }
        #expect(value("health_checks_total", ["upstream": "api", "result": "success"]) == 7)
        #expect(value("health_checks_total", ["upstream": "api", "result": "failure"]) == 3)
        #expect(value("health_checks_total", ["upstream": "web", "result": "success"]) == 1)
        #expect(value("health_checks_delayed_total", ["upstream": "api"]) == 1)
        #expect(value("endpoints_unhealthy", ["upstream": "api"]) == 2)
        #expect(value("endpoints_unhealthy", ["upstream": "web"]) == 0)
    }

    @Test func `copies of requests are counted by upstream and result, where there are mirrors`() throws {
        var fixture = ReportFixture()
        let name = "martlet_proxy_mirrored_requests_total"
        #expect(try Self.parse(fixture).value(name, ["upstream": "shadow", "result": "sent"]) == nil)
        fixture.mirrors = [(upstream: "shadow", sent: 7, failed: 2, dropped: 1)]
        let page = try Self.parse(fixture)
        for (result, count) in [("sent", 7.0), ("failed", 2), ("dropped", 1)] {
            #expect(page.value(name, ["upstream": "shadow", "result": result]) == count)
        }
    }

    @Test(arguments: ["a\"b", "a\\b", "a\nb", "a\\nb", "é\u{1F600}", "{}", "a,b=\"c\""])
    func `any text survives as a label`(text: String) throws {
        var fixture = ReportFixture()
        fixture.loops = [ReportFixture.loop(0, [(text, 200, 1)], reasons: [text: 2])]
        let page = try Self.parse(fixture)
        #expect(page.value("martlet_proxy_requests_total", ["route": text, "status": "200"]) == 1)
        #expect(page.value("martlet_proxy_refusals_total", ["reason": text]) == 2)
    }

    @Test func `calls behind bulkheads are counted by provider, where there are any`() throws {
        var fixture = ReportFixture()
        fixture.providers = [.init(name: "none", kind: "apple", health: nil)]
        #expect(try Self.parse(fixture).value("martlet_bulkhead_calls", ["provider": "none"]) == nil)
        fixture.providers.append(
            .init(
                name: "slow", kind: "other", health: nil,
                bulkhead: .init(running: 1, waiting: 2, saturated: 3, timedOut: 4)))
        let page = try Self.parse(fixture)
        #expect(page.value("martlet_bulkhead_calls", ["provider": "slow", "state": "running"]) == 1)
        #expect(page.value("martlet_bulkhead_calls", ["provider": "slow", "state": "waiting"]) == 2)
        #expect(page.value("martlet_bulkhead_failures_total", ["provider": "slow", "reason": "saturated"]) == 3)
        #expect(page.value("martlet_bulkhead_failures_total", ["provider": "slow", "reason": "timeout"]) == 4)
    }

    @Test func `gauges of plugins become separate families, whatever their names`() throws {
        var fixture = ReportFixture()
        let gauges: [ProviderHealth.Gauge] = [
            .init(name: "jwks_age_seconds", help: "Age\nof \\ keys.", kind: .gauge, value: 1.5),
            .init(name: "fetches", help: "Fetches.", kind: .counter, value: 4),
            .init(name: "fetches", help: "The same again.", kind: .counter, value: 9),
            .init(name: "bad name-é", help: "Bad.", kind: .gauge, value: .infinity),
            .init(name: "state", help: "The name of a family of ours.", kind: .gauge, value: 7),
            // One name in OpenMetrics, where that of a counter has no suffix.
            .init(name: "fetches", help: "A gauge with the name of a counter.", kind: .gauge, value: 3),
        ]
        fixture.providers = [
            ReportFixture.provider("one", .ready, gauges), ReportFixture.provider("two", .degraded, gauges),
            .init(name: "mute", kind: "other", health: nil),
        ]
        let page = try Self.parse(fixture)
        for name in ["one", "two"] {
            #expect(page.value("martlet_provider_jwks_age_seconds", ["provider": name]) == 1.5)
            #expect(page.value("martlet_provider_fetches_total", ["provider": name]) == 4)
            #expect(page.value("martlet_provider_bad_name___", ["provider": name]) == .infinity)
        }
        #expect(page.kinds["martlet_provider_fetches_total"] == "counter")
        #expect(page.kinds["martlet_provider_fetches"] == nil)
        #expect(page.value("martlet_provider_state", ["provider": "two", "kind": "apple", "state": "degraded"]) == 1)
        #expect(page.value("martlet_provider_state", ["provider": "two", "kind": "apple", "state": "ready"]) == 0)
        #expect(page.value("martlet_provider_state", ["provider": "two"]) == nil)
        #expect(page.value("martlet_server_state", ["state": "degraded"]) == 1)
    }

    @Test func `accounts report their state and their failures`() throws {
        var fixture = ReportFixture()
        #expect(try Self.parse(fixture).kinds["martlet_accounts_state"] == nil)
        var health = AccountHealth(state: .unavailable)
        for _ in 0..<7 { health.counts.count(.milliseconds(1), failed: false) }
        health.failures = ["accounts.timeout": 3]
        fixture.accounts = health
        fixture.subscription = RedisStatus(since: MonotonicTime(nanoseconds: 0))
        let page = try Self.parse(fixture)
        #expect(page.value("martlet_accounts_state", ["state": "unavailable"]) == 1)
        #expect(page.value("martlet_accounts_state", ["state": "ready"]) == 0)
        #expect(page.value("martlet_accounts_calls_total", [:]) == 7)
        #expect(page.value("martlet_accounts_failures_total", ["code": "accounts.timeout"]) == 3)
        #expect(page.value("martlet_session_revocations_heard", [:]) == 0)
        #expect(page.value("martlet_server_hashes_waiting", [:]) == 2)
    }

    @Test func `webhooks report attempts, and their backlog where they are delivered`() throws {
        var fixture = ReportFixture()
        #expect(try Self.parse(fixture).kinds["martlet_webhook_holder"] == nil)
        var (holder, other) = (WebhookStatus(hook: "a"), WebhookStatus(hook: "b"))
        (holder.delivered, holder.failed, holder.dead, holder.isHolder) = (5, 2, 1, true)
        var backlog = OutboxBacklog()
        (backlog.open, backlog.dead, backlog.oldest) = (7, 1, 1_795_426_200_250)
        holder.backlog = backlog
        other.delivered = 3
        fixture.webhooks = [holder, other]
        let page = try Self.parse(fixture)
        #expect(page.value("martlet_webhook_deliveries_total", ["webhook": "a", "result": "delivered"]) == 5)
        #expect(page.value("martlet_webhook_deliveries_total", ["webhook": "a", "result": "failed"]) == 2)
        #expect(page.value("martlet_webhook_deliveries_total", ["webhook": "a", "result": "dead"]) == 1)
        #expect(page.value("martlet_webhook_deliveries_total", ["webhook": "b", "result": "delivered"]) == 3)
        #expect(page.value("martlet_webhook_holder", ["webhook": "a"]) == 1)
        #expect(page.value("martlet_webhook_holder", ["webhook": "b"]) == 0)
        #expect(page.value("martlet_webhook_backlog", ["webhook": "a", "state": "open"]) == 7)
        #expect(page.value("martlet_webhook_backlog", ["webhook": "a", "state": "dead"]) == 1)
        #expect(page.value("martlet_webhook_backlog", ["webhook": "b", "state": "open"]) == nil)
        #expect(page.value("martlet_webhook_oldest_event_timestamp_seconds", ["webhook": "a"]) == 1_795_426_200.25)
    }

    @Test func `Redis reports its state, its failures by code, its latency`() throws {
        var fixture = ReportFixture()
        fixture.store = ReportFixture.redis(.down, failures: ["redis.timeout": 2, "redis.not_connected": 5])
        let page = try Self.parse(fixture)
        #expect(page.value("martlet_redis_state", ["state": "down"]) == 1)
        #expect(page.value("martlet_redis_state", ["state": "connected"]) == 0)
        #expect(page.value("martlet_redis_failures_total", ["code": "redis.timeout"]) == 2)
        #expect(page.kinds["martlet_redis_last_latency_seconds"] == nil)
    }

    @Test func `masters are counted by whether they are connected`() throws {
        var fixture = ReportFixture()
        fixture.store = ReportFixture.impaired()
        let page = try Self.parse(fixture)
        #expect(page.value("martlet_redis_masters", ["state": "up"]) == 2)
        #expect(page.value("martlet_redis_masters", ["state": "down"]) == 1)
    }

    @Test func `certificates are reported with their validity`() throws {
        var fixture = ReportFixture()
        #expect(try Self.parse(fixture).kinds["martlet_tls_certificate_valid"] == nil)
        fixture.certificates = [
            .init(side: "listener", name: "127.0.0.1:8443", file: "/a.pem", secondsLeft: 60, isValid: true),
            .init(side: "upstream", name: "api", file: "/b.pem", secondsLeft: -5, isValid: false),
        ]
        let page = try Self.parse(fixture)
        let first = ["side": "listener", "place": "127.0.0.1:8443", "file": "/a.pem"]
        let second = ["side": "upstream", "place": "api", "file": "/b.pem"]
        #expect(page.value("martlet_tls_certificate_expiry_seconds", first) == 60)
        #expect(page.value("martlet_tls_certificate_valid", first) == 1)
        #expect(page.value("martlet_tls_certificate_expiry_seconds", second) == -5)
        #expect(page.value("martlet_tls_certificate_valid", second) == 0)
    }

    @Test func `reloads are counted, with the result of the last one`() throws {
        var fixture = ReportFixture()
        fixture.reloads.record(success: true, at: UnixTime(seconds: 1_700_000_050))
        fixture.reloads.record(success: false, at: UnixTime(seconds: 1_700_000_060))
        let page = try Self.parse(fixture)
        #expect(page.value("martlet_server_reloads_total", ["result": "success"]) == 1)
        #expect(page.value("martlet_server_reloads_total", ["result": "failure"]) == 1)
        #expect(page.value("martlet_server_configuration_loaded_timestamp_seconds") == 1_700_000_050)
        #expect(page.value("martlet_server_configuration_current") == 0)
    }

    static let numbers: [(Double, String)] = [
        (0, "0"), (1, "1"), (-2, "-2"), (0.25, "0.25"), (0.0001, "0.0001"), (.infinity, "+Inf"), (-.infinity, "-Inf"),
        (.nan, "NaN"), (1e15, "1000000000000000.0"), (1e16, "1e+16"),
        (.greatestFiniteMagnitude, "1.7976931348623157e+308"),
    ]

    @Test(arguments: numbers) func `numbers are written in the format of Prometheus`(value: Double, text: String) {
        #expect(MetricsWriter.number(value) == text)
    }
}
