internal import MartletAccounts
internal import MartletCore
internal import MartletProvider
internal import MartletProxy
internal import MartletRedis

/// `/metrics` in the Prometheus text format; every number is summed over the loops.
struct MetricsPage {
    static let mediaType = "text/plain; version=0.0.4; charset=utf-8"

    private var out = MetricsWriter()

    var text: String { out.text }

    init(_ report: AdminReport) {
        let traffic = Traffic(report.loops)
        requests(traffic)
        latency(traffic)
        tokens(traffic)
        connections(traffic, report)
        wire(traffic)
        tunnels(traffic)
        upstreams(traffic)
        state(report)
        store(report)
        signIn(report)
        certificates(report)
        server(report)
        process(report)
        providers(report.providers)
    }

    // MARK: Requests

    private mutating func requests(_ traffic: Traffic) {
        out.family(
            "martlet_proxy_requests_total", .counter,
            "Requests that ended, by route and status; 499 is a client that left.")
        for (row, count) in traffic.requests {
            out.sample(["route": row.route, "status": String(row.status)], count)
        }
        out.family(
            "martlet_proxy_refusals_total", .counter,
            "Requests that the gateway did not carry through, by the fine reason that the log has too.")
        for (reason, count) in traffic.refusals { out.sample(["reason": reason], count) }
    }

    private mutating func latency(_ traffic: Traffic) {
        out.family(
            "martlet_proxy_request_duration_seconds", .histogram,
            "From the first byte of a request to the end of its answer, by route.")
        for (route, histogram) in traffic.latency {
            for (index, count) in histogram.cumulative.enumerated() {
                let bound =
                    index < latencyBounds.count ? MetricsWriter.number(Double(latencyBounds[index]) / 1e6) : "+Inf"
                out.sample(["route": route, "le": bound], suffix: "_bucket", count)
            }
            out.sample(["route": route], suffix: "_sum", Double(histogram.sumMicroseconds) / 1e6)
            out.sample(["route": route], suffix: "_count", histogram.count)
        }
    }

    private mutating func tokens(_ traffic: Traffic) {
        out.single(
            "martlet_proxy_token_hits_total", .counter, "Credentials whose verdict was still known.", traffic.tokenHits)
        out.single(
            "martlet_proxy_token_misses_total", .counter, "Credentials that had to be judged.", traffic.tokenMisses)
        out.single(
            "martlet_proxy_token_entries", .gauge, "Decisions of routes about tokens that are kept.",
            traffic.tokenEntries)
    }

    private mutating func connections(_ traffic: Traffic, _ report: AdminReport) {
        out.single("martlet_proxy_connections_open", .gauge, "Connections of clients.", traffic.openConnections)
        out.single(
            "martlet_proxy_connections_accepted_total", .counter, "Connections of clients that were accepted.",
            traffic.acceptedConnections)
        out.single(
            "martlet_proxy_connections_refused_total", .counter,
            "Connections closed at once because a limit was reached.",
            traffic.refusedConnections)
        out.single(
            "martlet_proxy_connections_displaced_total", .counter,
            "Connections that had not sent a whole request within 250 ms, closed because their places were needed.",
            traffic.displacedConnections)
        out.single("martlet_proxy_exchanges_open", .gauge, "Requests under way.", traffic.openExchanges)
        out.single("martlet_proxy_loops", .gauge, "Event loops that serve clients.", report.loops.count)
        out.single(
            "martlet_proxy_loops_answering", .gauge, "Event loops that gave their counters in time.",
            report.answeringLoops)
    }

    private mutating func wire(_ traffic: Traffic) {
        out.single(
            "martlet_http2_connections_open", .gauge, "Connections of clients that speak HTTP/2.",
            traffic.openHTTP2Connections)
        out.single(
            "martlet_http2_connections_total", .counter, "Connections of clients that went over to HTTP/2.",
            traffic.http2Connections)
        out.single(
            "martlet_http2_connections_refused_total", .counter,
            "Connections of HTTP/2 ended because the client broke the protocol or its bounds.", traffic.http2Refusals)
        out.single("martlet_http2_streams_open", .gauge, "Requests under way on them.", traffic.openStreams)
        out.single("martlet_http2_streams_total", .counter, "Requests that came over HTTP/2.", traffic.http2Streams)
        out.single(
            "martlet_http2_resets_total", .counter, "Requests over HTTP/2 that the client took back.",
            traffic.http2Resets)
        out.family(
            "martlet_tls_handshakes_total", .counter,
            "TLS handshakes with clients, by version and outcome: full, resumed, or why it failed.")
        for row in traffic.handshakes.rows {
            out.sample(["version": row.version, "outcome": row.outcome], row.count)
        }
        out.family(
            "martlet_proxy_header_refusals_total", .counter,
            "Connections closed for want of a PROXY protocol header, by reason.")
        for (reason, count) in traffic.proxyHeaderRefusals.sorted(by: { $0.key < $1.key }) {
            out.sample(["reason": reason], count)
        }
    }

    private mutating func tunnels(_ traffic: Traffic) {
        out.single(
            "martlet_proxy_tunnels_open", .gauge, "WebSockets and other connections that were handed over.",
            traffic.openTunnels)
        out.single(
            "martlet_proxy_tunnels_total", .counter, "Connections that were handed over.", traffic.openedTunnels)
        out.single(
            "martlet_proxy_upgrades_refused_total", .counter,
            "Requests to upgrade that their route does not allow, or that are malformed.", traffic.refusedUpgrades)
        out.family(
            "martlet_proxy_tunnel_ends_total", .counter, "Tunnels that ended, by the reason that the log has too.")
        for (reason, count) in traffic.tunnelEnds.sorted(by: { $0.key < $1.key }) {
            out.sample(["reason": reason], count)
        }
    }

    private mutating func upstreams(_ traffic: Traffic) {
        endpoints(traffic, "connections_idle", "Connections to the endpoint that wait for a request.", \.idle)
        endpoints(traffic, "requests_active", "Requests that the endpoint is answering.", \.active)
        endpoints(traffic, "failures_in_row", "Failures since the endpoint last did well.", \.failures)
        endpoints(traffic, "ejecting_loops", "Event loops that leave the endpoint out for now.", \.ejectingLoops)
    }

    private mutating func endpoints(
        _ traffic: Traffic, _ name: String, _ help: String, _ value: (Traffic.Endpoint) -> Int
    ) {
        out.family("martlet_proxy_upstream_\(name)", .gauge, help)
        for (place, endpoint) in traffic.endpoints {
            out.sample(["upstream": place.upstream, "endpoint": place.endpoint], value(endpoint))
        }
    }

    // MARK: Dependencies

    private mutating func state(_ report: AdminReport) {
        out.family("martlet_server_state", .gauge, "1 for the state that /readyz tells, 0 for the others.")
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
            "martlet_redis_reconnects_total", .counter, "Connections to Redis made after the first.", status.reconnects)
        out.single(
            "martlet_redis_commands_total", .counter, "Commands for Redis, whatever came of them.", status.commands)
        out.family("martlet_redis_failures_total", .counter, "Commands for Redis that failed, by code.")
        for (code, count) in status.failures.sorted(by: { $0.key.rawValue < $1.key.rawValue }) {
            out.sample(["code": code.rawValue], count)
        }
        out.single(
            "martlet_redis_last_latency_seconds", .gauge, "From writing the last answered command to its reply.",
            status.lastLatency.map { Double($0.wholeNanoseconds) / 1e9 })
    }

    private mutating func signIn(_ report: AdminReport) {
        if let listener = report.listener {
            out.single(
                "martlet_session_revocations_heard", .gauge,
                "1 while this instance hears at once of sessions that others end.", listener.state == .connected ? 1 : 0
            )
        }
        out.single(
            "martlet_server_hashes_waiting", .gauge, "Password hashes that wait for a thread.", report.hashesWaiting)
        guard let accounts = report.accounts else { return }
        out.family("martlet_accounts_state", .gauge, "1 for the state of the account store, 0 for the others.")
        for state in AccountHealth.State.allCases {
            out.sample(["state": state.rawValue], accounts.state == state ? 1 : 0)
        }
        out.single(
            "martlet_accounts_calls_total", .counter, "Questions to the account store, whatever came of them.",
            accounts.calls)
        out.single(
            "martlet_accounts_reconnects_total", .counter,
            "Connections to the account store made after the first ones.",
            accounts.reconnects)
        out.family("martlet_accounts_failures_total", .counter, "Questions that the account store left open, by code.")
        for (code, count) in accounts.failures.sorted(by: { $0.key.rawValue < $1.key.rawValue }) {
            out.sample(["code": code.rawValue], count)
        }
    }

    private mutating func certificates(_ report: AdminReport) {
        guard !report.certificates.isEmpty else { return }
        out.family(
            "martlet_tls_certificate_expiry_seconds", .gauge,
            "Until a certificate that is shown expires, by who gets to see it; negative when it has.")
        for shown in report.certificates {
            out.sample(
                ["side": shown.side, "place": shown.place, "file": shown.file], shown.secondsLeft(at: report.now))
        }
        out.family(
            "martlet_tls_certificate_valid", .gauge,
            "1 for a certificate that is neither expired nor yet to come, 0 for another.")
        for shown in report.certificates {
            out.sample(
                ["side": shown.side, "place": shown.place, "file": shown.file],
                shown.problem(at: report.now) == nil ? 1 : 0)
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
    }

    // MARK: The process

    private mutating func server(_ report: AdminReport) {
        out.family("martlet_server_reloads_total", .counter, "Configurations read again while running, by result.")
        out.sample(["result": "success"], report.reloads.succeeded)
        out.sample(["result": "failure"], report.reloads.failed)
        out.single(
            "martlet_server_configuration_loaded_timestamp_seconds", .gauge,
            "When the configuration in force was taken over.", Int(report.reloads.loadedAt.seconds))
        out.single(
            "martlet_server_configuration_current", .gauge, "1 when the last configuration asked for is in force.",
            report.reloads.isLastInForce ? 1 : 0)
        out.single(
            "martlet_server_log_batches_dropped_total", .counter,
            "Runs of log lines dropped because their reader was slow.",
            report.droppedLogBatches)
    }

    private mutating func process(_ report: AdminReport) {
        out.family("martlet_build_info", .gauge, "1; the version is in the label.")
        out.sample(["version": report.version], 1)
        out.single(
            "martlet_process_start_time_seconds", .gauge, "When the gateway was started.", Int(report.startedAt.seconds)
        )
        let process = report.process
        out.single(
            "martlet_process_resident_memory_bytes", .gauge, "Memory that is held in RAM.", process.residentBytes)
        out.single(
            "martlet_process_cpu_seconds_total", .counter, "Processor time used, of all threads.",
            process.processorSeconds)
        out.single("martlet_process_threads", .gauge, "Threads.", process.threads)
        out.single("martlet_process_open_fds", .gauge, "Open file descriptors.", process.openDescriptors)
        out.single("martlet_process_max_fds", .gauge, "File descriptors that may be open.", process.descriptorLimit)
    }
}

/// One number that providers report, of all providers that report it.
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
                let place: Int
                if let known = families.firstIndex(where: { $0.name == name }) {
                    place = known
                } else {
                    place = families.count
                    families.append(ProviderFamily(name: name, help: gauge.help, isCounter: gauge.kind == .counter))
                }
                families[place].values.append((provider.name, gauge.value))
            }
        }
        return families
    }

    /// Counters end in `_total`, whatever the plugin calls them.
    private static func name(of gauge: ProviderHealth.Gauge) -> String {
        let name = MetricsWriter.name(gauge.name)
        return gauge.kind == .counter && !name.hasSuffix("_total") ? name + "_total" : name
    }
}
