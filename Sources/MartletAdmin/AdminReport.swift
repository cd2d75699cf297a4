package import MartletAccounts
package import MartletCore
package import MartletEvents
package import MartletProvider
package import MartletRedis
package import MartletResponder

/// A snapshot of everything that the admin pages show, as plain values.
// lint:large-type everything that the admin pages show
package struct AdminReport: Sendable {
    /// A provider and its health; `nil` if it does not report any.
    package struct Provider: Sendable {
        let name: String
        let kind: String
        let health: ProviderHealth?
        /// `nil` without a bulkhead.
        let bulkhead: Bulkhead.Counts?
        /// Credentials of requests that it verified, and logins.
        let verifications: CallCounts
        let logins: CallCounts

        package init(
            name: String, kind: String, health: ProviderHealth?, bulkhead: Bulkhead.Counts? = nil,
            verifications: CallCounts = CallCounts(), logins: CallCounts = CallCounts()
        ) {
            (self.name, self.kind, self.health, self.bulkhead) = (name, kind, health, bulkhead)
            (self.verifications, self.logins) = (verifications, logins)
        }
    }

    /// A certificate that the gateway presents, and its validity now.
    package struct Certificate: Sendable {
        /// `listener` or `upstream`.
        package let side: String
        /// The listener's address, or the upstream's name.
        package let name: String
        package let file: String
        /// Seconds until it expires; negative if it has expired.
        package let secondsLeft: Int
        package let isValid: Bool

        package init(side: String, name: String, file: String, secondsLeft: Int, isValid: Bool) {
            (self.side, self.name, self.file) = (side, name, file)
            (self.secondsLeft, self.isValid) = (secondsLeft, isValid)
        }
    }

    /// Probes of an upstream by their result, those that began more than an interval late, and how many of the probed
    /// endpoints are unhealthy now.
    package typealias HealthChecks = (
        upstream: String, successes: Int, failures: Int, delayed: Int, unhealthy: Int
    )

    /// How many copies of requests an upstream got, and how many failed or were dropped.
    package typealias Mirror = (upstream: String, sent: Int, failed: Int, dropped: Int)

    /// How many spans of sampled requests were sent and, by reason, lost.
    package typealias Tracing = (sent: Int, lost: [(reason: String, count: Int)])

    /// How many lines a log has lost; the file is its path, or `stdout`.
    package typealias LostLogLines = (file: String, lines: Int)

    /// One instant on both clocks.
    private struct Moment: Sendable {
        let unix: UnixTime
        let monotonic: MonotonicTime
    }

    /// The kind and the state of the shared store.
    package enum Store: Sendable {
        case memory
        case redis(RedisStatus)
    }

    /// The rate limits, and how often those that count in the store had no response.
    package struct Limits: Sendable {
        let reports: [LimitReport]
        /// `nil` without a shared limit.
        let storeFailures: Int?

        package init(_ reports: [LimitReport] = [], storeFailures: Int? = nil) {
            (self.reports, self.storeFailures) = (reports, storeFailures)
        }
    }

    /// What is left to do of changes of accounts.
    package struct Backlog: Sendable {
        /// The revocations of grants that have not succeeded; `nil` if another instance counts them.
        let revocations: PendingRevocations?
        /// Every webhook with the counters of this instance.
        let webhooks: [WebhookStatus]

        package init(revocations: PendingRevocations? = nil, webhooks: [WebhookStatus] = []) {
            (self.revocations, self.webhooks) = (revocations, webhooks)
        }
    }

    let readiness: Readiness
    let reloads: ReloadRecord
    let startedAt: UnixTime
    private let moment: Moment
    let version: String
    /// The last report of every loop that serves clients.
    package var loops: [LoopReport] = []
    /// How many loops responded in time.
    package var respondingLoops = 0
    /// The names under which requests that the gateway serves itself are counted.
    package var ownRoutes: Set<String> = []
    package var providers: [Provider] = []
    package var store = Store.memory
    /// The state of the subscription to revocations by other instances; `nil` for `memory:`.
    package var subscription: RedisStatus?
    /// `nil` without `accounts:`.
    package var accounts: AccountHealth?
    /// What is left to do of changes of accounts.
    package var backlog = Backlog()
    /// Password hashes that wait for a thread.
    package var hashesWaiting = 0
    /// Every certificate that the gateway presents to clients and upstreams.
    package var certificates: [Certificate] = []
    /// Every rate limit with the counters of this instance.
    package var limits = Limits()
    /// Whether too much memory is used; `nil` if an overload is not watched.
    package var isMemoryHigh: Bool?
    /// Of every log.
    package var lostLogLines: [LostLogLines] = []
    /// `nil` without an audit log.
    package var lostAuditEvents: Int?
    /// Every upstream that has health checks.
    package var healthChecks: [HealthChecks] = []
    /// Every upstream that gets copies of requests.
    package var mirrors: [Mirror] = []
    /// `nil` without `tracing:`.
    package var tracing: Tracing?
    package var process = ProcessStatus.current()

    var now: UnixTime { moment.unix }
    var monotonicNow: MonotonicTime { moment.monotonic }

    /// What every gateway has; the rest is added by its parts.
    package init(
        _ readiness: Readiness, _ reloads: ReloadRecord, version: String, startedAt: UnixTime, now: UnixTime,
        monotonicNow: MonotonicTime
    ) {
        (self.readiness, self.reloads, self.version, self.startedAt) = (readiness, reloads, version, startedAt)
        moment = Moment(unix: now, monotonic: monotonicNow)
    }
}

/// The number and the results of reloads.
package struct ReloadRecord: Sendable {
    private(set) var succeeded = 0
    private(set) var failed = 0
    /// When the current configuration was loaded.
    private(set) var loadedAt: UnixTime
    /// Whether the last reload succeeded, or there was none.
    private(set) var isCurrent = true

    package init(loadedAt: UnixTime) { self.loadedAt = loadedAt }

    /// Counts a reload.
    package mutating func record(success: Bool, at now: UnixTime) {
        isCurrent = success
        if success {
            succeeded += 1
            loadedAt = now
        } else {
            failed += 1
        }
    }
}
