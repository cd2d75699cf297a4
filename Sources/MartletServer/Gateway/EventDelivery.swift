internal import MartletAccounts
internal import MartletConfig
internal import MartletCore
internal import MartletCrypto
package import MartletEvents
internal import MartletFetch

/// A webhook of the configuration and the events that it gets.
package struct WebhookPlan: Sendable {
    let webhook: Webhook
    let patterns: [EventPattern]

    /// Validates a webhook; errors are recorded.
    init?(_ configuration: WebhookConfiguration, source: String, into diagnostics: inout Diagnostics) {
        let signer = WebhookSigner(configuration.secret.value)
        if signer == nil {
            diagnostics.error(
                .configBadValue, at: configuration.secret.location,
                "secret: must be 24 to 64 bytes in base64, with or without whsec_ before them")
        }
        patterns = configuration.events.compactMap { text in
            let pattern = EventPattern(text.value)
            if pattern == nil {
                let hint = Suggestion.phrase(for: text.value, among: EventPattern.all)
                diagnostics.error(.configBadValue, at: text.location, "events: no event has this type\(hint)")
            }
            return pattern
        }
        guard let signer, patterns.count == configuration.events.count else { return nil }
        webhook = Webhook(
            name: configuration.name.value, url: configuration.url.value.text, signer: signer,
            timeout: configuration.timeout, retries: RetrySchedule(maximumAge: configuration.maximumAge),
            source: source)
    }

    /// Whether it gets the mails that have to be sent.
    var getsMails: Bool { patterns.contains { $0.matches(.mailRequested) } }

    static func all(_ configuration: GatewayConfiguration, into diagnostics: inout Diagnostics) -> [WebhookPlan] {
        // A CloudEvent needs a source; without an issuer a relative reference is one.
        let source = configuration.assertion?.issuer ?? "martlet"
        return configuration.webhooks.compactMap { WebhookPlan($0, source: source, into: &diagnostics) }
    }
}

/// Delivers events to the webhooks of one configuration, and mails to its mail server.
final class EventDelivery: Sendable {
    static let stopTimeout = Duration.seconds(5)

    private let accounts: AccountStore
    private let subscriptions: EventSubscriptions
    private let deliverers: [WebhookDeliverer]
    /// `nil` without `mail:`.
    private let mail: MailServer?
    private let tasks = Lock<[Task<Void, Never>]>([])

    init(
        _ plans: [WebhookPlan], mail configuration: MailConfiguration?, route: OutboundRoute,
        _ accounts: AccountStore, maximumEvents: Int, _ services: Services
    ) throws(StartError) {
        self.accounts = accounts
        let mail = configuration.map { MailServer($0, route: route, clock: services.clock) }
        self.mail = mail
        subscriptions = EventSubscriptions(plans, hasMailServer: mail != nil)
        let store = WebhookDeliverer.Store(outbox: accounts, leases: accounts, maximumEvents: maximumEvents)
        let (clock, logger) = (services.clock, services.logger.with(("component", "events")))
        do throws(StoreError) {
            let hooks = try plans.map { (plan) throws(StoreError) in
                let client = HTTPCaller(
                    fetcher: services.fetcher, purpose: .webhook(plan.webhook.name), route: route)
                return try WebhookDeliverer(plan.webhook, store: store, client: client, clock: clock, logger: logger)
            }
            let mails = try mail.map { (mail) throws(StoreError) in
                try WebhookDeliverer(mail.sender, store: store, clock: clock, logger: logger)
            }
            deliverers = hooks + [mails].compactMap(\.self)
        } catch {
            throw StartError(error, exit: .internalFault)
        }
    }

    /// Records the events of these webhooks from now on.
    func subscribe() { accounts.subscribe(subscriptions) }

    func start() {
        let started = deliverers.map { deliverer in Task { await deliverer.run() } }
        tasks.withLock { $0 = started }
    }

    /// The counters of every webhook, in the order of the configuration.
    var statuses: [WebhookStatus] { deliverers.map(\.status) }

    /// Ends the deliveries: waits for requests in progress, and cancels them after a limit.
    func stop(within limit: Duration = stopTimeout) async {
        for deliverer in deliverers { deliverer.stop() }
        let tasks = tasks.withLock { $0 }
        let timer = Task {
            try? await Task.sleep(for: limit)
            for task in tasks { task.cancel() }
            mail?.client.shutdown()
        }
        for task in tasks { await task.value }
        timer.cancel()
        mail?.client.shutdown()
    }
}

/// The deliveries of the configuration in use.
struct EventsPart: GatewayPart {
    /// Before the first request; a store that still serves the configuration before changes with the loops.
    func prepare(_ change: GatewayChange, in gateway: Gateway) async throws(StartError) {
        if !change.keepsAccounts { change.next.events?.subscribe() }
    }

    func follow(_ change: GatewayChange, in gateway: Gateway) {
        guard let events = change.next.events else {
            change.next.accounts?.store.subscribe(EventSubscriptions())
            return
        }
        events.subscribe()
        events.start()
    }

    func retire(_ graph: Graph) -> (@Sendable () async -> Void)? {
        guard let events = graph.events else { return nil }
        return { await events.stop() }
    }

    func stop(in gateway: Gateway) async { await gateway.graph.events?.stop() }
}

extension EventSubscriptions {
    fileprivate init(_ plans: [WebhookPlan], hasMailServer: Bool) {
        let mails = hasMailServer ? [EventSubscriptions.Subscriber.mails] : []
        self.init(plans.map { EventSubscriptions.Subscriber(hook: $0.webhook.name, patterns: $0.patterns) } + mails)
    }
}

extension Blueprint {
    /// Which webhooks get which events, for a command that changes accounts.
    package var subscriptions: EventSubscriptions {
        EventSubscriptions(webhooks, hasMailServer: configuration.mail != nil)
    }
}
