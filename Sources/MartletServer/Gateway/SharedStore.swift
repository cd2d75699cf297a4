internal import MartletConfig
internal import MartletCore
internal import MartletProvider
internal import MartletProxy
internal import MartletRedis
internal import MartletSession
private import Synchronization

/// The store that instances share, the connections behind it, and what instances tell each other over it.
///
/// It outlives reloads that leave `store:` as it is: sessions in memory are not lost, and connections stay.
final class SharedStore: Sendable {
    /// What makes two the same.
    struct Label: Hashable, Sendable {
        let url: String
        let prefix: String

        init(_ configuration: StoreConfiguration) {
            url = configuration.url.value
            prefix = configuration.keyPrefix
        }
    }

    /// What instances say on the channel of revocations when verdicts other than sessions' are void.
    private static let forgetVerdicts = Array("verdicts".utf8)

    let label: Label
    let values: any SharedStoring
    let sessions: any SessionBackend
    let nonces: NonceIssuer
    /// `nil` for `memory:`.
    let redis: RedisClient?
    /// What sessions go on with while Redis cannot be asked; `nil` for `memory:`.
    let copies: SessionCopies?
    private let listener: RedisSubscriber?
    private let channel: [UInt8]
    private let forgetting: ForgetSwitch

    private init(
        _ label: Label, values: any SharedStoring, sessions: any SessionBackend, redis: RedisClient?,
        copies: SessionCopies?, listener: RedisSubscriber?, clock: Clock, forgetting: ForgetSwitch
    ) {
        nonces = NonceIssuer(store: values, keyPrefix: label.prefix, clock: clock)
        self.label = label
        self.values = values
        self.sessions = sessions
        self.redis = redis
        self.copies = copies
        self.listener = listener
        self.forgetting = forgetting
        channel = Array(RevocationMessage.channel(prefix: label.prefix).utf8)
    }

    /// How the connection stands over which instances tell each other of ended sessions.
    var listenerStatus: RedisStatus? { listener?.status }

    /// Makes the store of a configuration and starts its connections.
    /// - Parameter access: what is done with it; a store that is only read has no subscription.
    static func make(
        _ blueprint: Blueprint, _ services: Services, _ forgetting: ForgetSwitch, access: StoreAccess = .full
    ) throws(StartError) -> SharedStore {
        let label = Label(blueprint.configuration.store)
        switch blueprint.store {
        case .memory:
            return SharedStore(
                label, values: MemoryStore(clock: services.clock), sessions: MemorySessions(), redis: nil,
                copies: nil, listener: nil, clock: services.clock, forgetting: forgetting)
        case .redis(let url):
            do throws(StoreError) {
                let client = try RedisClient(
                    url, options: RedisOptions(), loop: services.loop, resolver: services.resolver,
                    clock: services.clock, logger: services.logger.with(("room", "redis")))
                let copies = SessionCopies()
                let gaps = GapClosing(client, probe: label.prefix + "probe") {
                    copies.dropAll()
                    forgetting.forget()
                }
                let listener =
                    access == .full ? try listener(url, label, services, forgetting, copies, gaps) : nil
                client.start()
                listener?.start()
                return SharedStore(
                    label, values: access == .full ? client : ReadOnlyStore(client, clock: services.clock),
                    sessions: RedisSessions(client: client, keyPrefix: label.prefix),
                    redis: client, copies: access == .full ? copies : nil,
                    listener: listener, clock: services.clock, forgetting: forgetting)
            } catch {
                throw StartError(code: error.code, message: error.message, exit: .configuration)
            }
        }
    }

    private static func listener(
        _ url: RedisURL, _ label: Label, _ services: Services, _ forgetting: ForgetSwitch, _ copies: SessionCopies,
        _ gaps: GapClosing
    ) throws(StoreError) -> RedisSubscriber {
        try RedisSubscriber(
            url, channel: RevocationMessage.channel(prefix: label.prefix), loop: services.loop,
            resolver: services.resolver, clock: services.clock, logger: services.logger.with(("room", "redis")),
            onMessage: { message in
                if message == forgetVerdicts {
                    forgetting.forget()
                } else if let numbers = RevocationMessage.numbers(in: message) {
                    copies.drop(numbers)
                    forgetting.revoked(numbers)
                }
            },
            // What was said meanwhile may have been about any verdict.
            onGap: { gaps.noticed() })
    }

    /// Has every loop of every instance drop its verdicts: those on direct credentials too.
    ///
    /// An instance that cannot be told goes on with what it has until that expires.
    func forgetEverywhere() {
        forgetting.forget()
        Task { await say(Self.forgetVerdicts) }
    }

    /// The same for one subject: a caller who changes something of their own must not cost others their verdicts.
    ///
    /// Returns when no loop of this instance has them any more, and the others have been told.
    func forgetEverywhere(_ subject: String) async {
        let numbers = [SubjectNumber.of(subject)]
        async let said: Void = say(RevocationMessage.bytes(numbers))
        await forgetting.revokedHere(numbers)
        await said
    }

    /// The same, for a process without loops that is about to end: returns when it is said.
    func tellOthersToForget(_ subject: String) async {
        await say(RevocationMessage.bytes([SubjectNumber.of(subject)]))
    }

    private func say(_ message: [UInt8]) async {
        _ = try? await redis?.command([Array("PUBLISH".utf8), channel, message])
    }

    /// Ends the connections.
    func shutdown() {
        listener?.shutdown()
        redis?.shutdown()
    }
}

/// Asks the store until it answers again, and says so: see ``MissedMessages``.
private final class GapClosing: Sendable {
    private static let pause = Duration.milliseconds(50)

    private let client: RedisClient
    private let probe: String
    private let forget: @Sendable () -> Void
    private let missed = Mutex(MissedMessages())

    /// - Parameters:
    ///   - probe: a key to ask for; whether it is there makes no difference.
    ///   - forget: drops what may be out of date.
    init(_ client: RedisClient, probe: String, _ forget: @escaping @Sendable () -> Void) {
        self.client = client
        self.probe = probe
        self.forget = forget
    }

    func noticed() {
        guard missed.withLock({ $0.noticed() }) != nil else { return }
        Task { await askUntilAnswered() }
    }

    private func askUntilAnswered() async {
        while client.status.state != .stopped {
            let canAnswer = await canAnswer()
            guard missed.withLock({ $0.asked(canAnswer: canAnswer) }) == .askLater else { return forget() }
            try? await Task.sleep(for: Self.pause)
        }
    }

    private func canAnswer() async -> Bool {
        switch await client.value(for: probe) {
        case .answer, .miss: true
        // A user who may not read this key can be answered all the same.
        case .unavailable(let error): error.code == .redisNotPermitted
        }
    }
}
