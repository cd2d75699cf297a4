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
    private static let drainTimeout = Duration.milliseconds(300)

    let apple: AppleSimulator
    let appleURL: String
    let weChatURL: String
    /// Where the webhook receives events.
    let webhookURL: String
    private let sockets: [(name: String, sockets: [[ListenerSocket]])]

    /// Generates keys and binds ports; requests are not served yet.
    /// - Parameter authority: the PEM file of the certificate authority to trust for notifications; `nil`: the system's.
    init(authority: String?) throws(StartError) {
        let client = try SimulatorClient(authority: authority)
        do throws(CryptoError) {
            apple = try AppleSimulator(clock: .system)
        } catch {
            throw StartError(code: error.code, message: "cannot generate keys: \(error)", exit: .internalFault)
        }
        let weChat = WeChatSimulator(apps: DemoConfiguration.apps, clock: .system)
        let (appleEndpoints, weChatEndpoints) = (
            AppleSimulatorEndpoints(apple, http: client), WeChatSimulatorEndpoints(weChat)
        )
        let webhook = DemoWebhook(clock: .system)
        var listeners = (apple: Listeners(), weChat: Listeners(), webhook: Listeners())
        sockets = [
            (
                "martlet-apple",
                try listeners.apple.open(
                    [Self.anyPort], loops: 1, role: .local(ListenerHandler { await appleEndpoints.handle($0) }))
            ),
            (
                "martlet-wechat",
                try listeners.weChat.open(
                    [Self.anyPort], loops: 1, role: .local(ListenerHandler { await weChatEndpoints.handle($0) }))
            ),
            (
                "martlet-webhook",
                try listeners.webhook.open(
                    [Self.anyPort], loops: 1, role: .local(ListenerHandler { await webhook.handle($0) }))
            ),
        ]
        appleURL = "http://\(listeners.apple.addresses.first?.description ?? "")"
        weChatURL = "http://\(listeners.weChat.addresses.first?.description ?? "")"
        webhookURL = "http://\(listeners.webhook.addresses.first?.description ?? "")\(DemoWebhook.path)"
    }

    /// A free port, for this machine alone.
    private static let anyPort = ListenerConfiguration(
        address: Located(.ip(host: "127.0.0.1", port: 0), at: SourceLocation(file: "demo", line: 1, column: 1)),
        reusePort: false)

    func start(_ gateway: Gateway) throws(StartError) -> [LoopGroup] {
        var groups: [LoopGroup] = []
        for (name, sockets) in sockets {
            groups.append(
                try LoopGroup(
                    name, snapshot: gateway.graph.snapshot, sockets: sockets, resolved: [], services: gateway.services,
                    connections: ConnectionLimit(), log: NoAccessLog()))
        }
        return groups
    }

    /// Waits for requests in progress and stops the loops.
    static func stop(_ groups: [LoopGroup]) async {
        for group in groups { group.drain(until: Clock.system.monotonicTime + drainTimeout) }
        for group in groups { await group.join() }
    }
}

/// Discards the access log of the simulators.
struct NoAccessLog: AccessLogging {
    let format = AccessFormat.text
    func take(_ lines: inout ByteBuffer) { lines.removeAll() }
}
