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
    var healthChecks: [AdminReport.HealthChecks] = []
    var mirrors: [AdminReport.Mirror] = []
    var tracing: AdminReport.Tracing?
    var reloads = ReloadRecord(loadedAt: UnixTime(seconds: 1_700_000_000))

    var report: AdminReport {
        var report = AdminReport(
            readiness, reloads, version: "1.2.3", startedAt: UnixTime(seconds: 1_700_000_000),
            now: UnixTime(seconds: 1_700_000_100), monotonicNow: MonotonicTime(nanoseconds: 100_000_000_000))
        (report.loops, report.respondingLoops) = (loops, responding ?? loops.count)
        (report.providers, report.store, report.subscription) = (providers, store, subscription)
        (report.accounts, report.backlog) = (accounts, AdminReport.Backlog(webhooks: webhooks))
        (report.hashesWaiting, report.certificates, report.limits) = (2, certificates, limits)
        report.isMemoryHigh = isMemoryHigh
        report.lostLogLines = [(file: "stdout", lines: 3)]
        (report.healthChecks, report.mirrors, report.tracing) = (healthChecks, mirrors, tracing)
        report.process = ProcessStatus(memoryAndThreads: "VmRSS:\t   64 kB\nThreads:\t7\n", limits: "")
        return report
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
