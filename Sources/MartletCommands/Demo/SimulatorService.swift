internal import MartletConfig
internal import MartletCore
internal import MartletCrypto
internal import MartletDecisions
internal import MartletIO
internal import MartletProvider
internal import MartletProxy
internal import MartletResponder
internal import MartletServer
internal import MartletSimulator

/// A standalone simulator on its own listener, without a gateway.
struct SimulatorService {
    private static let drainTimeout = Duration.milliseconds(300)

    /// The `base_url` for a gateway's configuration.
    let url: String
    private let loops: LoopGroup
    private let services: Services

    /// Binds the listener and starts serving.
    init(_ kind: SimulateCommand.Kind, at address: SocketAddress) throws(StartError) {
        let handler = try Self.handler(kind)
        let location = SourceLocation(file: "--listen", line: 1, column: 1)
        var listeners = Listeners()
        let sockets = try listeners.open(
            [ListenerConfiguration(address: Located(address, at: location), reusePort: false)], loops: 1,
            role: .local(ListenerHandler { await handler($0) }))
        url = "http://\(StartBanner.reachable(listeners.addresses.first?.description ?? ""))"
        services = try Services.ofCommand()
        loops = try LoopGroup(
            "martlet-simulator", snapshot: try Self.snapshot(services), sockets: sockets, resolved: [],
            services: services, connections: ConnectionLimit(), log: NoAccessLog())
    }

    /// Waits for requests in progress and stops.
    func stop() async {
        loops.drain(until: Clock.system.monotonicTime + Self.drainTimeout)
        await loops.join()
        services.shutdown()
    }

    private static func handler(_ kind: SimulateCommand.Kind) throws(StartError) -> LocalHandler {
        switch kind {
        case .apple(let developers):
            let client = try SimulatorClient()
            do throws(CryptoError) {
                let endpoints = AppleSimulatorEndpoints(
                    try AppleSimulator(
                        clock: .system, developers: developers.keys.map(\.key),
                        refreshesPerDay: developers.refreshesPerDay),
                    http: client)
                return { await endpoints.handle($0) }
            } catch {
                throw StartError(code: error.code, message: "cannot generate keys: \(error)", exit: .internalFault)
            }
        case .weChat(let apps):
            let endpoints = WeChatSimulatorEndpoints(WeChatSimulator(apps: apps.map(\.app), clock: .system))
            return { await endpoints.handle($0) }
        }
    }

    /// The minimal snapshot that a loop requires; a listener of the role `local` does not use it.
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
        return try Graph.ofCommand(blueprint, services).snapshot
    }
}
