internal import MartletConfig
internal import MartletCore
internal import MartletCrypto
internal import MartletDecisions
internal import MartletIO
internal import MartletProxy
internal import MartletResponder
internal import MartletServer
internal import MartletSimulator

/// The simulated Apple, the simulated WeChat and the receiver of a webhook, each on its own loopback port.
struct DemoSimulators {
    let apple: AppleSimulator
    let appleURL: String
    let weChatURL: String
    let webhookURL: String
    private let listeners: [SimulatorListener]

    /// Generates keys and binds ports; requests are not served yet.
    /// - Parameter authority: the PEM file of the certificate authority to trust for notifications; `nil`: the system's.
    init(authority: String?) throws(StartError) {
        let client = try SimulatorClient(authority: authority)
        apple = try AppleSimulator.ofCommand()
        let weChat = WeChatSimulatorEndpoints(WeChatSimulator(apps: DemoConfiguration.apps, clock: .system))
        let webhook = DemoWebhook(clock: .system)
        let opened = (
            apple: try Self.listener("martlet-apple", AppleSimulatorEndpoints(apple, http: client).handle),
            weChat: try Self.listener("martlet-wechat", weChat.handle),
            webhook: try Self.listener("martlet-webhook") { await webhook.handle($0) }
        )
        listeners = [opened.apple, opened.weChat, opened.webhook]
        appleURL = "http://\(opened.apple.address)"
        weChatURL = "http://\(opened.weChat.address)"
        webhookURL = "http://\(opened.webhook.address)\(DemoWebhook.path)"
    }

    /// On a free port, for this machine alone.
    private static func listener(
        _ name: String, _ handler: @escaping LocalHandler
    ) throws(StartError) -> SimulatorListener {
        let location = SourceLocation(file: "demo", line: 1, column: 1)
        return try SimulatorListener(name, at: Located(.ip(host: "127.0.0.1", port: 0), at: location), handler)
    }

    func start(_ gateway: Gateway) throws(StartError) -> [LoopGroup] {
        try listeners.map { (listener) throws(StartError) in
            try listener.start(gateway.graph.snapshot, gateway.services)
        }
    }
}

/// The listener of a simulator, or of the receiver of a webhook.
struct SimulatorListener {
    private static let drainTimeout = Duration.milliseconds(300)

    /// With the port that the system chose.
    let address: String
    private let name: String
    private let sockets: [[ListenerSocket]]

    /// Binds the address; requests are not served yet.
    init(_ name: String, at address: Located<SocketAddress>, _ handler: @escaping LocalHandler) throws(StartError) {
        var listeners = Listeners()
        sockets = try listeners.open(
            [ListenerConfiguration(address: address, reusePort: false)], loops: 1,
            role: .local(ListenerHandler { await handler($0) }))
        self.name = name
        self.address = listeners.addresses.first?.description ?? ""
    }

    func start(_ snapshot: Snapshot, _ services: Services) throws(StartError) -> LoopGroup {
        try LoopGroup(
            name, snapshot: snapshot, sockets: sockets, resolved: [], services: services,
            connections: ConnectionLimit(), log: NoAccessLog())
    }

    static func stop(_ groups: [LoopGroup]) async {
        for group in groups { group.drain(until: Clock.system.monotonicTime + drainTimeout) }
        for group in groups { await group.join() }
    }
}

extension AppleSimulator {
    /// - Parameter developers: without any, a key is generated for one.
    static func ofCommand(
        _ developers: [DeveloperKey] = [], refreshesPerDay: Int? = nil
    ) throws(StartError) -> AppleSimulator {
        do throws(CryptoError) {
            return try AppleSimulator(clock: .system, developers: developers, refreshesPerDay: refreshesPerDay)
        } catch {
            throw StartError(code: error.code, message: "cannot generate keys: \(error)", exit: .internalFault)
        }
    }
}

/// Discards the access log of the simulators.
private struct NoAccessLog: AccessLogging {
    let format = AccessFormat.text
    func take(_ lines: inout ByteBuffer) { lines.removeAll() }
}
