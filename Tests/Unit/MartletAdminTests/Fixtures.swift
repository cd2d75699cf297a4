import MartletAccounts
import MartletConfig
import MartletCore
import MartletEvents
import MartletProvider
import MartletRedis
import MartletResponder

@testable import MartletAdmin

/// A report of a busy gateway; tests change the values that they test.
struct ReportFixture {
    var loops: [LoopReport] = []
    var responding: Int?
    var routes = ["api"]
    var providers: [AdminReport.Provider] = []
    var store = AdminReport.Store.memory
    var subscription: RedisStatus?
    var accounts: AccountHealth?
    var webhooks: [WebhookStatus] = []
    var onError = StoreConfiguration.OnError.cached
    var isDraining = false
    var certificates: [AdminReport.Certificate] = []
    var limits = AdminReport.Limits()
    var isMemoryHigh: Bool?
    var addresses = ["127.0.0.1:8080"]
    var healthChecks: [AdminReport.HealthChecks] = []
    var mirrors: [AdminReport.Mirror] = []
    var tracing: AdminReport.Tracing?
    var reloads = ReloadRecord(loadedAt: UnixTime(seconds: 1_700_000_000))

    var report: AdminReport {
        AdminReport(
            readiness: readiness, loops: loops, respondingLoops: responding ?? loops.count, routes: routes,
            providers: providers, store: store, subscription: subscription, accounts: accounts,
            backlog: AdminReport.Backlog(webhooks: webhooks),
            hashesWaiting: 2, certificates: certificates, limits: limits,
            isMemoryHigh: isMemoryHigh, addresses: addresses,
            lostLogLines: [AdminReport.LostLogLines(file: "stdout", lines: 3)], reloads: reloads,
            process: ProcessStatus(memoryAndThreads: "VmRSS:\t   64 kB\nThreads:\t7\n", limits: ""),
            startedAt: UnixTime(seconds: 1_700_000_000), now: UnixTime(seconds: 1_700_000_100),
            monotonicNow: MonotonicTime(nanoseconds: 100_000_000_000), version: "1.2.3", healthChecks: healthChecks,
            mirrors: mirrors, tracing: tracing)
    }

    var readiness: Readiness {
        Readiness(
            instanceID: "edge-1", store: store, subscription: subscription, accounts: accounts, onError: onError,
            providers: providers,
            isDraining: isDraining)
    }

    /// One loop's report with rows of (route, status, count).
    static func loop(_ number: Int, _ rows: [(String, Int, Int)] = [], reasons: [String: Int] = [:]) -> LoopReport {
        var report = LoopReport()
        report.loop = number
        report.requests = rows.map { LoopReport.Requests(route: $0.0, status: $0.1, count: $0.2) }
        report.reasons = reasons
        return report
    }

    static func provider(
        _ name: String, _ state: ProviderHealth.State, _ gauges: [ProviderHealth.Gauge] = []
    ) -> AdminReport.Provider {
        .init(
            name: name, kind: "apple", health: ProviderHealth(state: state, detail: "detail of \(name)", gauges: gauges)
        )
    }

    /// Connected, without one of three masters.
    static func impaired() -> AdminReport.Store {
        guard case .redis(var status) = redis(.connected) else { return .memory }
        (status.masters, status.connectedMasters, status.unassignedSlots) = (3, 2, 7)
        status.lostMasters[.tcp(host: "h2", port: 7002)] = StoreError(
            code: "redis.connect_failed", message: "connection refused")
        return .redis(status)
    }

    static func redis(
        _ state: RedisStatus.State, failures: [ErrorCode: Int] = [:], code: ErrorCode = "redis.connect_failed"
    ) -> AdminReport.Store {
        var status = RedisStatus(since: MonotonicTime(nanoseconds: 0))
        status.state = state
        status.failures = failures
        if state == .down { status.lastError = StoreError(code: code, message: "connection refused") }
        return .redis(status)
    }
}
