internal import MartletConfig
internal import MartletCore
internal import MartletProvider
internal import MartletServer

/// `martlet demo`: runs a gateway to try without a configuration, a network or another service; it removes all its
/// files.
struct DemoCommand: Command {
    static let servesUntilSignal = true

    private let listen: String?
    private let isSecure: Bool
    private let registry: ProviderRegistry

    init(_ options: Options, _ program: Program) throws(Options.UsageError) {
        listen = options["listen"]
        isSecure = options.has("tls")
        registry = program.registry
        guard let listen else { return }
        // It is inserted into a quoted string of the demo's configuration.
        guard SocketAddress(listen) != nil, !listen.utf8.contains(where: { $0 == 0x22 || $0 == 0x5C || $0 == 0x24 })
        else {
            throw Options.UsageError(message: "--listen requires an address such as 127.0.0.1:8080")
        }
    }

    func run() async -> ExitCode {
        do {
            let sink = try LogSink(.auto, descriptor: 2)
            let signals = try Signals.stream()
            let address = DemoAddress(listen, isSecure: isSecure)
            let demo = try await Demo(at: address, isSecure: isSecure, registry: registry, sink: sink)
            Output.line(try demo.page().text)
            if Output.writeError == nil { await serve(demo, signals) } else { await demo.stop() }
            return .ok
        } catch let error as DemoError {
            Output.error("martlet demo: \(error.message)\n")
            return error.exit
        } catch {
            Output.error("martlet demo: \(error)\n")
            return .internalFault
        }
    }

    /// Waits for a signal and stops the demo; a second signal exits immediately.
    private func serve(_ demo: Demo, _ signals: AsyncStream<Signals.Signal>) async {
        waiting: for await signal in signals {
            if case .end = signal { break waiting }
        }
        let secondSignal = Task {
            for await signal in signals {
                if case .end(let number) = signal { ProcessExit.exit(128 + number, flushTimeout: .milliseconds(100)) }
            }
        }
        await demo.stop()
        secondSignal.cancel()
    }

    static let grammar = CommandGrammar("demo", "Run a gateway to try, with simulated issuers and an upstream") {
        grammar in
        grammar.details = """
            Runs a gateway in front of an echo upstream, with a simulated Apple and WeChat, in one process without a
            configuration or a network, and prints commands to try. Everything is removed at the end.
            """
        grammar.options = [
            .value(
                "listen", "ADDRESS", .address,
                "the gateway's address; default: 127.0.0.1:8080, or a free port if in use"),
            .flag("tls", "serve HTTPS with a generated certificate, and HTTP/2"),
        ]
        grammar.example("martlet demo", "prints an address to open in a browser")
        grammar.exits = [.ok: "stopped by SIGTERM or SIGINT", .unavailable: "an address is in use"]
    }
}
