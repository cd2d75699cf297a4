private import CLinux
internal import MartletConfig
internal import MartletCore
internal import MartletProvider
internal import MartletProxy
internal import MartletRedis

/// `martlet explain`: what would become of a request, phase by phase.
///
/// Nothing is sent to an upstream.
struct ExplainCommand {
    private let configurationPath: String
    private let path: String
    private let method: String
    private let host: String?
    private let tokenPath: String?
    private let registry: ProviderRegistry

    /// - Throws: `UsageError` without `--path`.
    init(_ options: Options, _ registry: ProviderRegistry) throws(Options.UsageError) {
        guard let path = options["path"] else { throw Options.UsageError(message: "--path is needed") }
        self.path = path
        configurationPath = options["config"] ?? "config.yaml"
        method = options["method"] ?? "GET"
        host = options["host"]
        tokenPath = options["token"]
        self.registry = registry
    }

    func run() async -> ExitCode {
        let (blueprint, diagnostics) = Blueprint.read(
            configurationPath, registry: registry, environment: SystemInformation.environment)
        for diagnostic in diagnostics.sorted { Output.error("\(diagnostic)\n") }
        guard let blueprint else { return .configuration }
        do throws(TokenFile.Failure) {
            let token = try tokenPath.map { (path) throws(TokenFile.Failure) in try TokenFile.read(path) }
            return await explain(
                AskedRequest(method: method, target: path, host: host ?? Self.usualHost(blueprint), token: token),
                blueprint)
        } catch {
            Output.error("martlet explain: \(error.text)\n")
            return .usage
        }
    }

    private func explain(_ request: AskedRequest, _ blueprint: Blueprint) async -> ExitCode {
        do throws(StartError) {
            let services = try Services(sink: LogSink.standardError(), level: .error)
            defer { services.shutdown() }
            let graph = try Graph.build(
                blueprint, services, previous: nil, keys: KeyShelf(), forgetting: ForgetSwitch())
            let explanation = await RequestExplainer(graph.snapshot, clock: services.clock).explain(request)
            Output.line(ExplanationPage(request, explanation, blueprint).text)
            graph.store.shutdown()
            return .ok
        } catch {
            Output.error("martlet explain: \(error)\n")
            return error.exit
        }
    }

    /// What a client says that was told to connect to the first listener.
    private static func usualHost(_ blueprint: Blueprint) -> String {
        guard let address = blueprint.configuration.server.listeners.first?.address.value, case .ip = address else {
            return "localhost"
        }
        return address.configurationText
    }
}

/// A file that holds one token and nothing else.
enum TokenFile {
    /// Why there is no token to be had.
    struct Failure: Error {
        let text: String
    }

    private static let limit = 64 * 1024

    /// Reads a file, or standard input for `-`; white space around the token is left out.
    static func read(_ path: String) throws(Failure) -> Secret {
        let descriptor = path == "-" ? dup(0) : unsafe martlet_open_read(path)
        guard descriptor >= 0 else { throw Failure(text: "cannot read the token file '\(path)': \(reason)") }
        defer { close(descriptor) }
        var bytes: [UInt8] = []
        var chunk = [UInt8](repeating: 0, count: 4096)
        while true {
            let count = unsafe chunk.withUnsafeMutableBytes { unsafe CLinux.read(descriptor, $0.baseAddress, $0.count) }
            if count < 0, martlet_errno() == EINTR { continue }
            guard count >= 0 else { throw Failure(text: "cannot read the token file '\(path)': \(reason)") }
            if count == 0 { break }
            bytes += chunk.prefix(count)
            guard bytes.count <= limit else { throw Failure(text: "the token file is larger than 64KiB") }
        }
        let isSpace = { (byte: UInt8) in byte == 0x20 || (0x09...0x0D).contains(byte) }
        let head = bytes.drop(while: isSpace)
        let end = head.lastIndex { !isSpace($0) }.map { $0 + 1 } ?? head.startIndex
        return Secret(Array(head[..<end]))
    }

    private static var reason: String {
        guard let text = unsafe strerror(martlet_errno()) else { return "error \(martlet_errno())" }
        return unsafe String(cString: text)
    }
}
