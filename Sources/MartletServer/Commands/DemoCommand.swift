private import CLinux
internal import MartletConfig
internal import MartletCore
internal import MartletIO
internal import MartletProvider

/// `martlet demo`: something to try without a configuration, a network or another service.
///
/// Leaves nothing behind.
struct DemoCommand {
    private let listen: String?
    private let isSecure: Bool
    private let registry: ProviderRegistry

    /// - Throws: `UsageError` for a `--listen` that is no address.
    init(_ options: Options, _ registry: ProviderRegistry) throws(Options.UsageError) {
        listen = options["listen"]
        isSecure = options.has("tls")
        self.registry = registry
        guard let listen else { return }
        // It stands between quotation marks in the demo's configuration.
        guard SocketAddress(listen) != nil, !listen.utf8.contains(where: { $0 == 0x22 || $0 == 0x5C || $0 == 0x24 })
        else {
            throw Options.UsageError(message: "--listen wants an address such as 127.0.0.1:8080")
        }
    }

    func run() async -> ExitCode {
        do {
            let sink = try LogSink(.auto, descriptor: 2)
            let signals = try Signals.stream()
            let (address, note) = place()
            let demo = try await Demo(listen: address, isSecure: isSecure, note: note, registry: registry, sink: sink)
            Output.line(try demo.page().text)
            if Output.problem == nil { await end(demo, signals) } else { await demo.stop() }
            return .ok
        } catch let failure as DemoFailure {
            Output.error("martlet demo: \(failure.text)\n")
            return failure.exit
        } catch {
            Output.error("martlet demo: \(error)\n")
            return .internalFault
        }
    }

    /// Where to listen: what is asked for, else the usual place, else a free port.
    private func place() -> (address: String, note: String?) {
        if let listen { return (listen, nil) }
        let port: UInt16 = isSecure ? 8443 : 8080
        guard let usual = SocketEndpoint(literal: "127.0.0.1", port: port),
            let probe = try? Socket.listen(on: usual, sharesPort: false, backlog: 1)
        else { return ("127.0.0.1:0", "port \(port) is taken, so this is a free one") }
        close(probe)
        return ("127.0.0.1:\(port)", nil)
    }

    /// Waits for the signal to leave, and leaves; a second one leaves at once.
    private func end(_ demo: Demo, _ signals: AsyncStream<Signals.Signal>) async {
        waiting: for await signal in signals {
            if case .end = signal { break waiting }
        }
        let impatience = Task {
            for await signal in signals {
                if case .end(let number) = signal { ProcessEnd.leave(128 + number, waitingForLog: .milliseconds(100)) }
            }
        }
        await demo.stop()
        impatience.cancel()
    }
}
