private import CLinux
internal import MartletConfig
internal import MartletCore
internal import MartletProvider
internal import MartletRouter
internal import MartletTLS

/// `martlet run`: serves until a signal ends it.
struct RunCommand {
    private let path: String
    private let listen: String?
    private let registry: ProviderRegistry
    private let inheritance: Inheritance
    /// One set for all configurations that are read: TLS sessions go on after a reload.
    private let tickets = TLSTicketKeys(clock: .system)

    init(_ options: Options, _ registry: ProviderRegistry, _ inheritance: Inheritance) {
        path = options["config"] ?? "config.yaml"
        listen = options["listen"]
        self.registry = registry
        self.inheritance = inheritance
    }

    func run() async -> ExitCode {
        let (blueprint, diagnostics) = read()
        for diagnostic in diagnostics.sorted { Output.error("\(diagnostic)\n") }
        guard let blueprint else { return .configuration }
        do {
            let sink = try LogSink(blueprint.configuration.log.format, descriptor: 1)
            let gateway = try Gateway(blueprint, sink: sink)
            let signals = try Signals.stream()
            try await gateway.start(inheritance)
            await takeOver(gateway)
            await serve(gateway, signals)
            sink.flush()
            return .ok
        } catch let error as StartError {
            Output.error("martlet: \(error)\n")
            return error.exit
        } catch {
            Output.error("martlet: \(error)\n")
            return .internalFault
        }
    }

    /// Reads the configuration; `--listen` stands for the whole of `server.listen`.
    private func read() -> (Blueprint?, Diagnostics) {
        let (blueprint, diagnostics) = Blueprint.read(
            path, registry: registry, environment: SystemInformation.environment, tickets: tickets)
        guard let listen, let blueprint else { return (blueprint, diagnostics) }
        return blueprint.listening(on: listen, diagnostics)
    }

    /// Tells whoever waits for it that the gateway serves.
    private func takeOver(_ gateway: Gateway) async {
        guard let predecessor = inheritance.predecessor else { return ServiceManager.notify("READY=1") }
        let pid = String(predecessor.pid)
        guard await predecessor.tellReady() else {
            return gateway.services.logger.error("the process before goes on; this one is to end", ("pid", pid))
        }
        gateway.ownEverything()
        gateway.services.logger.info("took over from the process before", ("pid", pid))
        // Not before: until then the service manager listens to the predecessor alone.
        ServiceManager.notify("READY=1")
    }

    private func serve(_ gateway: Gateway, _ signals: AsyncStream<Signals.Signal>) async {
        var ending: Task<Void, Never>?
        let (events, sender) = AsyncStream.makeStream(of: ServingEvent.self)
        let forwarding = Task {
            for await signal in signals { sender.yield(.signal(signal)) }
        }
        let takeover = Takeover(gateway) { sender.yield(.handedOver) }
        func end() {
            ending = Task {
                await takeover.cancel()
                await gateway.drain()
                sender.yield(.drained)
            }
        }
        for await event in events {
            switch event {
            case .signal(.reload): if ending == nil { await reload(gateway) }
            case .signal(.takeOver):
                guard ending == nil else {
                    gateway.services.logger.warning("no successor is started: this process is ending")
                    break
                }
                takeover.begin()
            case .signal(.end(let number)):
                guard ending == nil else { exit(128 + number) }
                ServiceManager.notify("STOPPING=1")
                gateway.services.logger.info("draining", ("signal", String(number)))
                end()
            case .handedOver:
                guard ending == nil else { break }
                gateway.services.logger.info("draining", ("signal", String(SIGUSR2)))
                end()
            case .drained:
                forwarding.cancel()
                return
            }
        }
    }

    /// What happens while the gateway serves.
    private enum ServingEvent: Sendable {
        case signal(Signals.Signal)
        /// A successor serves.
        case handedOver
        case drained
    }

    private func reload(_ gateway: Gateway) async {
        let logger = gateway.services.logger
        ServiceManager.notify("RELOADING=1")
        defer { ServiceManager.notify("READY=1") }
        let (blueprint, diagnostics) = read()
        for diagnostic in diagnostics.sorted {
            switch diagnostic.severity {
            case .error: logger.error("the configuration has a mistake", ("diagnostic", diagnostic.description))
            case .warning:
                logger.warning("the configuration may not be meant so", ("diagnostic", diagnostic.description))
            }
        }
        guard let blueprint else {
            gateway.noteReload(success: false)
            return logger.error("the configuration was not reloaded; the running one stays")
        }
        do throws(StartError) {
            try await gateway.reload(blueprint)
            gateway.noteReload(success: true)
            logger.info("the configuration was reloaded", ("routes", String(blueprint.routes.configured.count)))
        } catch {
            gateway.noteReload(success: false)
            logger.error("the configuration was not reloaded; the running one stays", ("reason", error.description))
        }
    }
}
