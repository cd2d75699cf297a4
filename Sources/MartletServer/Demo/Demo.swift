private import CLinux
internal import MartletAccounts
internal import MartletConfig
internal import MartletCore
internal import MartletCrypto
private import MartletJSON
internal import MartletProvider
internal import MartletSimulator

/// A gateway with everything it needs in one process: a pretended Apple and a pretended WeChat on loopback ports, accounts in
/// a folder of its own with one password user, and the echo as upstream.
struct Demo {
    private let gateway: Gateway
    private let simulators: DemoSimulators
    private let simulating: [LoopGroup]
    private let folder: DemoFolder
    private let certificate: DemoCertificate?
    private let note: String?

    /// Builds and starts everything.
    /// - Parameters:
    ///   - listen: where clients shall connect to.
    ///   - isSecure: whether by TLS, with a certificate of the demo's own.
    ///   - note: what the page says about that.
    init(
        listen: String, isSecure: Bool, note: String?, registry: ProviderRegistry, sink: LogSink
    ) async throws(DemoFailure) {
        guard let folder = DemoFolder() else {
            throw DemoFailure(text: "cannot make a folder in /tmp", exit: .unavailable)
        }
        self.folder = folder
        self.note = note
        do throws(StartError) {
            simulators = try DemoSimulators()
            certificate = isSecure ? try DemoCertificate(in: folder.path) : nil
            let blueprint = try Self.blueprint(listen, simulators, folder, certificate, registry)
            gateway = try Gateway(blueprint, sink: sink)
            simulating = try simulators.start(gateway)
            try await gateway.start()
            try await Self.addUser(gateway)
        } catch {
            folder.remove()
            throw DemoFailure(text: error.description, exit: error.exit)
        }
    }

    private static func blueprint(
        _ listen: String, _ simulators: DemoSimulators, _ folder: DemoFolder, _ certificate: DemoCertificate?,
        _ registry: ProviderRegistry
    ) throws(StartError) -> Blueprint {
        let text = DemoConfiguration.text(
            listen: listen, apple: simulators.appleURL, weChat: simulators.weChatURL, folder: folder.path,
            certificate: certificate)
        let (blueprint, diagnostics) = Blueprint.read(
            text: text, name: "demo", registry: registry, environment: { _ in nil })
        guard let blueprint else {
            let text = diagnostics.sorted.map(\.description).joined(separator: "\n")
            throw StartError(code: "server.demo_configuration", message: text, exit: .internalFault)
        }
        return blueprint
    }

    /// Adds the one user that the page knows.
    private static func addUser(_ gateway: Gateway) async throws(StartError) {
        let graph = gateway.graph
        guard let maker = graph.providers.compactMap(\.userMaking).first, let accounts = graph.accounts?.store else {
            throw StartError(code: "server.demo_user", message: "no provider has users", exit: .internalFault)
        }
        let desk = UserAdministration(
            accounts: accounts, maker: maker, provider: "password", clock: gateway.services.clock, sessions: nil)
        _ = try await desk.perform(.add, name: DemoConfiguration.user) { () throws(StartError) in
            Secret(DemoConfiguration.password)
        }
    }

    /// What there is to try.
    func page() throws(DemoFailure) -> DemoPage {
        DemoPage(
            gateway: gateway.addresses.first ?? "", admin: gateway.adminAddress ?? "", apple: simulators.appleURL,
            weChat: simulators.weChatURL, folder: folder.path, authority: certificate?.authorityFile,
            tokens: try tokens(), note: note)
    }

    private func tokens() throws(DemoFailure) -> DemoPage.Tokens {
        let apple = simulators.apple
        let (audience, subject) = (DemoConfiguration.audience, "001234.0123456789abcdef0123456789abcdef.0001")
        do {
            guard let key = apple.keys.last else { throw DemoFailure(text: "no key", exit: .internalFault) }
            var staff = apple.token(audience: audience, subject: "001234.0123456789abcdef0123456789abcdef.0002")
            staff.claims["email"] = "ada@example.com"
            staff.claims["is_private_email"] = "false"
            return DemoPage.Tokens(
                good: try apple.mint(.good, audience: audience, subject: subject),
                expired: try apple.mint(.expired, audience: audience, subject: subject),
                forged: try apple.mint(.forged, audience: audience, subject: subject),
                staff: try apple.mint(staff, by: key))
        } catch {
            throw DemoFailure(text: "cannot sign: \(error)", exit: .internalFault)
        }
    }

    /// Lets requests finish, ends every thread, and removes the folder and the socket, if there is one.
    func stop() async {
        let sockets = gateway.addresses.filter { $0.hasPrefix("unix:") }
        await gateway.drain()
        await DemoSimulators.stop(simulating)
        folder.remove()
        for socket in sockets { unsafe unlink(String(socket.dropFirst(5))) }
    }
}

/// Why there is no demo.
struct DemoFailure: Error {
    let text: String
    let exit: ExitCode
}
