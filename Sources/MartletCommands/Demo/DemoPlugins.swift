internal import MartletConfig
internal import MartletCore
private import MartletIO
internal import MartletJSON
internal import MartletProvider
internal import MartletProxy
private import MartletResponder
internal import MartletServer

/// The providers that bring a simulator of their own: each has a block, a route, a loopback port and a chapter of the page.
struct DemoPlugins {
    /// One of them.
    struct Entry: Sendable {
        let kind: String
        /// The base URL of its simulator.
        let url: String
        /// The provider's block, without `kind`.
        let configuration: JSONObject
        let commands: [DemonstrationCommand]

        /// What its route matches.
        var pattern: String { "\(DemoPlugins.folder)/\(kind)/**" }
    }

    /// Above the paths of their routes.
    private static let folder = "/plugin"

    let entries: [Entry]
    /// Bound, and not served yet.
    let sockets: [(name: String, sockets: [[ListenerSocket]])]

    /// Binds a port for each kind that brings a simulator, and makes the simulators.
    init(_ registry: ProviderRegistry, _ folder: DemoFolder, _ logger: Logger) throws(StartError) {
        var entries: [Entry] = []
        var sockets: [(name: String, sockets: [[ListenerSocket]])] = []
        for kind in registry.kinds {
            guard let make = registry.factory(for: kind)?.makeSimulator else { continue }
            let service = PluginSimulatorService(logger.with(("kind", kind.rawValue)))
            var listeners = Listeners()
            sockets.append(
                (
                    "martlet-plugin",
                    try listeners.open(
                        [DemoSimulators.anyPort], loops: 1, role: .local(ListenerHandler { await service.handle($0) }))
                ))
            let url = "http://\(listeners.addresses.first?.description ?? "")"
            let simulator = try Self.simulator(kind.rawValue, url, folder, make)
            service.serve(simulator.handler)
            entries.append(try Self.entry(kind.rawValue, url, simulator))
        }
        (self.entries, self.sockets) = (entries, sockets)
    }

    /// Makes a simulator and writes its files.
    private static func simulator(
        _ kind: String, _ url: String, _ folder: DemoFolder, _ make: (SimulatorSite) throws -> Simulator
    ) throws(StartError) -> Simulator {
        // It becomes a part of the configuration, of a path and of commands.
        guard (1...64).contains(kind.utf8.count), kind.utf8.allSatisfy(isOfName) else {
            throw failure(kind, "the kind is not made of lower-case letters, digits and underscores")
        }
        let site = SimulatorSite(url: url, path: "\(self.folder)/\(kind)/hello", folder: folder.path, clock: .system)
        let simulator: Simulator
        do { simulator = try make(site) } catch { throw failure(kind, "\(error)") }
        for (name, content) in simulator.files.sorted(by: { $0.key < $1.key }) {
            guard (1...100).contains(name.utf8.count), !name.hasPrefix("."),
                name.utf8.allSatisfy({ isOfName($0) || $0 == 0x2E || $0 == 0x2D })
            else { throw failure(kind, "\(name) is no name of a file such as partner-1.key") }
            _ = try folder.write(content, to: name)
        }
        return simulator
    }

    private static func entry(_ kind: String, _ url: String, _ simulator: Simulator) throws(StartError) -> Entry {
        var commands: [DemonstrationCommand] = []
        for demonstration in simulator.demonstrations {
            guard let command = DemonstrationCommand(demonstration, of: url) else {
                throw failure(kind, "the demonstration \(quoted(demonstration.summary)) cannot be printed as a command")
            }
            commands.append(command)
        }
        return Entry(kind: kind, url: url, configuration: simulator.configuration, commands: commands)
    }

    private static func isOfName(_ byte: UInt8) -> Bool {
        (0x61...0x7A).contains(byte) || (0x30...0x39).contains(byte) || byte == 0x5F
    }

    private static func failure(_ kind: String, _ reason: String) -> StartError {
        StartError(
            code: "server.demo_simulator",
            message: "the simulator of kind \(quoted(kind)): \(TerminalText.escaped(reason))", exit: .configuration)
    }
}

extension DemoPlugins.Entry {
    /// The line of `providers`. JSON is YAML in which only `${` has a meaning of its own.
    var providerLine: String {
        var block = configuration
        block["kind"] = .string(kind)
        let text = String(decoding: JSON.write(block), as: UTF8.self).replacing("${", with: "$${")
        return "\(kind): \(text)"
    }

    /// The line of `routes`.
    var routeLine: String {
        "- { name: plugin-\(kind), match: { path: \"\(pattern)\" }, auth: { providers: [\(kind)] }, upstream: echo }"
    }
}
