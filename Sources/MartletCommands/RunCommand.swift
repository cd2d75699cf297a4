private import CLinux
internal import MartletAdmin
internal import MartletConfig
internal import MartletCore
internal import MartletProvider
internal import MartletRouter
internal import MartletServer
internal import MartletTLS

/// `martlet run`: serves until a signal ends it.
struct RunCommand: Command {
    static let servesUntilSignal = true
    static let inheritsSockets = true

    private let path: String
    private let listen: String?
    private let registry: ProviderRegistry
    private let inherited: InheritedSockets
    /// Shared by all configurations, so that TLS sessions can be resumed after a reload.
    private let tickets = TLSTicketKeys(clock: .system)

    init(_ options: Options, _ program: Program) throws(Options.UsageError) {
        path = try ConfigurationPath.ofArgument(options)
        guard path != "-" else {
            throw Options.UsageError(message: "the configuration must be a file, because a reload reads it again")
        }
        listen = options["listen"]
        guard listen.map({ SocketAddress($0) != nil }) ?? true else {
            throw Options.UsageError(message: "--listen must be an address such as 127.0.0.1:8080")
        }
        self.registry = program.registry
        inherited = program.inherited
    }

    func run() async -> ExitCode {
        let (blueprint, diagnostics) = read()
        Output.report(diagnostics)
        guard let blueprint else { return .configuration }
        do {
            let configuration = blueprint.configuration
            let sink = try LogSink(
                configuration.log.format, descriptor: 1,
                instanceID: configuration.makeInstanceID(host: SystemInformation.hostName))
            let gateway = try Gateway(blueprint, sink: sink)
            let signals = try Signals.stream()
            try await serve(gateway, signals)
            if Terminal.output.isTerminal { Output.error("martlet: stopped\n") }
            return .ok
        } catch let error as StartError {
            Output.error("martlet: \(error)\n")
            return error.exit
        } catch {
            Output.error("martlet: \(error)\n")
            return .internalFault
        }
    }

    /// Reads the configuration; `--listen` replaces `server.listen`.
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

    /// Reports to the predecessor or to the service manager that the gateway serves.
    private func takeOver(_ gateway: Gateway) async {
        guard let predecessor = inherited.predecessor else { return ServiceManager.notify("READY=1") }
        let pid = String(predecessor.pid)
        guard await predecessor.sendReady() else {
            return gateway.services.logger.error("predecessor keeps serving; this process exits", ("pid", pid))
        }
        gateway.takeOwnership()
        gateway.services.logger.info("took over from predecessor", ("pid", pid))
        // The service manager ignores this process until the predecessor has confirmed.
        ServiceManager.notify("READY=1")
    }

    /// Starts the gateway and handles events until it has shut down; signals are handled during the start, too.
    private func serve(_ gateway: Gateway, _ signals: AsyncStream<Signals.Signal>) async throws {
        let (events, sender) = AsyncStream.makeStream(of: RunSteps.Event.self)
        let forwarding = Task {
            for await signal in signals { sender.yield(.signal(signal)) }
        }
        defer { forwarding.cancel() }
        let starting = start(gateway, sender)
        let reloads = ReloadQueue { sender.yield(.signal(.reload)) }
        defer { reloads.close() }
        gateway.reloadQueue = reloads
        let takeover = Takeover(gateway) { sender.yield(.handedOver) }
        let logger = gateway.services.logger
        let watch = FileWatch(gateway.graph.blueprint.configuration.source.files)
        let watching = poll(watch, gateway, sender)
        defer { watching.cancel() }
        var steps = RunSteps()
        for await event in events {
            for step in steps.handle(event) {
                switch step {
                case .reload:
                    let waiting = reloads.waiting()
                    watch.reset()
                    reloads.complete(waiting, await reload(gateway, for: reloads.trigger(of: waiting)))
                case .readFiles:
                    logger.info("watched files changed; reloading")
                    _ = await reload(gateway, for: .watch, from: gateway.graph.blueprint.configuration.source)
                case .reopenFiles:
                    gateway.reopenFiles()
                    gateway.reopenAuditLog()
                case .takeOver: takeover.begin()
                case .rejectTakeOver: logger.warning("upgrade ignored: this process is shutting down")
                case .cancelStart(let signal):
                    logger.info("shutting down before startup completed", ("signal", String(signal)))
                    starting.cancel()
                    Task {
                        try? await Task.sleep(for: RunCommand.startCancellationTimeout)
                        sender.yield(.startOverdue)
                    }
                case .drain(let signal):
                    reloads.close()
                    if signal != SIGUSR2 { ServiceManager.notify("STOPPING=1") }
                    if signal != 0 { logger.info("draining", ("signal", String(signal))) }
                    Task {
                        await takeover.cancel()
                        await gateway.drain()
                        sender.yield(.drained)
                    }
                case .end: return
                case .fail: return try await starting.value
                case .exit(let status): ProcessExit.exit(status, flushTimeout: .milliseconds(100))
                }
            }
        }
    }

    private typealias EventSender = AsyncStream<RunSteps.Event>.Continuation

    private func start(_ gateway: Gateway, _ sender: EventSender) -> Task<Void, any Error> {
        Task {
            do {
                try await gateway.start(inherited)
                // The predecessor must not hand over to a process that shuts down.
                if !Task.isCancelled { await takeOver(gateway) }
                // Beside lines in JSON it would be in the way.
                if Terminal.output.isTerminal, gateway.graph.blueprint.configuration.log.format != .json {
                    Output.error(StartBanner(gateway).text(.error))
                }
                sender.yield(.started)
            } catch {
                sender.yield(.startFailed)
                throw error
            }
        }
    }

    /// Sends an event when watched files have changed, if the current configuration enables `server.watch`.
    private func poll(_ watch: FileWatch, _ gateway: Gateway, _ sender: EventSender) -> Task<Void, any Error> {
        Task {
            while !Task.isCancelled {
                try await Task.sleep(for: FileWatch.interval)
                let configuration = gateway.graph.blueprint.configuration
                guard configuration.server.watch, watch.poll(configuration.source.files) else { continue }
                sender.yield(.filesChanged)
            }
        }
    }

    private static let startCancellationTimeout = Duration.seconds(2)

    /// - Parameter source: read instead of the file.
    private func reload(
        _ gateway: Gateway, for trigger: ReloadTrigger, from source: ConfigurationSource? = nil
    ) async -> ReloadOutcome {
        let logger = gateway.services.logger
        ServiceManager.notify("RELOADING=1")
        defer { ServiceManager.notify("READY=1") }
        await gateway.releaseReplaced()
        let (blueprint, diagnostics) = read(source)
        for diagnostic in diagnostics.sorted {
            switch diagnostic.severity {
            case .error: logger.error("configuration error", ("diagnostic", diagnostic.description))
            case .warning: logger.warning("configuration warning", ("diagnostic", diagnostic.description))
            }
        }
        guard let blueprint else {
            gateway.recordReload(
                ReloadRecording(trigger, isSuccess: false, reason: diagnostics.errors.first?.code))
            logger.error("configuration not reloaded; the running configuration stays in effect")
            return .rejected(diagnostics.sorted.map(\.description))
        }
        do throws(StartError) {
            try await gateway.reload(blueprint, for: trigger)
            gateway.recordReload(ReloadRecording(trigger, isSuccess: true, digest: blueprint.digest))
            let routes = blueprint.routes.configured.count
            logger.info("configuration reloaded", ("routes", String(routes)))
            return .done(routes: routes, warnings: diagnostics.sorted.map(\.description))
        } catch {
            gateway.recordReload(
                ReloadRecording(trigger, isSuccess: false, digest: blueprint.digest, reason: error.code))
            logger.error(
                "configuration not reloaded; the running configuration stays in effect", ("reason", error.description))
            return .rejected(diagnostics.sorted.map(\.description) + [error.description])
        }
    }

    static let grammar = CommandGrammar("run", "Serve until SIGTERM") { grammar in
        grammar.details = """
            Serves until SIGTERM or SIGINT, which let requests in progress finish. SIGHUP reloads the configuration, SIGUSR2
            hands the listeners over to a new process of the executable.
            """
        grammar.arguments = [ConfigurationPath.argument]
        grammar.options = [
            .value(
                "config", "FILE", .file,
                "the configuration, a file; default: $\(ConfigurationPath.variable), else config.yaml, else "
                    + ConfigurationPath.system
            ).short("c"),
            .value(
                "listen", "ADDRESS", .address,
                "an address that replaces server.listen: 127.0.0.1:8080, [::1]:8080, unix:/run/a.sock"),
        ]
        grammar.example("martlet run", "serves the configuration of the working directory")
        grammar.example("martlet run /etc/martlet/config.yaml", "serves that of an installed gateway")
        grammar.exits = [
            .ok: "clean shutdown", .unavailable: "an address is in use, or something that is required is unavailable",
            .configuration: "the configuration has errors",
        ]
    }
}
