private import CLinux
internal import MartletConfig
internal import MartletCore
internal import MartletCrypto
internal import MartletIO
private import MartletJSON
internal import MartletProvider
internal import MartletProxy
internal import MartletSimulator

/// A gateway with everything it needs in one process: a pretended Apple on a loopback port, and the echo as upstream.
struct Demo {
    private static let patience = Duration.milliseconds(300)

    private let gateway: Gateway
    private let apple: LoopGroup
    private let appleURL: String
    private let simulator: AppleSimulator
    private let note: String?

    /// Builds and starts everything.
    /// - Parameters:
    ///   - listen: where clients shall connect to.
    ///   - note: what the page says about that.
    init(listen: String, note: String?, registry: ProviderRegistry, sink: LogSink) async throws(DemoFailure) {
        do throws(CryptoError) {
            simulator = try AppleSimulator(clock: .system)
        } catch {
            throw DemoFailure(text: "cannot make keys: \(error)", exit: .internalFault)
        }
        self.note = note
        do throws(StartError) {
            let endpoints = AppleSimulatorEndpoints(simulator)
            var places = Listeners()
            let sockets = try places.open([Self.anyPort], loops: 1, role: .local(endpoints.answer))
            appleURL = "http://\(places.addresses.first?.description ?? "")"
            let blueprint = try Self.blueprint(listen, appleURL, registry)
            let services = try Services(sink: sink, level: blueprint.configuration.log.level)
            gateway = try Gateway(blueprint, services: services)
            apple = try LoopGroup(
                "martlet-apple", snapshot: gateway.graph.snapshot, sockets: sockets, resolved: [], services: services,
                connections: ConnectionLimit(), log: NoAccessLog())
            try await gateway.start()
        } catch {
            throw DemoFailure(text: error.description, exit: error.exit)
        }
    }

    private static let anyPort = ListenerConfiguration(
        address: Located(.ip(host: "127.0.0.1", port: 0), at: SourceLocation(file: "demo", line: 1, column: 1)),
        reusePort: false)

    private static func blueprint(
        _ listen: String, _ apple: String, _ registry: ProviderRegistry
    ) throws(StartError) -> Blueprint {
        let (blueprint, diagnostics) = Blueprint.read(
            text: DemoConfiguration.text(listen: listen, apple: apple), name: "demo", registry: registry,
            environment: { _ in nil })
        guard let blueprint else {
            let text = diagnostics.sorted.map(\.description).joined(separator: "\n")
            throw StartError(code: "server.demo_configuration", message: text, exit: .internalFault)
        }
        return blueprint
    }

    /// What there is to try.
    func page() throws(DemoFailure) -> DemoPage {
        DemoPage(
            gateway: gateway.addresses.first ?? "", admin: gateway.adminAddress ?? "", apple: appleURL,
            tokens: try tokens(),
            note: note)
    }

    private func tokens() throws(DemoFailure) -> DemoPage.Tokens {
        let (audience, subject) = (DemoConfiguration.audience, "001234.0123456789abcdef0123456789abcdef.0001")
        do {
            guard let key = simulator.keys.last else { throw DemoFailure(text: "no key", exit: .internalFault) }
            var staff = simulator.token(audience: audience, subject: "001234.0123456789abcdef0123456789abcdef.0002")
            staff.claims["email"] = "ada@example.com"
            staff.claims["is_private_email"] = "false"
            return DemoPage.Tokens(
                good: try simulator.mint(.good, audience: audience, subject: subject),
                expired: try simulator.mint(.expired, audience: audience, subject: subject),
                forged: try simulator.mint(.forged, audience: audience, subject: subject),
                staff: try simulator.mint(staff, by: key))
        } catch {
            throw DemoFailure(text: "cannot sign: \(error)", exit: .internalFault)
        }
    }

    /// Lets requests finish, ends every thread, and removes the socket, if there is one.
    func stop() async {
        let sockets = gateway.addresses.filter { $0.hasPrefix("unix:") }
        await gateway.drain()
        apple.drain(until: Clock.system.monotonicTime + Self.patience)
        await apple.join()
        for socket in sockets { unsafe unlink(String(socket.dropFirst(5))) }
    }
}

/// Why there is no demo.
struct DemoFailure: Error {
    let text: String
    let exit: ExitCode
}

/// The pretended Apple's own requests are nobody's business.
private struct NoAccessLog: AccessLogging {
    let format = AccessFormat.text
    func write(_ lines: UnsafeBufferPointer<UInt8>) {}
}
