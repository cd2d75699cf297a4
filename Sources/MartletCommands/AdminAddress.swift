internal import MartletConfig
internal import MartletCore
internal import MartletIO
internal import MartletProvider
internal import MartletServer

/// The admin listener of the running gateway: the address of `--address`, or that of a configuration.
struct AdminAddress {
    let path: String
    let address: String?
    let registry: ProviderRegistry

    func endpoint() throws(StartError) -> SocketEndpoint {
        let configured: SocketAddress
        if let address {
            guard let parsed = SocketAddress(address) else {
                throw StartError(
                    code: "server.bad_address", message: "--address requires an address such as 127.0.0.1:9901",
                    exit: .usage)
            }
            configured = parsed
        } else {
            configured = try configuredAddress()
        }
        if case .ip(_, port: 0) = configured {
            throw StartError(
                code: "server.bad_address", message: "the admin port is chosen at startup; pass it as --address",
                exit: .usage)
        }
        guard let endpoint = SocketEndpoint(configured) else {
            throw StartError(
                code: "server.bad_address",
                message:
                    "the admin listener is an inherited socket; pass its address as --address",
                exit: .usage)
        }
        return endpoint
    }

    private func configuredAddress() throws(StartError) -> SocketAddress {
        let (configuration, diagnostics) = GatewayConfiguration.load(
            path: path, environment: SystemInformation.environment, knownKinds: registry.kinds.map(\.rawValue))
        guard let configuration else {
            Output.report(diagnostics)
            throw StartError(
                code: "server.no_configuration", message: "the configuration has errors", exit: .configuration)
        }
        guard let admin = configuration.admin else {
            throw StartError(
                code: "server.no_admin", message: "the configuration has no admin listener", exit: .configuration)
        }
        return admin.address.value
    }
}
