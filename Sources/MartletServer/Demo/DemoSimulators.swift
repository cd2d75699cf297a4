internal import MartletConfig
internal import MartletCore
internal import MartletCrypto
internal import MartletIO
internal import MartletProxy
internal import MartletSimulator

/// The pretended Apple and the pretended WeChat, each on a loopback port of its own.
struct DemoSimulators {
    private static let patience = Duration.milliseconds(300)

    let apple: AppleSimulator
    let appleURL: String
    let weChatURL: String
    private let sockets: [(name: String, sockets: [[ListenerSocket]])]

    /// Makes keys and opens ports; nothing is answered yet.
    init() throws(StartError) {
        do throws(CryptoError) {
            apple = try AppleSimulator(clock: .system)
        } catch {
            throw StartError(code: error.code, message: "cannot make keys: \(error)", exit: .internalFault)
        }
        let weChat = WeChatSimulator(apps: DemoConfiguration.apps, clock: .system)
        let (appleAnswers, weChatAnswers) = (AppleSimulatorEndpoints(apple), WeChatSimulatorEndpoints(weChat))
        var places = (apple: Listeners(), weChat: Listeners())
        sockets = [
            (
                "martlet-apple",
                try places.apple.open(
                    [Self.anyPort], loops: 1, role: .local(ListenerHandler { await appleAnswers.answer($0) }))
            ),
            (
                "martlet-wechat",
                try places.weChat.open(
                    [Self.anyPort], loops: 1, role: .local(ListenerHandler { await weChatAnswers.answer($0) }))
            ),
        ]
        appleURL = "http://\(places.apple.addresses.first?.description ?? "")"
        weChatURL = "http://\(places.weChat.addresses.first?.description ?? "")"
    }

    private static let anyPort = ListenerConfiguration(
        address: Located(.ip(host: "127.0.0.1", port: 0), at: SourceLocation(file: "demo", line: 1, column: 1)),
        reusePort: false)

    /// Begins to answer.
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

    /// Lets what is under way finish.
    static func stop(_ groups: [LoopGroup]) async {
        for group in groups { group.drain(until: Clock.system.monotonicTime + patience) }
        for group in groups { await group.join() }
    }
}

/// The simulators' own requests are nobody's business.
struct NoAccessLog: AccessLogging {
    let format = AccessFormat.text
    func take(_ lines: inout ByteBuffer) { lines.removeAll() }
}
