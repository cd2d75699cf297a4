internal import MartletConfig
internal import MartletCore
internal import MartletCrypto
internal import MartletIO
internal import MartletProvider
internal import MartletProxy
internal import MartletSimulator

/// One simulator on a listener of its own, with no gateway around it.
struct SimulatorService {
    private static let drainTime = Duration.milliseconds(300)

    /// What a configuration calls as `base_url`.
    let url: String
    private let loops: LoopGroup
    private let services: Services

    /// Opens the listener and begins to answer.
    init(_ kind: SimulateCommand.Kind, at address: SocketAddress) throws(StartError) {
        let handler = try Self.handler(kind)
        let place = SourceLocation(file: "--listen", line: 1, column: 1)
        var listeners = Listeners()
        let sockets = try listeners.open(
            [ListenerConfiguration(address: Located(address, at: place), reusePort: false)], loops: 1,
            role: .local(ListenerHandler { await handler($0) }))
        url = "http://\(Self.reachable(listeners.addresses.first?.description ?? ""))"
        services = try Services(sink: LogSink.standardError(), level: .error)
        loops = try LoopGroup(
            "martlet-simulator", snapshot: try Self.snapshot(services), sockets: sockets, resolved: [],
            services: services, connections: ConnectionLimit(), log: NoAccessLog())
    }

    /// Lets what is under way finish.
    func stop() async {
        loops.drain(until: Clock.system.monotonicTime + Self.drainTime)
        await loops.join()
        services.shutdown()
    }

    private static func handler(_ kind: SimulateCommand.Kind) throws(StartError) -> LocalHandler {
        switch kind {
        case .apple:
            do throws(CryptoError) {
                let endpoints = AppleSimulatorEndpoints(try AppleSimulator(clock: .system))
                return { await endpoints.answer($0) }
            } catch {
                throw StartError(code: error.code, message: "cannot make keys: \(error)", exit: .internalFault)
            }
        case .weChat(let apps):
            let endpoints = WeChatSimulatorEndpoints(WeChatSimulator(apps: apps.map(\.app), clock: .system))
            return { await endpoints.answer($0) }
        }
    }

    /// What a loop has to have; a listener of the role `local` asks nothing of it.
    private static func snapshot(_ services: Services) throws(StartError) -> Snapshot {
        let text = """
            version: 1
            upstreams: { none: { endpoints: ["builtin:echo"] } }
            routes: [{ name: none, match: { path: / }, auth: none, upstream: none }]
            """
        let (blueprint, diagnostics) = Blueprint.read(
            text: text, name: "simulate", registry: ProviderRegistry(), environment: { _ in nil })
        guard let blueprint else {
            throw StartError(
                code: "server.simulator_configuration", message: diagnostics.description, exit: .internalFault)
        }
        return try Graph.build(
            blueprint, services, previous: nil, keys: KeyShelf(),
            forgetting: ForgetSwitch(logger: services.logger)
        ).snapshot
    }

    /// A listener on every address is reached by loopback.
    private static func reachable(_ address: String) -> String {
        for (every, loopback) in [("0.0.0.0:", "127.0.0.1:"), ("[::]:", "[::1]:")] where address.hasPrefix(every) {
            return loopback + address.dropFirst(every.count)
        }
        return address
    }
}
