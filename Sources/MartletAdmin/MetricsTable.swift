internal import MartletAccounts
internal import MartletCore
internal import MartletEvents
internal import MartletProvider
internal import MartletRedis
internal import MartletResponder

/// Every metric of the gateway, in the order of the page: a new one is a row here, and the place that counts it.
extension MetricFamily {
    /// All but what plugins report.
    static let all = beforePlugins + afterPlugins
    /// Those before and after the metrics that providers report themselves.
    static let beforePlugins = requests + connections + limits + upstreams + store + accounts + server + providers
    static let afterPlugins = providerCalls

    // MARK: Requests

    private static let requests: [MetricFamily] = [
        .init(
            "martlet_proxy_requests_total", "Completed requests by route and status; 499 if the client disconnected.",
            by: ["route", "status", "via"]
        ) { source in
            source.traffic.requests.map { row, count in
                MetricSample(count, row.route, String(row.status), row.isCheck ? "check" : nil)
            }
        },
        .init(
            "martlet_proxy_refusals_total",
            "Requests that the gateway rejected or could not complete, by reason code as in the log.", by: ["reason"]
        ) { source in source.traffic.rejections.map { MetricSample($0.count, $0.reason) } },
        .histogram(
            "martlet_proxy_request_duration_seconds",
            "Duration from the first byte of the request to the end of the response, by route.", by: "route"
        ) { source in
            source.traffic.latency.map { route, durations in
                MetricHistogram(durations, route, exemplars: source.traffic.exemplars[route] ?? [:])
            }
        },
        .init("martlet_proxy_token_hits_total", "Credentials with a cached decision.", loops: \.tokens.hits),
        .init("martlet_proxy_token_misses_total", "Credentials that had to be verified.", loops: \.tokens.misses),
        .init("martlet_proxy_token_entries", "Cached authentication decisions.", loops: \.tokens.entries),
    ]

    // MARK: Connections

    private static let connections: [MetricFamily] = [
        .init("martlet_proxy_connections_open", "Open client connections.", loops: \.connections.open),
        .init(
            "martlet_proxy_connections_accepted_total", "Accepted client connections.", loops: \.connections.accepted),
        .init(
            "martlet_proxy_connections_refused_total",
            "Client connections closed immediately because a limit was reached.", loops: \.connections.refused),
        .init(
            "martlet_proxy_connections_displaced_total",
            "Client connections without a complete request for 250 ms, closed to make room for new ones.",
            loops: \.connections.displaced),
        .init("martlet_proxy_exchanges_open", "Requests in progress.", loops: \.openExchanges),
        .init("martlet_proxy_loops", "Event loops that serve clients.") { $0.report.loops.count },
        .init("martlet_proxy_loops_answering", "Event loops that reported their counters in time.") {
            $0.respondingLoops
        },
        .init(
            "martlet_http2_connections_open", "Open client connections with HTTP/2.", loops: \.http2.openConnections),
        .init("martlet_http2_connections_total", "Client connections with HTTP/2.", loops: \.http2.connections),
        .init(
            "martlet_http2_connections_refused_total",
            "HTTP/2 connections closed because of a protocol error or an exceeded limit.", loops: \.http2.errors),
        .init("martlet_http2_streams_open", "HTTP/2 requests in progress.", loops: \.http2.openStreams),
        .init("martlet_http2_streams_total", "Requests received over HTTP/2.", loops: \.http2.streams),
        .init("martlet_http2_resets_total", "HTTP/2 requests that the client reset.", loops: \.http2.resets),
        .init(
            "martlet_tls_handshakes_total",
            "TLS handshakes with clients, by version and outcome: full, resumed, or the error code.",
            by: ["version", "outcome"], of: .byLabel(\.handshakes)
        ) { source in source.loops.handshakes.sorted { $0.key < $1.key }.map { handshakes($1, of: $0) } },
        .init(
            "martlet_proxy_header_refusals_total",
            "Client connections closed because of a missing or invalid PROXY protocol header, by reason.",
            by: "reason", loops: \.connections.proxyHeaderRejections),
        .init(
            "martlet_proxy_tunnels_open", "Open tunnels: WebSockets and other upgraded connections.",
            loops: \.tunnels.open),
        .init("martlet_proxy_tunnels_total", "Upgraded connections.", loops: \.tunnels.opened),
        .init(
            "martlet_proxy_upgrades_refused_total",
            "Upgrade requests that are malformed or not allowed by their route.", loops: \.tunnels.rejectedUpgrades),
        .init(
            "martlet_proxy_tunnel_ends_total", "Closed tunnels, by reason as in the log.", by: "reason",
            loops: \.tunnels.ends),
    ]

    /// - Parameter outcome: the version, the version and `resumed`, or the code of an error, which often happens before
    ///   a version is negotiated.
    private static func handshakes(_ count: Int, of outcome: String) -> MetricSample {
        guard outcome.hasPrefix("TLSv") else { return MetricSample(count, "-", outcome) }
        let parts = outcome.dropFirst(4).split(separator: " ", maxSplits: 1)
        return MetricSample(count, String(parts.first ?? "-"), parts.count > 1 ? "resumed" : "full")
    }

    // MARK: Limits

    private static let limits: [MetricFamily] = [
        limit("admitted_total", "Requests that the rate limit let pass.", \.admitted),
        limit("limited_total", "Requests that the rate limit rejected.", \.limited),
        limit("entries", "Keys, such as addresses, that the rate limit knows.", \.entries),
        limit(
            "evictions_total", "Keys that the rate limit gave up for others before their buckets were full.",
            \.evictions),
        .init(
            "martlet_rate_limit_store_failures_total",
            "Questions of rate limits to the store without a response in time."
        ) { $0.limits.reports.isEmpty ? nil : $0.limits.storeFailures },
        .init(
            "martlet_server_overloaded",
            "Why requests are rejected: the event loops that do not serve all of them, and 1 for too much memory.",
            by: ["cause"], of: .number(\.overload.overloadedLoops)
        ) { source in
            source.isMemoryHigh.map { isMemoryHigh in
                [
                    MetricSample(source.loops.overload.overloadedLoops, "loop"),
                    MetricSample(isMemoryHigh ? 1 : 0, "memory"),
                ]
            }
        },
        .init(
            "martlet_server_slow_turns_total", "How often events waited longer than loop_delay.", by: [],
            of: .number(\.overload.slowTurns)
        ) { $0.isMemoryHigh == nil ? nil : [MetricSample($0.loops.overload.slowTurns)] },
    ]

    private static func limit(
        _ name: String, _ help: String, _ value: any KeyPath<LimitReport, Int> & Sendable
    ) -> MetricFamily {
        MetricFamily("martlet_rate_limit_\(name)", help, by: ["limit"]) { source in
            some(source.limits.reports)?.map { MetricSample($0[keyPath: value], $0.name) }
        }
    }

    /// What is not on the page without any elements.
    private static func some<Element>(_ elements: [Element]) -> [Element]? { elements.isEmpty ? nil : elements }

    // MARK: Upstreams

    private static let upstreams: [MetricFamily] = [
        endpoints("connections_idle", "Idle connections to the endpoint.") { $0.idle },
        endpoints("requests_active", "Requests in progress at the endpoint.") { $0.active },
        endpoints("failures_in_row", "Consecutive failures of the endpoint.") { $0.failures },
        endpoints("ejecting_loops", "Event loops that have ejected the endpoint.") { $0.ejectingLoops },
        .init(
            "martlet_proxy_upstream_endpoint_state",
            "1 for the state of the endpoint: healthy, slow_start, ejected, unhealthy or draining.",
            by: ["upstream", "endpoint", "address", "state"]
        ) { source in
            source.traffic.endpoints.map { key, endpoint in
                MetricSample(1, key.upstream, key.endpoint, key.address, endpoint.state.rawValue)
            }
        },
        .init(
            "martlet_proxy_upstream_panic",
            "Whether all endpoints of the upstream are used, because fewer are usable than its panic_threshold.",
            by: ["upstream"]
        ) { source in
            var panics = OrderedDictionary<String, Int>()
            for (key, endpoint) in source.traffic.endpoints {
                panics[key.upstream, default: 0] = max(panics[key.upstream, default: 0], endpoint.isPanicking ? 1 : 0)
            }
            return panics.map { MetricSample($1, $0) }
        },
        .init(
            "martlet_proxy_upstream_requests_total",
            "Finished requests that were forwarded to the upstream, by result: error is a response with 5xx.",
            by: ["upstream", "result"]
        ) { source in
            some(Array(source.traffic.upstreams))?.flatMap { upstream, counted in
                [
                    MetricSample(counted.requests - counted.errors, upstream, "success"),
                    MetricSample(counted.errors, upstream, "error"),
                ]
            }
        },
        .histogram(
            "martlet_proxy_upstream_request_duration_seconds",
            "Duration of requests that were forwarded to the upstream, from their first byte to the end of the "
                + "response.", by: "upstream"
        ) { source in some(Array(source.traffic.upstreams))?.map { MetricHistogram($1.latency, $0) } },
        .init(
            "martlet_upstream_health_checks_total", "Probes of the upstream's endpoints, by result.",
            by: ["upstream", "result"]
        ) { source in
            some(source.healthChecks)?.flatMap {
                [MetricSample($0.successes, $0.upstream, "success"), MetricSample($0.failures, $0.upstream, "failure")]
            }
        },
        .init(
            "martlet_upstream_health_checks_delayed_total",
            "Probes that began more than an interval late, because too many others were in flight.", by: ["upstream"]
        ) { source in some(source.healthChecks)?.map { MetricSample($0.delayed, $0.upstream) } },
        .init(
            "martlet_upstream_endpoints_unhealthy", "Endpoints that are unhealthy by their probes.", by: ["upstream"]
        ) { source in some(source.healthChecks)?.map { MetricSample($0.unhealthy, $0.upstream) } },
        .init(
            "martlet_proxy_mirrored_requests_total",
            "Copies of requests for the upstream: sent (it responded), failed, or dropped because too many were under "
                + "way.", by: ["upstream", "result"]
        ) { source in
            some(source.mirrors)?.flatMap { mirror in
                [("sent", mirror.sent), ("failed", mirror.failed), ("dropped", mirror.dropped)].map {
                    MetricSample($1, mirror.upstream, $0)
                }
            }
        },
        .init("martlet_tracing_spans_sent_total", "Spans that the collector has taken.") { $0.tracing?.sent },
        .init(
            "martlet_tracing_spans_dropped_total",
            "Spans of sampled requests that were lost, by reason: queue_full, unavailable, rejected and others.",
            by: ["reason"]
        ) { source in source.tracing?.lost.map { MetricSample($0.count, $0.reason) } },
    ]

    /// A number of each endpoint; only those of a name with several have an address.
    private static func endpoints(
        _ name: String, _ help: String, _ value: @escaping @Sendable (Traffic.Endpoint) -> Int
    ) -> MetricFamily {
        MetricFamily("martlet_proxy_upstream_\(name)", help, by: ["upstream", "endpoint", "address"]) { source in
            source.traffic.endpoints.map { MetricSample(value($1), $0.upstream, $0.endpoint, $0.address) }
        }
    }

    // MARK: Dependencies

    private static let store: [MetricFamily] = [
        .init("martlet_server_state", "1 for the state that /readyz reports, 0 for the others.", by: ["state"]) {
            MetricSample.state($0.readiness.state, of: Readiness.State.allCases)
        },
        .init("martlet_redis_state", "1 for the state of the connection to Redis, 0 for the others.", by: ["state"]) {
            $0.redis.map { MetricSample.state($0.state, of: [.connecting, .connected, .down, .stopped]) }
        },
        .init("martlet_redis_reconnects_total", "Reconnections to Redis.") { $0.redis?.reconnects },
        .init("martlet_redis_commands_total", "Commands sent to Redis.") { $0.redis?.commands },
        .init("martlet_redis_nodes", "Redis servers with a connection that accepts commands.") {
            $0.redis?.nodes.count
        },
        .init("martlet_redis_masters", "Redis servers that have keys, by whether they are connected.", by: ["state"]) {
            $0.redis.map {
                [MetricSample($0.connectedMasters, "up"), MetricSample($0.masters - $0.connectedMasters, "down")]
            }
        },
        .init(
            "martlet_store_unreplicated_total", "Writes acknowledged although no replica had them in time."
        ) { $0.redis?.unreplicated },
        .init("martlet_store_repeated_total", "Recent writes that were repeated at a new master.") {
            $0.redis?.repeated
        },
        .init("martlet_store_bad_seal_total", "Stored values that did not verify, by what they are.", by: ["kind"]) {
            $0.redis?.badSeals.map { counts in
                SealedKind.allCases.map { MetricSample(counts[$0] ?? 0, $0.rawValue) }
            }
        },
        .init("martlet_redis_failures_total", "Failed commands to Redis, by error code.", by: ["code"]) {
            $0.redis.map { MetricSample.all($0.failures) }
        },
        .init("martlet_redis_last_latency_seconds", "Latency of the last Redis command that got a reply.", by: []) {
            $0.redis?.lastLatency.map { [MetricSample(Double($0.wholeNanoseconds) / 1e9)] }
        },
        .histogram("martlet_redis_command_duration_seconds", "Duration of commands to Redis with a reply.") {
            $0.redis.map { [MetricHistogram(LatencyHistogram($0.calls))] }
        },
    ]

    private static let accounts: [MetricFamily] = [
        .histogram("martlet_accounts_call_duration_seconds", "Duration of calls to the account store.") {
            $0.accounts.map { [MetricHistogram(LatencyHistogram($0.counts))] }
        },
        .init(
            "martlet_session_revocations_heard",
            "1 while this instance is subscribed to revocations by other instances."
        ) { $0.subscription.map { $0.state == .connected ? 1 : 0 } },
        .init("martlet_server_hashes_waiting", "Password hashes that wait for a thread.") { $0.hashesWaiting },
        .init("martlet_accounts_state", "1 for the state of the account store, 0 for the others.", by: ["state"]) {
            $0.accounts.map { MetricSample.state($0.state, of: AccountHealth.State.allCases) }
        },
        .init("martlet_accounts_calls_total", "Queries to the account store.") { $0.accounts?.calls },
        .init("martlet_accounts_reconnects_total", "Reconnections to the account store.") { $0.accounts?.reconnects },
        .init(
            "martlet_accounts_failures_total", "Failed queries to the account store, by error code.", by: ["code"]
        ) {
            $0.accounts.map { MetricSample.all($0.failures) }
        },
        .init(
            "martlet_accounts_revocations_pending",
            "Grants of deleted accounts that are not revoked at their issuer yet; from the instance that does it."
        ) { $0.accounts == nil ? nil : $0.backlog.revocations?.count },
        .init(
            "martlet_webhook_deliveries_total",
            "Attempts to deliver an event, by result: delivered, failed (it is repeated) or dead (it was given up).",
            by: ["webhook", "result"]
        ) { source in
            some(source.backlog.webhooks)?.flatMap { status in
                [("delivered", status.delivered), ("failed", status.failed), ("dead", status.dead)].map {
                    MetricSample($1, status.hook, $0)
                }
            }
        },
        .init(
            "martlet_webhook_holder", "1 for a webhook to which this instance delivers, 0 if another one does.",
            by: ["webhook"]
        ) { source in some(source.backlog.webhooks)?.map { MetricSample($0.isHolder ? 1 : 0, $0.hook) } },
        .init(
            "martlet_webhook_backlog",
            "Deliveries in the outbox, by state: open or dead; from the instance that delivers to the webhook.",
            by: ["webhook", "state"]
        ) { source in
            some(source.backlog.webhooks)?.flatMap { status in
                status.backlog.map {
                    [MetricSample($0.open, status.hook, "open"), MetricSample($0.dead, status.hook, "dead")]
                } ?? []
            }
        },
        .init(
            "martlet_webhook_oldest_event_timestamp_seconds",
            "When the oldest event happened that the webhook has not received; from the instance that delivers to it.",
            by: ["webhook"]
        ) { source in
            some(source.backlog.webhooks)?.compactMap { status in
                status.backlog?.oldest.map { MetricSample(Double($0) / 1000, status.hook) }
            }
        },
    ]

    // MARK: The process

    private static let server: [MetricFamily] = [
        .init(
            "martlet_tls_certificate_expiry_seconds",
            "Seconds until a certificate of a listener or an upstream expires; negative if it has expired.",
            by: ["side", "place", "file"]
        ) { source in some(source.certificates)?.map { MetricSample($0.secondsLeft, $0.side, $0.name, $0.file) } },
        .init(
            "martlet_tls_certificate_valid",
            "1 for a certificate that is valid now, 0 if it is expired or not valid yet.",
            by: ["side", "place", "file"]
        ) { source in
            some(source.certificates)?.map { MetricSample($0.isValid ? 1 : 0, $0.side, $0.name, $0.file) }
        },
        .init("martlet_server_reloads_total", "Reloads of the configuration, by result.", by: ["result"]) {
            [MetricSample($0.reloads.succeeded, "success"), MetricSample($0.reloads.failed, "failure")]
        },
        .init(
            "martlet_server_configuration_loaded_timestamp_seconds", "When the current configuration was loaded."
        ) { Int($0.reloads.loadedAt.seconds) },
        .init(
            "martlet_server_configuration_current", "1 if the last reload succeeded, 0 if it failed."
        ) { $0.reloads.isCurrent ? 1 : 0 },
        .init(
            "martlet_log_lines_lost_total",
            "Log lines that could not be written: a slow or closed reader, or a full disk.", by: ["file"]
        ) { source in source.lostLogLines.map { MetricSample($0.lines, $0.file) } },
        .init(
            "martlet_audit_events_lost_total", "Events of the audit log that a destination did not take."
        ) { $0.lostAuditEvents },
        .init(
            "martlet_build_info", "Always 1; the version and the name of the instance are labels.",
            by: ["version", "instance_id"]
        ) { [MetricSample(1, $0.version, $0.readiness.instanceID)] },
        .init("martlet_process_start_time_seconds", "When the gateway was started.") { Int($0.startedAt.seconds) },
        .init("martlet_process_resident_memory_bytes", "Resident memory.") { $0.process.residentBytes },
        .init("martlet_process_cpu_seconds_total", "CPU time of all threads.", by: []) {
            $0.process.processorSeconds.map { [MetricSample($0)] }
        },
        .init("martlet_process_threads", "Threads.") { $0.process.threads },
        .init("martlet_process_open_fds", "Open file descriptors.") { $0.process.openDescriptors },
        .init("martlet_process_max_fds", "Limit of open file descriptors.") { $0.process.descriptorLimit },
    ]

    // MARK: Providers

    private static let providers: [MetricFamily] = [
        .init(
            "martlet_provider_state", "1 for the state of a provider, 0 for the others.",
            by: ["provider", "kind", "state"]
        ) { source in
            source.providers.flatMap { provider -> [MetricSample] in
                guard let health = provider.health else { return [] }
                return [ProviderHealth.State.ready, .degraded, .unavailable].map {
                    MetricSample(health.state == $0 ? 1 : 0, provider.name, provider.kind, $0.rawValue)
                }
            }
        }
    ]

    private static let providerCalls: [MetricFamily] = [
        .init(
            "martlet_bulkhead_calls", "Calls of a provider that run, and that wait for one of them to end.",
            by: ["provider", "state"]
        ) { bulkheads($0) { [("running", $0.running), ("waiting", $0.waiting)] } },
        .init(
            "martlet_bulkhead_failures_total",
            "Calls of a provider that had no turn, or had not ended at their deadline.", by: ["provider", "reason"]
        ) { bulkheads($0) { [("saturated", $0.saturated), ("timeout", $0.timedOut)] } },
        .init(
            "martlet_provider_logins_total", "Logins with the provider, by result.", by: ["provider", "result"]
        ) { results($0) { $0.logins } },
        .init(
            "martlet_provider_verifications_total",
            "Credentials of requests that the provider verified, by result; cached decisions are not among them.",
            by: ["provider", "result"]
        ) { results($0) { $0.verifications } },
        .histogram(
            "martlet_provider_verification_duration_seconds",
            "How long requests waited for the provider to verify their credential.", by: "provider"
        ) { source in
            source.providers.filter { $0.verifications.calls > 0 }.map {
                MetricHistogram(LatencyHistogram($0.verifications), $0.name)
            }
        },
    ]

    private static func bulkheads(
        _ source: MetricsSource, _ counts: (Bulkhead.Counts) -> [(String, Int)]
    ) -> [MetricSample]? {
        some(source.providers.filter { $0.bulkhead != nil })?.flatMap { provider in
            provider.bulkhead.map(counts)?.map { MetricSample($1, provider.name, $0) } ?? []
        }
    }

    private static func results(
        _ source: MetricsSource, _ counts: (AdminReport.Provider) -> CallCounts
    ) -> [MetricSample] {
        source.providers.map { ($0.name, counts($0)) }.filter { $1.calls > 0 }.flatMap { provider, counts in
            [
                MetricSample(counts.calls - counts.failures, provider, "success"),
                MetricSample(counts.failures, provider, "failure"),
            ]
        }
    }

    /// What providers report of themselves, each metric with the values of all of them.
    static func plugins(_ providers: [AdminReport.Provider]) -> [MetricFamily] {
        var found = OrderedDictionary<String, (gauge: ProviderHealth.Gauge, samples: [MetricSample])>()
        for provider in providers {
            var own: Set<String> = []
            for gauge in provider.health?.gauges ?? [] {
                let name = name(of: gauge)
                guard own.insert(name).inserted else { continue }
                found[name, default: (gauge, [])].samples.append(MetricSample(gauge.value, provider.name))
            }
        }
        return found.map { name, metric in
            let kind: MetricsWriter.Kind = metric.gauge.kind == .counter ? .counter : .gauge
            return MetricFamily("martlet_provider_\(name)", metric.gauge.help, kind, by: ["provider"]) { _ in
                metric.samples
            }
        }
    }

    /// Appends `_total` to the names of counters that lack it.
    private static func name(of gauge: ProviderHealth.Gauge) -> String {
        let name = MetricsWriter.name(gauge.name)
        return gauge.kind == .counter && !name.hasSuffix("_total") ? name + "_total" : name
    }
}
