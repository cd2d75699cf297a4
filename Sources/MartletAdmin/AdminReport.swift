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

    /// The health checks of an upstream.
    package struct HealthChecks: Sendable {
        package let upstream: String
        /// Probes by their result.
        package let successes: Int
        package let failures: Int
        /// Probes that began more than an interval late.
        package let delayed: Int
        /// Endpoints that are unhealthy now, of those that are probed.
        package let unhealthy: Int

        package init(upstream: String, successes: Int, failures: Int, delayed: Int, unhealthy: Int) {
            (self.upstream, self.successes, self.failures) = (upstream, successes, failures)
            (self.delayed, self.unhealthy) = (delayed, unhealthy)
        }
    }

    /// How many copies of requests an upstream got, and how many failed or were dropped.
    package struct Mirror: Sendable {
        package let upstream: String
        package let sent: Int
        package let failed: Int
        package let dropped: Int

        package init(upstream: String, sent: Int, failed: Int, dropped: Int) {
            (self.upstream, self.sent, self.failed, self.dropped) = (upstream, sent, failed, dropped)
        }
    }

    /// How many spans of sampled requests were sent and lost.
    package struct Tracing: Sendable {
        package let sent: Int
        /// Those that were lost, by reason.
        package let lost: [(reason: String, count: Int)]

        package init(sent: Int, lost: [(reason: String, count: Int)]) { (self.sent, self.lost) = (sent, lost) }
    }

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

    /// How many lines a log has lost.
    package struct LostLogLines: Sendable {
        /// Its path, or `stdout`.
        let file: String
        let lines: Int

        package init(file: String, lines: Int) { (self.file, self.lines) = (file, lines) }
    }

    let readiness: Readiness
    /// The last report of every loop that serves clients.
    let loops: [LoopReport]
    /// How many loops responded in time.
    let respondingLoops: Int
    /// The names of the current routes, in their order.
    let routes: [String]
    /// The names under which requests that the gateway serves itself are counted.
    let ownRoutes: Set<String>
    let providers: [Provider]
    let store: Store
    /// The state of the subscription to revocations by other instances; `nil` for `memory:`.
    let subscription: RedisStatus?
    /// `nil` without `accounts:`.
    let accounts: AccountHealth?
    /// What is left to do of changes of accounts.
    let backlog: Backlog
    /// Password hashes that wait for a thread.
    let hashesWaiting: Int
    /// Every certificate that the gateway presents to clients and upstreams.
    let certificates: [Certificate]
    /// Every rate limit with the counters of this instance.
    let limits: Limits
    /// Whether too much memory is used; `nil` if an overload is not watched.
    let isMemoryHigh: Bool?
    /// The addresses of the public listeners.
    let addresses: [String]
    /// Of every log.
    let lostLogLines: [LostLogLines]
    /// `nil` without an audit log.
    let lostAuditEvents: Int?
    let reloads: ReloadRecord
    let process: ProcessStatus
    let startedAt: UnixTime
    private let moment: Moment
    let version: String
    /// Every upstream that has health checks.
    let healthChecks: [HealthChecks]
    /// Every upstream that gets copies of requests.
    let mirrors: [Mirror]
    /// `nil` without `tracing:`.
    let tracing: Tracing?

    var now: UnixTime { moment.unix }
    var monotonicNow: MonotonicTime { moment.monotonic }

    package init(
        readiness: Readiness, loops: [LoopReport], respondingLoops: Int, routes: [String],
        ownRoutes: Set<String> = [], providers: [Provider], store: Store, subscription: RedisStatus?,
        accounts: AccountHealth?, backlog: Backlog = Backlog(), hashesWaiting: Int, certificates: [Certificate],
        limits: Limits = Limits(), isMemoryHigh: Bool? = nil, addresses: [String], lostLogLines: [LostLogLines],
        lostAuditEvents: Int? = nil,
        reloads: ReloadRecord, process: ProcessStatus = .current(),
        startedAt: UnixTime,
        now: UnixTime, monotonicNow: MonotonicTime, version: String, healthChecks: [HealthChecks] = [],
        mirrors: [Mirror] = [], tracing: Tracing? = nil
    ) {
        self.tracing = tracing
        self.readiness = readiness
        self.loops = loops
        self.respondingLoops = respondingLoops
        self.routes = routes
        self.ownRoutes = ownRoutes
        self.providers = providers
        self.store = store
        self.subscription = subscription
        self.accounts = accounts
        self.backlog = backlog
        self.hashesWaiting = hashesWaiting
        self.certificates = certificates
        self.limits = limits
        self.isMemoryHigh = isMemoryHigh
        self.addresses = addresses
        self.lostLogLines = lostLogLines
        self.lostAuditEvents = lostAuditEvents
        self.reloads = reloads
        self.process = process
        self.startedAt = startedAt
        moment = Moment(unix: now, monotonic: monotonicNow)
        self.version = version
        self.healthChecks = healthChecks
        self.mirrors = mirrors
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
