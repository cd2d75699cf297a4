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
    /// One set for all configurations that are read: TLS sessions go on after a reload.
    private let tickets = TLSTicketKeys(clock: .system)

    init(_ options: Options, _ registry: ProviderRegistry) {
        path = options["config"] ?? "config.yaml"
        listen = options["listen"]
        self.registry = registry
    }

    func run() async -> ExitCode {
        let (blueprint, diagnostics) = read()
        for diagnostic in diagnostics.sorted { Output.error("\(diagnostic)\n") }
        guard let blueprint else { return .configuration }
        do {
            let sink = try LogSink(blueprint.configuration.log.format, descriptor: 1)
            let gateway = try Gateway(blueprint, sink: sink)
            let signals = try Signals.stream()
            try await gateway.start()
            ServiceManager.notify("READY=1")
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

    private func serve(_ gateway: Gateway, _ signals: AsyncStream<Signals.Signal>) async {
        var ending: Task<Void, Never>?
        let (ended, finish) = AsyncStream.makeStream(of: Signals.Signal?.self)
        let forwarding = Task {
            for await signal in signals { finish.yield(signal) }
        }
        for await signal in ended {
            switch signal {
            case .reload: if ending == nil { await reload(gateway) }
            case .end(let number):
                guard ending == nil else { exit(128 + number) }
                ServiceManager.notify("STOPPING=1")
                gateway.services.logger.info("draining", ("signal", String(number)))
                ending = Task {
                    await gateway.drain()
                    finish.yield(nil)
                }
            case nil:
                forwarding.cancel()
                return
            }
        }
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
