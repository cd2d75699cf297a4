internal import MartletAccounts
internal import MartletCore
internal import MartletJSON
internal import MartletProvider
internal import MartletRedis
internal import MartletResponder

/// The documents of the admin listener: the state of everything, with the counters of the last ten minutes.
struct AdminDocuments {
    private static let day = 86_400

    private let report: AdminReport
    private let facts: ConfigurationFacts
    private let traffic: Traffic
    private let samples: CounterSamples
    private let history: CounterHistory

    init(_ report: AdminReport, _ facts: ConfigurationFacts, _ history: CounterHistory) {
        self.report = report
        self.facts = facts
        self.history = history
        traffic = Traffic(report.loops)
        samples = CounterSamples(report, traffic)
    }

    /// `GET /status`.
    /// - Parameters:
    ///   - mayChange: whether this client may change something.
    ///   - needsToken: whether it needs the token for that.
    func status(mayChange: Bool, needsToken: Bool) -> LocalResponse {
        .admin([
            "version": .string(report.version), "instance": .string(report.readiness.instanceID),
            "state": .string(report.readiness.state.rawValue),
            "checks": .array(
                report.readiness.checks.map {
                    ["name": .string($0.name), "state": .string($0.state), "detail": .string($0.detail)]
                }),
            "uptime_seconds": .integer(max(report.now.seconds - report.startedAt.seconds, 0)),
            "loops": .integer(Int64(report.loops.count)),
            "loops_responding": .integer(Int64(report.respondingLoops)),
            "configuration": [
                "digest": .string(facts.digest),
                "loaded_at": .string(time(report.reloads.loadedAt.seconds)),
                "current": .bool(report.reloads.isCurrent),
                "reloads": .integer(Int64(report.reloads.succeeded)),
                "failed_reloads": .integer(Int64(report.reloads.failed)),
            ],
            "listeners": .array(
                facts.listeners.map {
                    ["address": .string($0.address), "role": .string($0.role), "tls": .bool($0.isSecure)]
                }),
            "certificates": .array(report.certificates.map { .object(certificate($0)) }),
            "connections": [
                "open": .integer(Int64(traffic.counts.connections.open)),
                "accepted": .integer(Int64(traffic.counts.connections.accepted)),
                "refused": .integer(Int64(traffic.counts.connections.refused)),
            ],
            "requests_open": .integer(Int64(traffic.counts.openExchanges)),
            "tunnels_open": .integer(Int64(traffic.counts.tunnels.open)),
            "overloaded": .array(overloads.map { .string($0) }),
            "memory_bytes": integer(report.process.residentBytes),
            "open_files": integer(report.process.openDescriptors),
            "open_files_limit": integer(report.process.descriptorLimit),
            "reasons": .object(
                JSONObject(traffic.rejections.map { ($0.reason, .integer(Int64($0.count))) })),
            "last": .object(last(.all)),
            "access": ["change": .bool(mayChange), "token": .bool(needsToken)],
        ])
    }

    /// `GET /routes`.
    var routes: LocalResponse {
        let own = report.ownRoutes.sorted().map { name -> JSONValue in
            ["name": .string(name), "target": "this gateway", "last": .object(last(.route(name)))]
        }
        return .admin([
            "routes": .array(
                facts.routes.map { route in
                    [
                        "name": .string(route.name), "hosts": .array(route.hosts.map { .string($0) }),
                        "path": .string(route.path), "methods": .array(route.methods.map { .string($0) }),
                        "headers": .array(route.headers.map { .string($0) }),
                        "query": .array(route.query.map { .string($0) }),
                        "auth": .string(route.auth), "conditions": .integer(Int64(route.conditions)),
                        "target": .string(route.target), "requests": statuses(of: route.name),
                        "last": .object(last(.route(route.name))),
                    ]
                }),
            "own": .array(own),
        ])
    }

    /// `GET /providers`.
    var providers: LocalResponse {
        .admin([
            "providers": .array(
                report.providers.map { provider in
                    var document: JSONObject = ["name": .string(provider.name), "kind": .string(provider.kind)]
                    document["state"] = .string(provider.health?.state.rawValue ?? "ready")
                    document["detail"] = .string(provider.health?.detail ?? "")
                    document["logins"] = [
                        "total": .integer(Int64(provider.logins.calls)),
                        "rejected": .integer(Int64(provider.logins.failures)),
                    ]
                    for gauge in provider.health?.gauges ?? [] {
                        document[gauge.name] = JSONNumber(gauge.value).map { .number($0) } ?? .null
                    }
                    if let bulkhead = provider.bulkhead {
                        document["bulkhead"] = [
                            "running": .integer(Int64(bulkhead.running)), "waiting": .integer(Int64(bulkhead.waiting)),
                            "saturated": .integer(Int64(bulkhead.saturated)),
                            "timed_out": .integer(Int64(bulkhead.timedOut)),
                        ]
                    }
                    document["last"] = .object(last(.provider(provider.name)))
                    return .object(document)
                })
        ])
    }

    /// `GET /store`.
    var store: LocalResponse {
        var document = JSONObject()
        switch report.store {
        case .memory:
            document["kind"] = "memory"
            document["state"] = "ready"
        case .redis(let status):
            document["kind"] = "redis"
            document["state"] = .string(status.state.rawValue)
            document["since"] = .string(time(since: status.since))
            document["detail"] = .string(
                StoreImpairment(status)?.detail ?? (status.state == .connected ? "" : status.lastError?.message ?? ""))
            document["nodes"] = .array(status.nodes.map { .string("\($0)") }.sorted { "\($0)" < "\($1)" })
            document["masters"] = .integer(Int64(status.masters))
            document["masters_connected"] = .integer(Int64(status.connectedMasters))
            document["reconnects"] = .integer(Int64(status.reconnects))
            document["commands"] = .integer(Int64(status.commands))
            document["failures"] = failures(status.failures)
        }
        document["revocations"] = report.subscription.map { .string($0.state.rawValue) } ?? .null
        document["last"] = .object(last(.store))
        return .admin(.object(document))
    }

    /// `GET /accounts`; `nil` without `accounts:`.
    var accounts: LocalResponse? {
        guard let accounts = report.accounts else { return nil }
        var document: JSONObject = [
            "state": .string(accounts.state.rawValue), "detail": .string(accounts.detail),
            "calls": .integer(Int64(accounts.calls)), "failures": failures(accounts.failures),
            "reconnects": .integer(Int64(accounts.reconnects)),
        ]
        // Counted by one instance.
        if let revocations = report.backlog.revocations {
            let age = revocations.oldest.map { oldest in
                max(report.now.milliseconds.subtractingReportingOverflow(oldest).partialValue / 1000, 0)
            }
            document["revocations"] = .object([
                "pending": .integer(Int64(revocations.count)), "oldest_s": age.map { .integer($0) } ?? .null,
            ])
        }
        document["last"] = .object(last(.accounts))
        return .admin(.object(document))
    }

    // MARK: Parts

    /// What something has counted in the last 10 s, minute and 10 minutes.
    func last(_ key: CounterKey) -> JSONObject {
        history.last(key, current: samples.all[key] ?? CounterSample(), at: report.monotonicNow)
    }

    private var overloads: [String] {
        var causes: [String] = []
        if traffic.counts.overload.overloadedLoops > 0 { causes.append("loop") }
        if report.isMemoryHigh == true { causes.append("memory") }
        return causes
    }

    private func statuses(of route: String) -> JSONValue {
        var counts: [Int: Int] = [:]
        for (row, count) in traffic.requests where row.route == route { counts[row.status, default: 0] += count }
        let sorted = counts.sorted { $0.key < $1.key }
        return .object(JSONObject(sorted.map { (String($0.key), .integer(Int64($0.value))) }))
    }

    private func certificate(_ certificate: AdminReport.Certificate) -> JSONObject {
        let (expiry, overflow) = report.now.seconds.addingReportingOverflow(Int64(certificate.secondsLeft))
        return [
            "file": .string(certificate.file), "place": .string(certificate.name), "side": .string(certificate.side),
            "not_after": overflow ? .null : .string(time(expiry)),
            "days_left": .integer(Int64((Double(certificate.secondsLeft) / Double(Self.day)).rounded(.down))),
            "valid": .bool(certificate.isValid),
        ]
    }

    private func failures(_ counts: [ErrorCode: Int]) -> JSONValue {
        let sorted = counts.sorted { $0.key.rawValue < $1.key.rawValue }
        return .object(JSONObject(sorted.map { ($0.key.rawValue, .integer(Int64($0.value))) }))
    }

    private func integer(_ value: Int?) -> JSONValue { value.map { .integer(Int64($0)) } ?? .null }

    private func time(_ seconds: Int64) -> String {
        InternetTime.text(milliseconds: seconds.multipliedReportingOverflow(by: 1000).partialValue)
    }

    private func time(since instant: MonotonicTime) -> String {
        time(report.now.seconds - max(report.monotonicNow.since(instant).wholeSeconds, 0))
    }
}

/// The counters of everything, as samples for the history.
struct CounterSamples: Sendable {
    private(set) var all: [CounterKey: CounterSample] = [:]

    init(_ report: AdminReport, _ traffic: Traffic) {
        var sum = CounterSample()
        for (row, count) in traffic.requests {
            let errors = row.status >= 500 ? count : 0
            all[.route(row.route), default: CounterSample()].add(CounterSample(count: count, errors: errors))
            sum.add(CounterSample(count: count, errors: errors))
        }
        for (route, histogram) in traffic.latency {
            all[.route(route)]?.buckets = histogram.buckets
            sum.add(CounterSample(buckets: histogram.buckets))
        }
        sum.hits = traffic.counts.tokens.hits
        all[.all] = sum
        for (name, upstream) in traffic.upstreams {
            all[.upstream(name)] = CounterSample(
                count: upstream.requests, errors: upstream.errors, buckets: upstream.latency.buckets)
        }
        for provider in report.providers {
            let requests = traffic.providers[provider.name] ?? 0
            all[.provider(provider.name)] = CounterSample(
                count: requests + provider.logins.calls,
                errors: provider.verifications.failures + provider.logins.failures,
                hits: max(requests - provider.verifications.calls, 0), buckets: provider.verifications.buckets)
        }
        if case .redis(let status) = report.store { all[.store] = CounterSample(status.calls) }
        if let accounts = report.accounts { all[.accounts] = CounterSample(accounts.counts) }
    }
}
