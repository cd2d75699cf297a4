package import MartletCore
package import MartletCrypto
private import Synchronization

/// A webhook to deliver to.
package struct Webhook: Sendable {
    package let name: String
    /// May contain secrets in its query; never logged.
    package let url: String
    package let signer: WebhookSigner
    package let timeout: Duration
    package let retries: RetrySchedule
    /// The `source` of its CloudEvents.
    package let source: String

    package init(
        name: String, url: String, signer: WebhookSigner, timeout: Duration, retries: RetrySchedule, source: String
    ) {
        self.name = name
        self.url = url
        self.signer = signer
        self.timeout = timeout
        self.retries = retries
        self.source = source
    }
}

/// Delivers the events of an outbox to one webhook or mail server, while this instance holds its lease.
///
/// At least once, and in order for each subject: an event is sent when the one before it of the same subject was
/// delivered or given up. A subject whose event fails delays no other.
package final class WebhookDeliverer: Sendable {
    /// Where it reads and records deliveries.
    package struct Store: Sendable {
        package let outbox: any OutboxStoring
        package let leases: any LeaseStoring
        /// The maximum number of events in the outbox.
        package let maximumEvents: Int

        package init(outbox: any OutboxStoring, leases: any LeaseStoring, maximumEvents: Int) {
            self.outbox = outbox
            self.leases = leases
            self.maximumEvents = maximumEvents
        }
    }

    private enum Step: Sendable {
        /// The webhook has confirmed it, which is not recorded yet.
        case delivered(DueDelivery)
        /// It failed, which is recorded.
        case failed(Int64)
        /// The gateway stopped first.
        case abandoned(Int64)
        case woken
    }

    /// What the task that delivers keeps between steps.
    private struct Progress {
        var lease: HeldLease
        var window: DeliveryWindow
        var pace = DeliveryPace()
        var chores: Chores
        /// Confirmed, but not recorded: still in the window, so that they are not sent again.
        var confirmed: [DueDelivery] = []
        var recordedAt: MonotonicTime

        init(_ lease: HeldLease, concurrency: Int, at now: MonotonicTime) {
            self.lease = lease
            window = DeliveryWindow(capacity: concurrency)
            chores = Chores(at: now)
            recordedAt = now
        }
    }

    /// The maximum number of requests in progress to one webhook.
    package static let concurrency = 32
    /// How often the outbox is read when nothing signals new events: retries, and events that another process recorded.
    private static let pollInterval = Duration.seconds(1)
    /// How long confirmations are collected while further requests are in progress, to record them in one transaction.
    private static let recordInterval = Duration.milliseconds(50)
    private static let trimInterval = Duration.seconds(60)
    /// How often the backlog is counted, for metrics.
    private static let countInterval = Duration.seconds(15)

    private let sender: any EventSending
    private let store: Store
    private let clock: Clock
    private let logger: Logger
    /// Before it is asked for.
    private let lease: HeldLease
    private let wakeup = Wakeup()
    private let isStopping = Atomic(false)
    /// Of the outbox.
    private let outages: OutageReporter
    private let counters: Lock<WebhookStatus>

    /// Delivers to a webhook.
    /// - Throws: `events.no_entropy` if no identifier can be made for the lease.
    package convenience init(
        _ hook: Webhook, store: Store, client: any HTTPCalling, clock: Clock, logger: Logger
    ) throws(StoreError) {
        try self.init(
            WebhookSender(hook: hook, client: client, clock: clock), store: store, clock: clock, logger: logger)
    }

    /// - Throws: `events.no_entropy` if no identifier can be made for the lease.
    package init(_ sender: any EventSending, store: Store, clock: Clock, logger: Logger) throws(StoreError) {
        self.sender = sender
        self.store = store
        self.clock = clock
        let logger = logger.with(("webhook", sender.name))
        self.logger = logger
        outages = OutageReporter(
            "outbox unavailable", end: "outbox available again", clock: clock, logger: logger)
        lease = try HeldLease(WebhookDeliverer.leaseName(of: sender.name), in: store.leases, at: clock.unixMilliseconds)
        counters = Lock(WebhookStatus(hook: sender.name))
    }

    /// The lease of the instance that delivers to a webhook.
    package static func leaseName(of hook: String) -> String { "webhook:\(hook)" }

    /// The counters since the start, for metrics.
    package var status: WebhookStatus { counters.withLock { $0 } }

    /// Delivers until it is stopped; then waits for the requests in progress and releases the lease.
    package func run() async {
        store.outbox.observers.add(wakeup)
        defer { store.outbox.observers.remove(wakeup) }
        var progress = Progress(lease, concurrency: sender.concurrency, at: clock.monotonicTime)
        await withTaskGroup(of: Step.self) { group in
            group.addTask { .woken }
            while let step = await group.next() {
                take(step, &progress)
                await recordConfirmed(&progress)
                if isEnding { continue }
                if case .woken = step { group.addTask { await self.waitForWork() } }
                for delivery in await next(&progress) { group.addTask { await self.deliver(delivery) } }
            }
        }
        await recordConfirmed(&progress, isLast: true)
        _ = note(isHolder: false)
        await progress.lease.release(at: clock.monotonicTime)
    }

    /// Takes over the result of a request.
    private func take(_ step: Step, _ progress: inout Progress) {
        switch step {
        case .delivered(let delivery):
            progress.pace.note(success: true)
            progress.confirmed.append(delivery)
        case .failed(let number):
            progress.pace.note(success: false)
            progress.window.remove(number)
        case .abandoned(let number): progress.window.remove(number)
        case .woken: break
        }
    }

    /// Records what the webhook has confirmed, if it is time.
    private func recordConfirmed(_ progress: inout Progress, isLast: Bool = false) async {
        let now = clock.monotonicTime
        let isDue = now.since(progress.recordedAt) >= WebhookDeliverer.recordInterval
        let isWhole = progress.confirmed.count == progress.window.count
        guard !progress.confirmed.isEmpty, isDue || isWhole || isLast else { return }
        progress.recordedAt = now
        do throws(StoreError) {
            try await store.outbox.noteDelivered(progress.confirmed)
            outages.succeeded()
            let count = progress.confirmed.count
            counters.withLock { $0.countDelivered(count) }
            for delivery in progress.confirmed { progress.window.remove(delivery.number) }
            progress.confirmed = []
        } catch {
            // Tried again with the next step.
            outages.failed(error)
        }
    }

    /// The deliveries to send now.
    private func next(_ progress: inout Progress) async -> [DueDelivery] {
        await renew(&progress.lease)
        guard note(isHolder: progress.lease.isHeld(at: clock.monotonicTime)) else {
            progress.chores = Chores(at: clock.monotonicTime)
            return []
        }
        await perform(progress.chores.due(at: clock.monotonicTime))
        let allowed = progress.pace.allowed(
            free: progress.window.free, inProgress: progress.window.count, at: clock.monotonicTime)
        guard allowed > 0 else { return [] }
        // Those in progress are still due, and come first.
        let due = await due(progress.window.count + allowed)
        // A slow database may have taken longer than the lease.
        guard progress.lease.isHeld(at: clock.monotonicTime) else { return [] }
        let admitted = progress.window.admit(due, atMost: allowed)
        if !admitted.isEmpty { progress.pace.noteAttempt(at: clock.monotonicTime) }
        return admitted
    }

    /// Ends `run()` after the requests in progress.
    package func stop() {
        isStopping.store(true, ordering: .releasing)
        wakeup.signal()
    }

    private var isEnding: Bool { isStopping.load(ordering: .acquiring) || Task.isCancelled }

    /// What the holder of the lease does from time to time.
    private struct Chores {
        private var counted: MonotonicTime?
        private var trimmed: MonotonicTime

        init(at now: MonotonicTime) { trimmed = now }

        mutating func due(at now: MonotonicTime) -> (counts: Bool, trims: Bool) {
            let counts = counted.map { now.since($0) >= WebhookDeliverer.countInterval } ?? true
            if counts { counted = now }
            let trims = now.since(trimmed) >= WebhookDeliverer.trimInterval
            if trims { trimmed = now }
            return (counts, trims)
        }
    }

    private func perform(_ chores: (counts: Bool, trims: Bool)) async {
        do throws(StoreError) {
            if chores.trims {
                let removed = try await store.outbox.trim(to: store.maximumEvents)
                if removed > 0 { logger.error("outbox full, oldest events removed", ("count", String(removed))) }
            }
            if chores.counts {
                let backlog = try await store.outbox.backlog(of: sender.name)
                counters.withLock { $0.backlog = backlog }
            }
        } catch {
            outages.failed(error)
        }
    }

    /// Records whether this instance delivers, and returns it.
    private func note(isHolder: Bool) -> Bool {
        counters.withLock { $0.note(isHolder: isHolder) }
        return isHolder
    }

    private func waitForWork() async -> Step {
        await wakeup.wait(atMost: WebhookDeliverer.pollInterval)
        return .woken
    }

    /// Acquires or extends the lease, if that is due.
    private func renew(_ lease: inout HeldLease) async {
        let start = clock.monotonicTime
        guard lease.isDue(at: start) else { return }
        let wasHeld = lease.isHeld(at: start)
        do throws(StoreError) {
            let isHeld = try await lease.renew(by: clock)
            outages.succeeded()
            if isHeld != wasHeld { logger.debug(isHeld ? "webhook lease acquired" : "webhook lease lost") }
        } catch {
            outages.failed(error)
        }
    }

    private func due(_ limit: Int) async -> [DueDelivery] {
        do throws(StoreError) {
            let due = try await store.outbox.dueDeliveries(of: sender.name, at: clock.unixMilliseconds, limit: limit)
            outages.succeeded()
            return due
        } catch {
            outages.failed(error)
            return []
        }
    }

    private func deliver(_ delivery: DueDelivery) async -> Step {
        let attempt = await sender.send(delivery.event)
        // Not the webhook's failure: the request was abandoned because the gateway stops.
        if case .failed = attempt, Task.isCancelled { return .abandoned(delivery.number) }
        let outcome = DeliveryOutcome(
            attempt, of: delivery, sender.retries, at: clock.unixMilliseconds, random: .random(in: 0...1))
        if case .delivered = outcome { return .delivered(delivery) }
        do throws(StoreError) {
            try await recordFailure(outcome, of: delivery)
            counters.withLock { $0.countFailure(outcome) }
            outages.succeeded()
        } catch {
            outages.failed(error)
            // The delivery is still due, and will be repeated when the outbox is available again.
            try? await Task.sleep(for: WebhookDeliverer.pollInterval)
        }
        return .failed(delivery.number)
    }

    private func recordFailure(_ outcome: DeliveryOutcome, of delivery: DueDelivery) async throws(StoreError) {
        let event = delivery.event
        switch outcome {
        case .delivered: break
        case .retry(let instant, let reason):
            if delivery.attempts == 0 {
                logger.warning("webhook delivery failed", ("event_id", event.id), ("reason", reason))
            }
            try await store.outbox.noteFailed(delivery, to: sender.name, retryAt: instant, reason: reason)
        case .dead(let reason):
            // The subject of a mail is an address, which logs do not need.
            let subject = event.type.isSecret ? "" : event.subject
            logger.error(
                "webhook delivery given up", ("event_id", event.id), ("type", event.type.rawValue),
                ("subject", subject), ("reason", reason))
            try await store.outbox.noteDead(delivery, reason: reason)
        }
    }
}
