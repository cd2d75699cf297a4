internal import MartletAuthenticator
internal import MartletConfig
package import MartletCore
internal import MartletCrypto
internal import MartletProvider
internal import MartletProxy
package import MartletRedis
package import MartletSession
internal import MartletTraffic

/// The store that instances share, its connections, and the messages that instances exchange over it.
///
/// Reused by reloads that do not change `store:`: sessions in memory are not lost, and connections stay open.
package final class SharedStore: Sendable {
    /// The configuration of a store; stores with equal labels are shared.
    package struct Label: Hashable, Sendable {
        let url: String
        package let prefix: String
        /// The digest of everything else that connections depend on.
        private let connection: [UInt8]

        init(_ configuration: StoreConfiguration) {
            url = configuration.url.value
            prefix = configuration.keyPrefix
            connection = Self.digest(configuration)
        }

        private static func digest(_ store: StoreConfiguration) -> [UInt8] {
            let tls = store.tls?.value
            let texts: [String?] = [
                store.username?.value, store.sentinel.username, tls?.authorityFile?.value,
                tls?.certificate?.certificate.value, tls?.certificate?.key.value, tls?.serverName,
                "\(store.pool) \(store.timeouts) \(store.waitReplicas) \(store.replicas)",
                store.seal.map { "\($0.mode) \($0.acceptsUnsealedUntil?.seconds ?? .min)" },
            ]
            let sealKeys: [Secret?] = store.seal?.keys ?? []
            let secrets = ([store.password?.value, store.sentinel.password?.value] + sealKeys).map { secret in
                secret?.withBytes { SHA256.digest($0) } ?? []
            }
            return SHA256.digest(
                texts.flatMap { SHA256.digest(Array(($0.map { "=" + $0 } ?? "").utf8)) } + secrets.flatMap { $0 })
        }
    }

    /// The message on the revocation channel that invalidates every cached decision, those on direct credentials too.
    private static let invalidateAllMessage = Array("verdicts".utf8)

    package let label: Label
    package let values: any SharedStoring
    package let sessions: any SessionBackend
    let nonces: NonceIssuer
    /// From which the keys of forms and sign-ins of browsers are derived.
    let browserKey: SharedKey
    /// `nil` for `memory:`.
    package let redis: RedisClient?
    /// Authenticates what is believed of Redis; `nil` without `store.seal`, and for `memory:`.
    package let seal: StoreSeal?
    /// Where shared rate limits count; `nil` for `memory:`.
    let limits: StoreClient?
    /// Cached sessions for the time while Redis is unavailable; `nil` for `memory:`.
    let copies: SessionCache?
    private let subscriber: RedisSubscriber?
    private let channel: [UInt8]
    private let invalidator: CacheInvalidator

    /// How long requests wait for shared limits.
    private let limitWait: Duration

    private init(
        _ label: Label, values: any SharedStoring, sessions: any SessionBackend, redis: RedisClient? = nil,
        seal: StoreSeal? = nil, copies: SessionCache? = nil, subscriber: RedisSubscriber? = nil, clock: Clock,
        invalidator: CacheInvalidator, limitWait: Duration = .zero, logger: Logger? = nil
    ) {
        self.limitWait = limitWait
        nonces = NonceIssuer(store: values, keyPrefix: label.prefix, clock: clock)
        browserKey = SharedKey("browser-key", store: values, keyPrefix: label.prefix, clock: clock)
        self.label = label
        self.values = values
        self.sessions = sessions
        self.redis = redis
        self.seal = seal
        limits = redis.map { redis in
            StoreClient(
                StoredTokens(redis, prefix: label.prefix, seal: seal),
                longestWait: limitWait.wholeMilliseconds * 1_000_000, clock: { clock.monotonicTime.nanoseconds }
            ) { isAway in
                guard isAway else { return logger?.info("shared limits count in the store again") ?? () }
                logger?.warning(
                    "shared limits count without the store", ("code", "store.too_slow"),
                    ("reason", "no reply within store.timeouts.shared_limit (\(limitWait.wholeMilliseconds)ms)"))
            }
        }
        self.copies = copies
        self.subscriber = subscriber
        self.invalidator = invalidator
        channel = Array(RevocationMessage.channel(prefix: label.prefix).utf8)
    }

    /// The state of the connections, with the number of values that did not verify; `nil` for `memory:`.
    var status: RedisStatus? {
        var status = redis?.status
        let unreadable = redis?.failures.counts ?? [:]
        if seal != nil || unreadable.contains(where: { $0.value > 0 }) {
            status?.badSeals = unreadable.merging(seal?.failures.counts ?? [:]) { $0 &+ $1 }
        }
        if limits?.isAway == true { status?.missedLimitWait = limitWait }
        return status
    }

    /// The state of the subscription to revocations by other instances.
    var subscriptionStatus: RedisStatus? { subscriber?.status }

    /// Creates the store of a configuration and starts its connections.
    /// - Parameters:
    ///   - previous: the store that it replaces, which passes its recent writes on; `nil` without one.
    ///   - access: whether it may be written to; a read-only store has no subscription.
    package static func make(
        _ blueprint: Blueprint, _ services: Services, _ invalidator: CacheInvalidator, previous: SharedStore? = nil,
        access: StoreAccess = .full
    ) throws(StartError) -> SharedStore {
        let label = Label(blueprint.configuration.store)
        switch blueprint.store {
        case .memory:
            return SharedStore(
                label, values: MemoryStore(clock: services.clock), sessions: MemorySessions(),
                clock: services.clock, invalidator: invalidator)
        case .redis(let url):
            do throws(StoreError) {
                let client = try RedisClient(
                    url, options: RedisOptions(blueprint.configuration.store), loop: services.loop,
                    resolver: services.resolver,
                    clock: services.clock, logger: services.logger.with(("component", "redis")))
                let copies = SessionCache()
                let recovery = GapRecovery(client, probe: label.prefix + "probe") {
                    invalidator.post(.invalidateCaches)
                }
                let seal = seal(blueprint.configuration.store, services)
                let subscriber =
                    access == .full ? subscribe(client, label, seal, invalidator, copies, recovery) : nil
                let values: any SharedStoring = seal.map { SealedStore(client, seal: $0) } ?? client
                client.start()
                subscriber?.start()
                if let previous, previous.label.prefix == label.prefix { previous.redis?.handOver(to: client) }
                return SharedStore(
                    label, values: access == .full ? values : ReadOnlyStore(values, clock: services.clock),
                    sessions: RedisSessions(client: client, keyPrefix: label.prefix, seal: seal),
                    redis: client, seal: seal, copies: access == .full ? copies : nil,
                    subscriber: subscriber, clock: services.clock, invalidator: invalidator,
                    limitWait: blueprint.configuration.store.timeouts.sharedLimit,
                    logger: services.logger.with(("component", "limits")))
            } catch {
                throw StartError(error, exit: .configuration)
            }
        }
    }

    /// This process's memory, which is only read. Attempts to log in are no attempts then, and nothing is used up.
    func readOnlyMemory(_ clock: Clock) -> SharedStore {
        SharedStore(
            label, values: ReadOnlyStore(values, clock: clock), sessions: sessions, clock: clock,
            invalidator: invalidator)
    }

    private static func seal(_ store: StoreConfiguration, _ services: Services) -> StoreSeal? {
        store.seal.flatMap { configured in
            StoreSeal(
                keys: configured.keys, mode: configured.mode == .observe ? .observe : .enforce,
                acceptingUnsealedUntil: configured.acceptsUnsealedUntil, clock: services.clock,
                logger: services.logger.with(("component", "store")))
        }
    }

    private static func subscribe(
        _ client: RedisClient, _ label: Label, _ seal: StoreSeal?, _ invalidator: CacheInvalidator,
        _ copies: SessionCache, _ recovery: GapRecovery
    ) -> RedisSubscriber {
        let channel = RevocationMessage.channel(prefix: label.prefix)
        return RedisSubscriber(
            client, channel: channel,
            onMessage: { published in
                guard let message = seal.map({ $0.open(message: published, on: Array(channel.utf8)) }) ?? published
                else { return }
                if message == invalidateAllMessage {
                    invalidator.post(.invalidateCaches)
                } else if let numbers = RevocationMessage.numbers(in: message) {
                    client.forget(numbers)
                    copies.drop(numbers)
                    invalidator.post(.credentials(.ended(numbers)))
                } else if let numbers = RevocationMessage.changedNumbers(in: message) {
                    copies.drop(numbers)
                    invalidator.post(.credentials(.changed(numbers)))
                }
            },
            // The missed messages may have revoked any decision. Copies of sessions are used only where the store does
            // not respond, and dropped one by one where it rejects the session.
            onGap: { recovery.gapDetected() })
    }

    /// Has every loop of every instance drop all its cached decisions, those on direct credentials too.
    ///
    /// An instance that cannot be reached keeps its cached decisions until they expire.
    func invalidateEverywhere() {
        invalidator.post(.invalidateCaches)
        Task { await publish(Self.invalidateAllMessage) }
    }

    /// The same for the decisions about one subject.
    ///
    /// Returns when every loop of this instance has dropped them and the other instances have been notified.
    func invalidateEverywhere(_ subject: String) async { await invalidateEverywhere(.ended(Self.ids(of: subject))) }

    /// The same for a subject whose account was changed, with its claims: if that is disabled, what its direct
    /// credentials have admitted ends, too. Decisions about its sessions are dropped when the claims are stored.
    func accountChanged(_ subject: String, isDisabled: Bool) async {
        await invalidateEverywhere(Self.change(of: subject, isDisabled: isDisabled))
    }

    private func invalidateEverywhere(_ change: CredentialChange) async {
        async let published: Void = publish(change)
        await invalidator.postAndWait(change)
        await published
    }

    /// Has every loop of this instance, and of no other, drop its decisions about some subjects, and verify what
    /// requests in progress were admitted by.
    func verifyAgain(_ subjects: [String]) {
        invalidator.post(.credentials(.changed(subjects.flatMap { Self.ids(of: $0) })))
    }

    /// Has every loop of this instance drop its decisions about sessions that it has ended or changed itself.
    func invalidate(_ change: CredentialChange) async {
        copies?.drop(change.revocationIDs)
        await invalidator.postAndWait(change)
    }

    /// Notifies running gateways, from a process without loops; returns when the message is published.
    package func notifyOthers(_ subject: String) async { await publish(.ended(Self.ids(of: subject))) }

    /// Notifies running gateways of a change of an account, from a process without loops.
    package func notifyOthersOfChange(_ subject: String, isDisabled: Bool) async {
        await publish(Self.change(of: subject, isDisabled: isDisabled))
    }

    private static func ids(of subject: String) -> [UInt64] { [SubjectRevocationID.of(subject)] }

    private static func change(of subject: String, isDisabled: Bool) -> CredentialChange {
        isDisabled ? .ended(ids(of: subject)) : .changed(ids(of: subject))
    }

    private func publish(_ change: CredentialChange) async {
        switch change {
        case .ended(let ids): await publish(RevocationMessage.bytes(ids))
        case .changed(let ids): await publish(RevocationMessage.bytes(changed: ids))
        }
    }

    private func publish(_ message: [UInt8]) async {
        try? await redis?.publish(seal?.seal(message: message, on: channel) ?? message, on: channel)
    }

    /// Why other instances cannot be notified; `nil` if they can, or there are none.
    package var outage: ErrorCode? {
        redis.map { $0.status.state == .connected } ?? true ? nil : .sessionStoreUnavailable
    }

    /// Closes the connections.
    package func shutdown() {
        subscriber?.shutdown()
        redis?.shutdown()
    }
}

extension RedisOptions {
    fileprivate init(_ store: StoreConfiguration) {
        self.init()
        connections = store.pool
        connectTimeout = store.timeouts.connect
        commandTimeout = store.timeouts.command
        waitReplicas = store.waitReplicas
        readsReplicas = store.replicas == .keys
        warnsOfEviction = true
    }
}

/// Probes the store until it is available again, then invalidates the caches: see ``MissedMessages``.
private final class GapRecovery: Sendable {
    private static let interval = Duration.milliseconds(50)

    private let client: RedisClient
    private let probe: String
    private let invalidate: @Sendable () -> Void
    private let missed = Lock(MissedMessages())

    /// - Parameters:
    ///   - probe: the key to read; it need not exist.
    ///   - invalidate: drops cache entries that may be stale.
    init(_ client: RedisClient, probe: String, _ invalidate: @escaping @Sendable () -> Void) {
        self.client = client
        self.probe = probe
        self.invalidate = invalidate
    }

    func gapDetected() {
        guard missed.withLock({ $0.gapDetected() }) != nil else { return }
        Task { await probeUntilAvailable() }
    }

    private func probeUntilAvailable() async {
        while client.status.state != .stopped {
            let isAvailable = await isAvailable()
            guard missed.withLock({ $0.probed(isAvailable: isAvailable) }) == .probeLater else { return invalidate() }
            try? await Task.sleep(for: Self.interval)
        }
    }

    private func isAvailable() async -> Bool {
        switch await client.value(for: probe) {
        case .found, .miss: true
        // A permission error is a reply, too.
        case .unavailable(let error): error.code == .redisNotPermitted
        }
    }
}
