internal import MartletAccounts
internal import MartletCore
internal import MartletEvents
internal import MartletProvider
internal import MartletRedis
internal import MartletResponder

/// `/metrics` in the Prometheus text format or as OpenMetrics, summed over the loops.
struct MetricsPage {
    var out: MetricsWriter

    var text: String { out.whole }

    /// The page in the format that a request prefers.
    static func response(_ report: AdminReport, accept: String?) -> LocalResponse {
        let format = MetricsFormat(accept: accept)
        return .text(200, format.mediaType, MetricsPage(report, format).text)
    }

    init(_ report: AdminReport, _ format: MetricsFormat = .prometheus) {
        out = MetricsWriter(format)
        let traffic = Traffic(report.loops)
        requests(traffic)
        latency(traffic)
        tokens(traffic)
        connections(traffic, report)
        transport(traffic)
        tunnels(traffic)
        limits(report.limits)
        overload(traffic.overload, isMemoryHigh: report.isMemoryHigh)
        upstreams(traffic)
        upstreamRequests(traffic)
        healthChecks(report.healthChecks)
        mirrors(report.mirrors)
        tracing(report.tracing)
        state(report)
        store(report)
        storeCalls(report)
        signIn(report)
        webhooks(report)
        certificates(report)
        server(report)
        process(report)
        providers(report.providers)
        providerCalls(report.providers)
    }

    // MARK: Requests

    private mutating func requests(_ traffic: Traffic) {
        out.family(
            "martlet_proxy_requests_total", .counter,
            "Completed requests by route and status; 499 if the client disconnected.")
        for (row, count) in traffic.requests {
            var labels: KeyValuePairs = ["route": row.route, "status": String(row.status)]
            if row.isCheck { labels = ["route": row.route, "status": String(row.status), "via": "check"] }
            out.sample(labels, count)
        }
        out.family(
            "martlet_proxy_refusals_total", .counter,
            "Requests that the gateway rejected or could not complete, by reason code as in the log.")
        for (reason, count) in traffic.rejections { out.sample(["reason": reason], count) }
    }

    private mutating func latency(_ traffic: Traffic) {
        out.family(
            "martlet_proxy_request_duration_seconds", .histogram,
            "Duration from the first byte of the request to the end of the response, by route.")
        for (route, histogram) in traffic.latency {
            for (index, count) in histogram.cumulative.enumerated() {
                let bound =
                    index < latencyBounds.count ? out.bound(Double(latencyBounds[index]) / 1e6) : "+Inf"
                out.sample(
                    ["route": route, "le": bound], suffix: "_bucket", count,
                    exemplar: traffic.exemplars[Traffic.Bucket(route: route, index: index)])
            }
            out.sample(["route": route], suffix: "_sum", Double(histogram.sumMicroseconds) / 1e6)
            out.sample(["route": route], suffix: "_count", histogram.count)
        }
    }

    private mutating func tokens(_ traffic: Traffic) {
        out.single(
            "martlet_proxy_token_hits_total", .counter, "Credentials with a cached decision.", traffic.tokens.hits)
        out.single(
            "martlet_proxy_token_misses_total", .counter, "Credentials that had to be verified.", traffic.tokens.misses)
        out.single(
            "martlet_proxy_token_entries", .gauge, "Cached authentication decisions.",
            traffic.tokens.entries)
    }

    private mutating func connections(_ traffic: Traffic, _ report: AdminReport) {
        out.single("martlet_proxy_connections_open", .gauge, "Open client connections.", traffic.connections.open)
        out.single(
            "martlet_proxy_connections_accepted_total", .counter, "Accepted client connections.",
            traffic.connections.accepted)
        out.single(
            "martlet_proxy_connections_refused_total", .counter,
            "Client connections closed immediately because a limit was reached.",
            traffic.connections.refused)
        out.single(
            "martlet_proxy_connections_displaced_total", .counter,
            "Client connections without a complete request for 250 ms, closed to make room for new ones.",
            traffic.connections.displaced)
        out.single("martlet_proxy_exchanges_open", .gauge, "Requests in progress.", traffic.openExchanges)
        out.single("martlet_proxy_loops", .gauge, "Event loops that serve clients.", report.loops.count)
        out.single(
            "martlet_proxy_loops_answering", .gauge, "Event loops that reported their counters in time.",
            report.respondingLoops)
    }

    private mutating func transport(_ traffic: Traffic) {
        out.single(
            "martlet_http2_connections_open", .gauge, "Open client connections with HTTP/2.",
            traffic.http2.openConnections)
        out.single(
            "martlet_http2_connections_total", .counter, "Client connections with HTTP/2.",
            traffic.http2.connections)
        out.single(
            "martlet_http2_connections_refused_total", .counter,
            "HTTP/2 connections closed because of a protocol error or an exceeded limit.", traffic.http2.errors)
        out.single("martlet_http2_streams_open", .gauge, "HTTP/2 requests in progress.", traffic.http2.openStreams)
        out.single("martlet_http2_streams_total", .counter, "Requests received over HTTP/2.", traffic.http2.streams)
        out.single(
            "martlet_http2_resets_total", .counter, "HTTP/2 requests that the client reset.",
            traffic.http2.resets)
        out.family(
            "martlet_tls_handshakes_total", .counter,
            "TLS handshakes with clients, by version and outcome: full, resumed, or the error code.")
        for row in traffic.handshakes.rows {
            out.sample(["version": row.version, "outcome": row.outcome], row.count)
        }
        out.family(
            "martlet_proxy_header_refusals_total", .counter,
            "Client connections closed because of a missing or invalid PROXY protocol header, by reason.")
        for (reason, count) in traffic.connections.proxyHeaderRejections.sorted(by: { $0.key < $1.key }) {
            out.sample(["reason": reason], count)
        }
    }

    private mutating func tunnels(_ traffic: Traffic) {
        out.single(
            "martlet_proxy_tunnels_open", .gauge, "Open tunnels: WebSockets and other upgraded connections.",
            traffic.tunnels.open)
        out.single(
            "martlet_proxy_tunnels_total", .counter, "Upgraded connections.", traffic.tunnels.opened)
        out.single(
            "martlet_proxy_upgrades_refused_total", .counter,
            "Upgrade requests that are malformed or not allowed by their route.", traffic.tunnels.rejectedUpgrades)
        out.family(
            "martlet_proxy_tunnel_ends_total", .counter, "Closed tunnels, by reason as in the log.")
        for (reason, count) in traffic.tunnels.ends.sorted(by: { $0.key < $1.key }) {
            out.sample(["reason": reason], count)
        }
    }

    private mutating func overload(_ overload: LoopReport.Overload, isMemoryHigh: Bool?) {
        guard let isMemoryHigh else { return }
        out.family(
            "martlet_server_overloaded", .gauge,
            "Why requests are rejected: the event loops that do not serve all of them, and 1 for too much memory.")
        out.sample(["cause": "loop"], overload.overloadedLoops)
        out.sample(["cause": "memory"], isMemoryHigh ? 1 : 0)
        out.single(
            "martlet_server_slow_turns_total", .counter, "How often events waited longer than loop_delay.",
            overload.slowTurns)
    }

    private mutating func limits(_ limits: AdminReport.Limits) {
        guard !limits.reports.isEmpty else { return }
        limit(limits, "admitted_total", .counter, "Requests that the rate limit let pass.", \.admitted)
        limit(limits, "limited_total", .counter, "Requests that the rate limit rejected.", \.limited)
        limit(limits, "entries", .gauge, "Keys, such as addresses, that the rate limit knows.", \.entries)
        limit(
            limits, "evictions_total", .counter,
            "Keys that the rate limit gave up for others before their buckets were full.", \.evictions)
        if let failures = limits.storeFailures {
            out.single(
                "martlet_rate_limit_store_failures_total", .counter,
                "Questions of rate limits to the store without a response in time.", failures)
        }
    }

    private mutating func limit(
        _ limits: AdminReport.Limits, _ name: String, _ kind: MetricsWriter.Kind, _ help: String,
        _ value: (LimitReport) -> Int
    ) {
        out.family("martlet_rate_limit_\(name)", kind, help)
        for report in limits.reports { out.sample(["limit": report.name], value(report)) }
    }

    private mutating func upstreams(_ traffic: Traffic) {
        endpoints(traffic, "connections_idle", "Idle connections to the endpoint.", \.idle)
        endpoints(traffic, "requests_active", "Requests in progress at the endpoint.", \.active)
        endpoints(traffic, "failures_in_row", "Consecutive failures of the endpoint.", \.failures)
        endpoints(traffic, "ejecting_loops", "Event loops that have ejected the endpoint.", \.ejectingLoops)
        out.family(
            "martlet_proxy_upstream_endpoint_state", .gauge,
            "1 for the state of the endpoint: healthy, slow_start, ejected, unhealthy or draining.")
        for (key, endpoint) in traffic.endpoints { sample(key, state: endpoint.state.rawValue, 1) }
        out.family(
            "martlet_proxy_upstream_panic", .gauge,
            "Whether all endpoints of the upstream are used, because fewer are usable than its panic_threshold.")
        var panics = OrderedDictionary<String, Int>()
        for (key, endpoint) in traffic.endpoints {
            panics[key.upstream, default: 0] = max(panics[key.upstream, default: 0], endpoint.isPanicking ? 1 : 0)
        }
        for (upstream, isPanicking) in panics { out.sample(["upstream": upstream], isPanicking) }
    }

    /// A sample of an endpoint; only those of a name with several have an address.
    private mutating func sample(_ key: Traffic.EndpointKey, state: String? = nil, _ value: Int) {
        switch (key.address, state) {
        case (nil, nil): out.sample(["upstream": key.upstream, "endpoint": key.endpoint], value)
        case (nil, let state?):
            out.sample(["upstream": key.upstream, "endpoint": key.endpoint, "state": state], value)
        case (let address?, nil):
            out.sample(["upstream": key.upstream, "endpoint": key.endpoint, "address": address], value)
        case (let address?, let state?):
            out.sample(
                ["upstream": key.upstream, "endpoint": key.endpoint, "address": address, "state": state], value)
        }
    }

    private mutating func endpoints(
        _ traffic: Traffic, _ name: String, _ help: String, _ value: (Traffic.Endpoint) -> Int
    ) {
        out.family("martlet_proxy_upstream_\(name)", .gauge, help)
        for (key, endpoint) in traffic.endpoints {
            sample(key, value(endpoint))
        }
    }

    private mutating func healthChecks(_ upstreams: [AdminReport.HealthChecks]) {
        guard !upstreams.isEmpty else { return }
        out.family(
            "martlet_upstream_health_checks_total", .counter, "Probes of the upstream's endpoints, by result.")
        for upstream in upstreams {
            out.sample(["upstream": upstream.upstream, "result": "success"], upstream.successes)
            out.sample(["upstream": upstream.upstream, "result": "failure"], upstream.failures)
        }
        out.family(
            "martlet_upstream_health_checks_delayed_total", .counter,
            "Probes that began more than an interval late, because too many others were in flight.")
        for upstream in upstreams { out.sample(["upstream": upstream.upstream], upstream.delayed) }
        out.family(
            "martlet_upstream_endpoints_unhealthy", .gauge, "Endpoints that are unhealthy by their probes.")
        for upstream in upstreams { out.sample(["upstream": upstream.upstream], upstream.unhealthy) }
    }

    private mutating func mirrors(_ upstreams: [AdminReport.Mirror]) {
        guard !upstreams.isEmpty else { return }
        out.family(
            "martlet_proxy_mirrored_requests_total", .counter,
            "Copies of requests for the upstream: sent (it responded), failed, or dropped because too many were under way."
        )
        for upstream in upstreams {
            out.sample(["upstream": upstream.upstream, "result": "sent"], upstream.sent)
            out.sample(["upstream": upstream.upstream, "result": "failed"], upstream.failed)
            out.sample(["upstream": upstream.upstream, "result": "dropped"], upstream.dropped)
        }
    }

    private mutating func tracing(_ tracing: AdminReport.Tracing?) {
        guard let tracing else { return }
        out.single("martlet_tracing_spans_sent_total", .counter, "Spans that the collector has taken.", tracing.sent)
        out.family(
            "martlet_tracing_spans_dropped_total", .counter,
            "Spans of sampled requests that were lost, by reason: queue_full, unavailable, rejected and others.")
        for (reason, count) in tracing.lost { out.sample(["reason": reason], count) }
    }

    // MARK: Dependencies

    private mutating func state(_ report: AdminReport) {
        out.family("martlet_server_state", .gauge, "1 for the state that /readyz reports, 0 for the others.")
        for state in Readiness.State.allCases {
            out.sample(["state": state.rawValue], report.readiness.state == state ? 1 : 0)
        }
    }

    private mutating func store(_ report: AdminReport) {
        guard case .redis(let status) = report.store else { return }
        out.family("martlet_redis_state", .gauge, "1 for the state of the connection to Redis, 0 for the others.")
        for state in [RedisStatus.State.connecting, .connected, .down, .stopped] {
            out.sample(["state": state.rawValue], status.state == state ? 1 : 0)
        }
        out.single(
            "martlet_redis_reconnects_total", .counter, "Reconnections to Redis.", status.reconnects)
        out.single(
            "martlet_redis_commands_total", .counter, "Commands sent to Redis.", status.commands)
        out.single(
            "martlet_redis_nodes", .gauge, "Redis servers with a connection that accepts commands.",
            status.nodes.count)
        out.family("martlet_redis_masters", .gauge, "Redis servers that have keys, by whether they are connected.")
        out.sample(["state": "up"], status.connectedMasters)
        out.sample(["state": "down"], status.masters - status.connectedMasters)
        out.single(
            "martlet_store_unreplicated_total", .counter,
            "Writes acknowledged although no replica had them in time.", status.unreplicated)
        out.single(
            "martlet_store_repeated_total", .counter, "Recent writes that were repeated at a new master.",
            status.repeated)
        if let counts = status.badSeals {
            out.family(
                "martlet_store_bad_seal_total", .counter, "Stored values that did not verify, by what they are.")
            for kind in SealedKind.allCases { out.sample(["kind": kind.rawValue], counts[kind] ?? 0) }
        }
        out.family("martlet_redis_failures_total", .counter, "Failed commands to Redis, by error code.")
        for (code, count) in status.failures.sorted(by: { $0.key.rawValue < $1.key.rawValue }) {
            out.sample(["code": code.rawValue], count)
        }
        out.single(
            "martlet_redis_last_latency_seconds", .gauge, "Latency of the last Redis command that got a reply.",
            status.lastLatency.map { Double($0.wholeNanoseconds) / 1e9 })
    }

    private mutating func signIn(_ report: AdminReport) {
        if let subscription = report.subscription {
            out.single(
                "martlet_session_revocations_heard", .gauge,
                "1 while this instance is subscribed to revocations by other instances.",
                subscription.state == .connected ? 1 : 0)
        }
        out.single(
            "martlet_server_hashes_waiting", .gauge, "Password hashes that wait for a thread.", report.hashesWaiting)
        guard let accounts = report.accounts else { return }
        out.family("martlet_accounts_state", .gauge, "1 for the state of the account store, 0 for the others.")
        for state in AccountHealth.State.allCases {
            out.sample(["state": state.rawValue], accounts.state == state ? 1 : 0)
        }
        out.single(
            "martlet_accounts_calls_total", .counter, "Queries to the account store.",
            accounts.calls)
        out.single(
            "martlet_accounts_reconnects_total", .counter,
            "Reconnections to the account store.",
            accounts.reconnects)
        out.family("martlet_accounts_failures_total", .counter, "Failed queries to the account store, by error code.")
        for (code, count) in accounts.failures.sorted(by: { $0.key.rawValue < $1.key.rawValue }) {
            out.sample(["code": code.rawValue], count)
        }
        guard let revocations = report.backlog.revocations else { return }
        out.single(
            "martlet_accounts_revocations_pending", .gauge,
            "Grants of deleted accounts that are not revoked at their issuer yet; from the instance that does it.",
            revocations.count)
    }

    private mutating func webhooks(_ report: AdminReport) {
        guard !report.backlog.webhooks.isEmpty else { return }
        out.family(
            "martlet_webhook_deliveries_total", .counter,
            "Attempts to deliver an event, by result: delivered, failed (it is repeated) or dead (it was given up).")
        for status in report.backlog.webhooks {
            for (result, count) in [("delivered", status.delivered), ("failed", status.failed), ("dead", status.dead)] {
                out.sample(["webhook": status.hook, "result": result], count)
            }
        }
        out.family(
            "martlet_webhook_holder", .gauge, "1 for a webhook to which this instance delivers, 0 if another one does.")
        for status in report.backlog.webhooks { out.sample(["webhook": status.hook], status.isHolder ? 1 : 0) }
        out.family(
            "martlet_webhook_backlog", .gauge,
            "Deliveries in the outbox, by state: open or dead; from the instance that delivers to the webhook.")
        for status in report.backlog.webhooks {
            guard let backlog = status.backlog else { continue }
            out.sample(["webhook": status.hook, "state": "open"], backlog.open)
            out.sample(["webhook": status.hook, "state": "dead"], backlog.dead)
        }
        out.family(
            "martlet_webhook_oldest_event_timestamp_seconds", .gauge,
            "When the oldest event happened that the webhook has not received; from the instance that delivers to it.")
        for status in report.backlog.webhooks {
            guard let oldest = status.backlog?.oldest else { continue }
            out.sample(["webhook": status.hook], Double(oldest) / 1000)
        }
    }

    private mutating func certificates(_ report: AdminReport) {
        guard !report.certificates.isEmpty else { return }
        out.family(
            "martlet_tls_certificate_expiry_seconds", .gauge,
            "Seconds until a certificate of a listener or an upstream expires; negative if it has expired.")
        for certificate in report.certificates {
            out.sample(
                ["side": certificate.side, "place": certificate.name, "file": certificate.file],
                certificate.secondsLeft)
        }
        out.family(
            "martlet_tls_certificate_valid", .gauge,
            "1 for a certificate that is valid now, 0 if it is expired or not valid yet.")
        for certificate in report.certificates {
            out.sample(
                ["side": certificate.side, "place": certificate.name, "file": certificate.file],
                certificate.isValid ? 1 : 0)
        }
    }

    private mutating func providers(_ providers: [AdminReport.Provider]) {
        out.family("martlet_provider_state", .gauge, "1 for the state of a provider, 0 for the others.")
        for provider in providers {
            guard let health = provider.health else { continue }
            for state in [ProviderHealth.State.ready, .degraded, .unavailable] {
                out.sample(
                    ["provider": provider.name, "kind": provider.kind, "state": state.rawValue],
                    health.state == state ? 1 : 0)
            }
        }
        for family in ProviderFamily.all(of: providers) {
            guard out.family("martlet_provider_\(family.name)", family.isCounter ? .counter : .gauge, family.help)
            else {
                continue
            }
            for (provider, value) in family.values { out.sample(["provider": provider], value) }
        }
        bulkheads(providers.compactMap { provider in provider.bulkhead.map { (provider.name, $0) } })
    }

    private mutating func bulkheads(_ bulkheads: [(provider: String, counts: Bulkhead.Counts)]) {
        guard !bulkheads.isEmpty else { return }
        out.family(
            "martlet_bulkhead_calls", .gauge, "Calls of a provider that run, and that wait for one of them to end.")
        for (provider, counts) in bulkheads {
            out.sample(["provider": provider, "state": "running"], counts.running)
            out.sample(["provider": provider, "state": "waiting"], counts.waiting)
        }
        out.family(
            "martlet_bulkhead_failures_total", .counter,
            "Calls of a provider that had no turn, or had not ended at their deadline.")
        for (provider, counts) in bulkheads {
            out.sample(["provider": provider, "reason": "saturated"], counts.saturated)
            out.sample(["provider": provider, "reason": "timeout"], counts.timedOut)
        }
    }

    // MARK: The process

    private mutating func server(_ report: AdminReport) {
        out.family("martlet_server_reloads_total", .counter, "Reloads of the configuration, by result.")
        out.sample(["result": "success"], report.reloads.succeeded)
        out.sample(["result": "failure"], report.reloads.failed)
        out.single(
            "martlet_server_configuration_loaded_timestamp_seconds", .gauge,
            "When the current configuration was loaded.", Int(report.reloads.loadedAt.seconds))
        out.single(
            "martlet_server_configuration_current", .gauge, "1 if the last reload succeeded, 0 if it failed.",
            report.reloads.isCurrent ? 1 : 0)
        out.family(
            "martlet_log_lines_lost_total", .counter,
            "Log lines that could not be written: a slow or closed reader, or a full disk.")
        for log in report.lostLogLines { out.sample(["file": log.file], log.lines) }
        if let lost = report.lostAuditEvents {
            out.single(
                "martlet_audit_events_lost_total", .counter,
                "Events of the audit log that a destination did not take.", lost)
        }
    }

    private mutating func process(_ report: AdminReport) {
        out.family("martlet_build_info", .gauge, "Always 1; the version and the name of the instance are labels.")
        out.sample(["version": report.version, "instance_id": report.readiness.instanceID], 1)
        out.single(
            "martlet_process_start_time_seconds", .gauge, "When the gateway was started.", Int(report.startedAt.seconds)
        )
        let process = report.process
        out.single(
            "martlet_process_resident_memory_bytes", .gauge, "Resident memory.", process.residentBytes)
        out.single(
            "martlet_process_cpu_seconds_total", .counter, "CPU time of all threads.",
            process.processorSeconds)
        out.single("martlet_process_threads", .gauge, "Threads.", process.threads)
        out.single("martlet_process_open_fds", .gauge, "Open file descriptors.", process.openDescriptors)
        out.single("martlet_process_max_fds", .gauge, "Limit of open file descriptors.", process.descriptorLimit)
    }
}

/// One metric that providers report, with the values of all of them.
private struct ProviderFamily {
    let name: String
    let help: String
    let isCounter: Bool
    private(set) var values: [(provider: String, value: Double)] = []

    static func all(of providers: [AdminReport.Provider]) -> [ProviderFamily] {
        var families: [ProviderFamily] = []
        for provider in providers {
            var own: Set<String> = []
            for gauge in provider.health?.gauges ?? [] {
                let name = name(of: gauge)
                guard own.insert(name).inserted else { continue }
                let index: Int
                if let known = families.firstIndex(where: { $0.name == name }) {
                    index = known
                } else {
                    index = families.count
                    families.append(ProviderFamily(name: name, help: gauge.help, isCounter: gauge.kind == .counter))
                }
                families[index].values.append((provider.name, gauge.value))
            }
        }
        return families
    }

    /// Appends `_total` to the names of counters that lack it.
    private static func name(of gauge: ProviderHealth.Gauge) -> String {
        let name = MetricsWriter.name(gauge.name)
        return gauge.kind == .counter && !name.hasSuffix("_total") ? name + "_total" : name
    }
}
