internal import MartletConfig
internal import MartletCore
internal import MartletProxy
internal import MartletRedis
internal import MartletSession

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
    /// `nil` for `memory:`.
    let redis: RedisClient?
    private let listener: RedisSubscriber?
    private let channel: [UInt8]
    private let forgetting: ForgetSwitch

    private init(
        _ label: Label, values: any SharedStoring, sessions: any SessionBackend, redis: RedisClient?,
        listener: RedisSubscriber?, forgetting: ForgetSwitch
    ) {
        self.label = label
        self.values = values
        self.sessions = sessions
        self.redis = redis
        self.listener = listener
        self.forgetting = forgetting
        channel = Array(RevocationMessage.channel(prefix: label.prefix).utf8)
    }

    /// How the connection stands over which instances tell each other of ended sessions.
    var listenerStatus: RedisStatus? { listener?.status }

    /// Makes the store of a configuration and starts its connections.
    static func make(
        _ blueprint: Blueprint, _ services: Services, _ forgetting: ForgetSwitch
    ) throws(StartError) -> SharedStore {
        let label = Label(blueprint.configuration.store)
        switch blueprint.store {
        case .memory:
            return SharedStore(
                label, values: MemoryStore(clock: services.clock), sessions: MemorySessions(), redis: nil,
                listener: nil, forgetting: forgetting)
        case .redis(let url):
            do throws(StoreError) {
                let client = try RedisClient(
                    url, options: RedisOptions(), loop: services.loop, resolver: services.resolver,
                    clock: services.clock, logger: services.logger.with(("room", "redis")))
                let listener = try listener(url, label, services, forgetting)
                client.start()
                listener.start()
                return SharedStore(
                    label, values: client, sessions: RedisSessions(client: client, keyPrefix: label.prefix),
                    redis: client,
                    listener: listener, forgetting: forgetting)
            } catch {
                throw StartError(code: error.code, message: error.message, exit: .configuration)
            }
        }
    }

    private static func listener(
        _ url: RedisURL, _ label: Label, _ services: Services, _ forgetting: ForgetSwitch
    ) throws(StoreError) -> RedisSubscriber {
        try RedisSubscriber(
            url, channel: RevocationMessage.channel(prefix: label.prefix), loop: services.loop,
            resolver: services.resolver, clock: services.clock, logger: services.logger.with(("room", "redis")),
            onMessage: { message in
                if message == forgetVerdicts {
                    forgetting.forget()
                } else if let numbers = RevocationMessage.numbers(in: message) {
                    forgetting.revoked(numbers)
                }
            },
            // What was said meanwhile may have been about any verdict.
            onGap: { forgetting.forget() })
    }

    /// Has every loop of every instance drop its verdicts: those on direct credentials too.
    ///
    /// An instance that cannot be told goes on with what it has until that expires.
    func forgetEverywhere() {
        forgetting.forget()
        publish(Self.forgetVerdicts)
    }

    /// The same for one subject: a caller who changes something of their own must not cost others their verdicts.
    func forgetEverywhere(_ subject: String) {
        let numbers = [SubjectNumber.of(subject)]
        forgetting.revoked(numbers)
        publish(RevocationMessage.bytes(numbers))
    }

    /// The same, for a process without loops that is about to end: returns when it is said.
    func tellOthersToForget(_ subject: String) async {
        await say(RevocationMessage.bytes([SubjectNumber.of(subject)]))
    }

    private func publish(_ message: [UInt8]) {
        Task { await say(message) }
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
