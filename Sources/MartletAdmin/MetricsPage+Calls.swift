internal import MartletAccounts
internal import MartletCore
internal import MartletRedis

/// Requests by upstream, and the calls of the gateway to what it depends on.
extension MetricsPage {
    mutating func upstreamRequests(_ traffic: Traffic) {
        guard !traffic.upstreams.isEmpty else { return }
        out.family(
            "martlet_proxy_upstream_requests_total", .counter,
            "Finished requests that were forwarded to the upstream, by result: error is a response with 5xx.")
        for (upstream, counted) in traffic.upstreams {
            out.sample(["upstream": upstream, "result": "success"], counted.requests - counted.errors)
            out.sample(["upstream": upstream, "result": "error"], counted.errors)
        }
        out.family(
            "martlet_proxy_upstream_request_duration_seconds", .histogram,
            "Duration of requests that were forwarded to the upstream, from their first byte to the end of the response."
        )
        for (upstream, counted) in traffic.upstreams { histogram(("upstream", upstream), counted.latency) }
    }

    mutating func providerCalls(_ providers: [AdminReport.Provider]) {
        results(
            "martlet_provider_logins_total", "Logins with the provider, by result.",
            providers.map { ($0.name, $0.logins) })
        results(
            "martlet_provider_verifications_total",
            "Credentials of requests that the provider verified, by result; cached decisions are not among them.",
            providers.map { ($0.name, $0.verifications) })
        out.family(
            "martlet_provider_verification_duration_seconds", .histogram,
            "How long requests waited for the provider to verify their credential.")
        for provider in providers where provider.verifications.calls > 0 {
            histogram(("provider", provider.name), LatencyHistogram(provider.verifications))
        }
    }

    mutating func storeCalls(_ report: AdminReport) {
        if case .redis(let status) = report.store {
            out.family(
                "martlet_redis_command_duration_seconds", .histogram, "Duration of commands to Redis with a reply.")
            histogram(nil, LatencyHistogram(status.calls))
        }
        guard let accounts = report.accounts else { return }
        out.family(
            "martlet_accounts_call_duration_seconds", .histogram, "Duration of calls to the account store.")
        histogram(nil, LatencyHistogram(accounts.counts))
    }

    /// The samples of a histogram in the current family.
    private mutating func histogram(_ label: (name: String, value: String)?, _ histogram: LatencyHistogram) {
        for (index, count) in histogram.cumulative.enumerated() {
            let bound = index < latencyBounds.count ? out.bound(Double(latencyBounds[index]) / 1e6) : "+Inf"
            let labels: MetricsWriter.Labels = label.map { [$0.name: $0.value, "le": bound] } ?? ["le": bound]
            out.sample(labels, suffix: "_bucket", count)
        }
        let labels: MetricsWriter.Labels = label.map { [$0.name: $0.value] } ?? [:]
        out.sample(labels, suffix: "_sum", Double(histogram.sumMicroseconds) / 1e6)
        out.sample(labels, suffix: "_count", histogram.count)
    }

    private mutating func results(_ name: String, _ help: String, _ calls: [(provider: String, counts: CallCounts)]) {
        out.family(name, .counter, help)
        for (provider, counts) in calls where counts.calls > 0 {
            out.sample(["provider": provider, "result": "success"], counts.calls - counts.failures)
            out.sample(["provider": provider, "result": "failure"], counts.failures)
        }
    }
}
