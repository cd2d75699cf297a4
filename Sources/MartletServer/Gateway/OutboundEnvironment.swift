internal import MartletConfig
internal import MartletCore
internal import MartletFetch

/// What the environment says about calls of the gateway, for what the configuration does not say.
struct OutboundEnvironment: Sendable {
    static let current = OutboundEnvironment(read: SystemInformation.environment)

    private let caFile: String?
    private let proxy: ProxyAddress?
    private let exceptions: [String]
    /// A variable whose proxy cannot be used.
    private let unusable: String?

    init(read: (String) -> String?) {
        func text(_ names: String...) -> (name: String, value: String)? {
            for name in names {
                if let value = read(name), !value.isEmpty { return (name, value) }
            }
            return nil
        }
        caFile = text("SSL_CERT_FILE")?.value
        let named = text("https_proxy", "HTTPS_PROXY")
        proxy = named.flatMap { ProxyAddress($0.value) }
        unusable = proxy == nil ? named?.name : nil
        exceptions =
            text("no_proxy", "NO_PROXY")?.value.split { $0 == "," || $0 == " " }.map {
                $0.hasPrefix("*.") ? String($0.dropFirst()) : String($0)
            } ?? []
    }

    /// Fills in what a configuration leaves open.
    fileprivate func complete(_ route: inout OutboundRoute, _ configurations: [OutboundConfiguration]) {
        route.caFile = configurations.compactMap(\.caFile?.text).first ?? caFile
        switch configurations.compactMap(\.proxy).first {
        case .off: break
        case .address(let address): (route.proxy, route.proxyLabel) = (address.url, address.label)
        case nil: (route.proxy, route.proxyLabel) = (proxy?.url, proxy?.label)
        }
        route.exceptions = configurations.compactMap(\.exceptions).first ?? exceptions
    }

    /// Says at the start what it has an effect on.
    func log(_ configuration: GatewayConfiguration, _ logger: Logger) {
        if let unusable, configuration.outbound.proxy == nil {
            logger.warning(
                "proxy of the environment ignored", ("code", "\(ErrorCode.configBadURL)"), ("variable", unusable))
        }
        var fields: [(String, String)] = []
        if let caFile, configuration.outbound.caFile == nil { fields.append(("ca_file", caFile)) }
        if let proxy, configuration.outbound.proxy == nil {
            fields.append(("http_proxy", proxy.label))
            if configuration.outbound.exceptions == nil, !exceptions.isEmpty {
                fields.append(("no_proxy", exceptions.joined(separator: ",")))
            }
        }
        guard !fields.isEmpty else { return }
        logger.info("calls follow the environment", fields)
    }
}

extension OutboundRoute {
    /// - Parameters:
    ///   - own: what a provider says; `nil` for calls of the gateway itself.
    ///   - general: `outbound:`.
    init(
        _ own: OutboundConfiguration?, _ general: OutboundConfiguration,
        _ environment: OutboundEnvironment = .current
    ) {
        self.init()
        environment.complete(&self, [own, general].compactMap(\.self))
    }
}
