internal import MartletConfig
internal import MartletCore
internal import MartletDecisions
internal import MartletProvider
internal import MartletProxy
internal import MartletResponder
internal import MartletServer
internal import MartletSimulator

/// A standalone simulator on its own listener, without a gateway.
struct SimulatorService {
    let url: String
    private let loops: LoopGroup
    private let services: Services

    /// Binds the listener and starts serving.
    init(_ kind: SimulateCommand.Kind, at address: SocketAddress) throws(StartError) {
        let location = SourceLocation(file: "--listen", line: 1, column: 1)
        let listener = try SimulatorListener(
            "martlet-simulator", at: Located(address, at: location), try Self.handler(kind))
        url = "http://\(StartBanner.reachable(listener.address))"
        services = try Services.ofCommand()
        loops = try listener.start(try Self.snapshot(services), services)
    }

    func stop() async {
        await SimulatorListener.stop([loops])
        services.shutdown()
    }

    private static func handler(_ kind: SimulateCommand.Kind) throws(StartError) -> LocalHandler {
        switch kind {
        case .apple(let developers):
            let client = try SimulatorClient()
            let simulator = try AppleSimulator.ofCommand(
                developers.keys.map(\.key), refreshesPerDay: developers.refreshesPerDay)
            return AppleSimulatorEndpoints(simulator, http: client).handle
        case .weChat(let apps):
            return WeChatSimulatorEndpoints(WeChatSimulator(apps: apps.map(\.app), clock: .system)).handle
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
