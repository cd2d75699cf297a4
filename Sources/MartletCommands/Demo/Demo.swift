private import CLinux
internal import MartletAccounts
internal import MartletConfig
internal import MartletCore
internal import MartletCrypto
private import MartletJSON
internal import MartletProvider
internal import MartletServer
internal import MartletSimulator

/// A gateway with all its dependencies in one process: a simulated Apple, a simulated WeChat and the receiver of a
/// webhook on loopback ports, accounts in a temporary folder with one password user, and the echo upstream.
struct Demo {
    private let gateway: Gateway
    private let simulators: DemoSimulators
    private let simulatorLoops: [LoopGroup]
    private let folder: DemoFolder
    private let certificate: DemoCertificate?
    private let address: DemoAddress

    /// Builds and starts everything.
    /// - Parameter isSecure: whether to use TLS, with a generated certificate.
    init(
        at address: DemoAddress, isSecure: Bool, registry: ProviderRegistry, sink: LogSink
    ) async throws(DemoError) {
        guard let folder = DemoFolder() else {
            throw DemoError(message: "cannot create a folder in /tmp", exit: .unavailable)
        }
        self.folder = folder
        self.address = address
        do throws(StartError) {
            certificate = isSecure ? try DemoCertificate(in: folder) : nil
            simulators = try DemoSimulators(authority: certificate?.authorityFile)
            let blueprint = try Self.blueprint(address, simulators, folder, certificate, registry)
            gateway = try Gateway(blueprint, sink: sink)
            simulatorLoops = try simulators.start(gateway)
            try await gateway.start()
            try await Self.addUser(gateway)
        } catch {
            folder.remove()
            throw DemoError(message: error.description, exit: error.exit)
        }
    }

    private static func blueprint(
        _ address: DemoAddress, _ simulators: DemoSimulators, _ folder: DemoFolder, _ certificate: DemoCertificate?,
        _ registry: ProviderRegistry
    ) throws(StartError) -> Blueprint {
        let keys = try Self.keys(of: simulators.apple)
        let text = DemoConfiguration(
            listen: address.listen, origin: address.origin, apple: simulators.appleURL, weChat: simulators.weChatURL,
            webhook: simulators.webhookURL,
            webhookSecret: keys.webhook, folder: folder.path,
            appleKeyFile: try folder.write(keys.apple, to: "AuthKey.p8"),
            accountKeyFile: try folder.write(Array(keys.accounts.utf8), to: "account.key"), certificate: certificate
        ).text
        let (blueprint, diagnostics) = Blueprint.read(
            text: text, name: "demo", registry: registry, environment: { _ in nil })
        guard let blueprint else {
            let text = diagnostics.sorted.map(\.description).joined(separator: "\n")
            throw StartError(code: "server.demo_configuration", message: text, exit: .internalFault)
        }
        return blueprint
    }

    /// The developer's key of the simulated Apple, and new keys of the account store and the webhook.
    private static func keys(
        of simulator: AppleSimulator
    ) throws(StartError) -> (apple: Secret, accounts: String, webhook: String) {
        guard let developer = simulator.developer else {
            throw StartError(code: "server.demo_key", message: "no key was generated", exit: .internalFault)
        }
        do throws(CryptoError) {
            let (accounts, webhook) = (try RandomBytes.make(32), try RandomBytes.make(32))
            return (
                try developer.pem(), Base64.encode(accounts, padding: .required),
                "whsec_" + Base64.encode(webhook, padding: .required)
            )
        } catch {
            throw StartError(code: error.code, message: "cannot generate keys: \(error)", exit: .internalFault)
        }
    }

    private static func addUser(_ gateway: Gateway) async throws(StartError) {
        let graph = gateway.graph
        guard let maker = graph.providers.compactMap(\.userCreating).first, let accounts = graph.accounts?.store else {
            throw StartError(code: "server.demo_user", message: "no provider stores users", exit: .internalFault)
        }
        let administration = UserAdministration(
            accounts: accounts, maker: maker, provider: "password", clock: gateway.services.clock, ending: nil)
        _ = try await administration.perform(.add, name: DemoConfiguration.user) { () throws(StartError) in
            Secret(DemoConfiguration.password)
        }
    }

    func page() throws(DemoError) -> DemoPage {
        try writeTokens()
        return DemoPage(
            gateway: gateway.addresses.first ?? "", origin: address.origin, admin: gateway.adminAddresses.first ?? "",
            apple: simulators.appleURL,
            weChat: simulators.weChatURL, webhook: simulators.webhookURL, folder: folder.path,
            authority: certificate?.authorityFile, note: address.note)
    }

    /// Writes the tokens that the printed commands send: a terminal is no place for them.
    private func writeTokens() throws(DemoError) {
        let apple = simulators.apple
        let (audience, subject) = (DemoConfiguration.audience, "001234.0123456789abcdef0123456789abcdef.0001")
        do {
            guard let key = apple.keys.last else { throw DemoError(message: "no key", exit: .internalFault) }
            var staff = apple.token(audience: audience, subject: "001234.0123456789abcdef0123456789abcdef.0002")
            staff.claims["email"] = "ada@example.com"
            staff.claims["is_private_email"] = "false"
            let good = try apple.mint(.good, audience: audience, subject: subject)
            let tokens: [(DemoPage.File, String)] = [
                (.good, good), (.expired, try apple.mint(.expired, audience: audience, subject: subject)),
                (.forged, try apple.mint(.forged, audience: audience, subject: subject)),
                (.staff, try apple.mint(staff, by: key)),
            ]
            for (file, token) in tokens {
                _ = try folder.write(Array("Authorization: Bearer \(token)\n".utf8), to: file.rawValue)
            }
            _ = try folder.write(Array(#"{"identity_token": "\#(good)"}"#.utf8), to: DemoPage.File.login.rawValue)
        } catch let error as StartError {
            throw DemoError(message: error.message, exit: error.exit)
        } catch {
            throw DemoError(message: "cannot sign: \(error)", exit: .internalFault)
        }
    }

    /// Drains the gateway, stops all threads, and removes the folder and the Unix socket.
    func stop() async {
        let sockets = gateway.addresses.filter { $0.hasPrefix("unix:") }
        await gateway.drain()
        await SimulatorListener.stop(simulatorLoops)
        folder.remove()
        for socket in sockets { unsafe unlink(String(socket.dropFirst(5))) }
    }
}

struct DemoError: Error {
    let message: String
    let exit: ExitCode
}
