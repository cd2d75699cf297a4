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
        Output.report(diagnostics)
        guard let blueprint else { return .configuration }
        do {
            let sink = try LogSink(blueprint.configuration.log.format, descriptor: 1)
            let gateway = try Gateway(blueprint, sink: sink)
            let signals = try Signals.stream()
            try await serve(gateway, signals)
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
    /// - Parameter source: read again instead of the file.
    private func read(_ source: ConfigurationSource? = nil) -> (Blueprint?, Diagnostics) {
        let environment = SystemInformation.environment
        let (blueprint, diagnostics) =
            if let source {
                Blueprint.read(source, registry: registry, environment: environment, tickets: tickets)
            } else {
                Blueprint.read(path, registry: registry, environment: environment, tickets: tickets)
            }
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

    /// Starts the gateway, and goes on until it has ended; signals are heard from the beginning on.
    private func serve(_ gateway: Gateway, _ signals: AsyncStream<Signals.Signal>) async throws {
        let (events, sender) = AsyncStream.makeStream(of: RunSteps.Event.self)
        let forwarding = Task {
            for await signal in signals { sender.yield(.signal(signal)) }
        }
        defer { forwarding.cancel() }
        let starting = start(gateway, sender)
        let desk = ReloadDesk { sender.yield(.signal(.reload)) }
        defer { desk.close() }
        gateway.reloadDesk = desk
        let takeover = Takeover(gateway) { sender.yield(.handedOver) }
        let logger = gateway.services.logger
        let watch = FileWatch(gateway.graph.blueprint.configuration.source.files)
        let watching = look(watch, gateway, sender)
        defer { watching.cancel() }
        var steps = RunSteps()
        for await event in events {
            for step in steps.take(event) {
                switch step {
                case .reload:
                    let waiting = desk.waiting()
                    watch.settle()
                    desk.settle(waiting, await reload(gateway))
                case .readFiles:
                    logger.info("files that the configuration names have changed")
                    _ = await reload(gateway, from: gateway.graph.blueprint.configuration.source)
                case .takeOver: takeover.begin()
                case .refuseTakeOver: logger.warning("no successor is started: this process is ending")
                case .cancelStart(let signal):
                    logger.info("ending before the start is complete", ("signal", String(signal)))
                    starting.cancel()
                    Task {
                        try? await Task.sleep(for: RunCommand.startPatience)
                        sender.yield(.startOverdue)
                    }
                case .drain(let signal):
                    desk.close()
                    if signal != SIGUSR2 { ServiceManager.notify("STOPPING=1") }
                    if signal != 0 { logger.info("draining", ("signal", String(signal))) }
                    Task {
                        await takeover.cancel()
                        await gateway.drain()
                        sender.yield(.drained)
                    }
                case .end: return
                case .fail: return try await starting.value
                case .leave(let status): ProcessEnd.leave(status, waitingForLog: .milliseconds(100))
                }
            }
        }
    }

    private typealias EventSender = AsyncStream<RunSteps.Event>.Continuation

    private func start(_ gateway: Gateway, _ sender: EventSender) -> Task<Void, any Error> {
        Task {
            do {
                try await gateway.start(inheritance)
                // Who waits for this process must not leave everything to one that is ending.
                if !Task.isCancelled { await takeOver(gateway) }
                sender.yield(.started)
            } catch {
                sender.yield(.startFailed)
                throw error
            }
        }
    }

    /// Tells of files that have changed, where the configuration in force asks for it.
    private func look(_ watch: FileWatch, _ gateway: Gateway, _ sender: EventSender) -> Task<Void, any Error> {
        Task {
            while !Task.isCancelled {
                try await Task.sleep(for: FileWatch.interval)
                let configuration = gateway.graph.blueprint.configuration
                guard configuration.server.watch, watch.look(configuration.source.files) else { continue }
                sender.yield(.filesChanged)
            }
        }
    }

    /// How long a start that is no longer wanted may take to come to its end.
    private static let startPatience = Duration.seconds(2)

    /// - Parameter source: read instead of the file.
    private func reload(_ gateway: Gateway, from source: ConfigurationSource? = nil) async -> ReloadOutcome {
        let logger = gateway.services.logger
        ServiceManager.notify("RELOADING=1")
        defer { ServiceManager.notify("READY=1") }
        let (blueprint, diagnostics) = read(source)
        for diagnostic in diagnostics.sorted {
            switch diagnostic.severity {
            case .error: logger.error("the configuration has a mistake", ("diagnostic", diagnostic.description))
            case .warning:
                logger.warning("the configuration may not be meant so", ("diagnostic", diagnostic.description))
            }
        }
        guard let blueprint else {
            gateway.noteReload(success: false)
            logger.error("the configuration was not reloaded; the running one stays")
            return .refused(diagnostics.sorted.map(\.description))
        }
        do throws(StartError) {
            try await gateway.reload(blueprint)
            gateway.noteReload(success: true)
            let routes = blueprint.routes.configured.count
            logger.info("the configuration was reloaded", ("routes", String(routes)))
            return .done(routes: routes, warnings: diagnostics.sorted.map(\.description))
        } catch {
            gateway.noteReload(success: false)
            logger.error("the configuration was not reloaded; the running one stays", ("reason", error.description))
            return .refused(diagnostics.sorted.map(\.description) + [error.description])
        }
    }
}
