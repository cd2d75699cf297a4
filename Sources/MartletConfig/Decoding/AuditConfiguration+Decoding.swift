private import MartletCore

extension AuditConfiguration: ConfigurationDecodable {
    package static var grammar: ConfigurationGrammar? {
        ConfigurationGrammar([
            .optional("file", .path, "The file that lines are appended to."),
            .optional(
                "syslog", .pattern("^(unix:|udp://)"), "A syslog server: `unix:/dev/log` or `udp://host:514`."),
            .optional(
                "webhook", .either([.url, .block(of: AuditWebhookConfiguration.self)]),
                "Where lines are posted: a URL, or a block."),
        ]).withSecret(
            "key", required: true, "The P-256 private key that signs the log, as PEM; `martlet keygen audit` makes one."
        )
    }

    package init(from reader: inout ConfigurationReader) throws(ConfigurationError) {
        file = reader.optional("file")
        syslog = reader.optional("syslog")
        webhook = Self.webhook(&reader)
        reader.checkWritable(file, "file")
        key = try reader.secret("key")
        guard reader.has("file") || reader.has("syslog") || reader.has("webhook") else {
            throw ConfigurationError(
                .configMissingKey, at: reader.location, "audit: needs 'file', 'syslog' or 'webhook'")
        }
    }

    private static func webhook(_ reader: inout ConfigurationReader) -> AuditWebhookConfiguration? {
        guard let node = reader.node("webhook") else { return nil }
        guard case .scalar = node.content else { return reader.block("webhook") }
        guard let url = reader.optional("webhook", as: Located<URLText>.self) else { return nil }
        guard url.value.isTrustworthy else {
            reader.error(
                .configBadURL, at: url.location, "webhook: must be https, or http of a loopback address")
            return nil
        }
        return AuditWebhookConfiguration(url: url)
    }
}

extension AuditWebhookConfiguration: ConfigurationDecodable {
    private static let timeouts = Duration.milliseconds(100)...Duration.seconds(30)

    package static var grammar: ConfigurationGrammar? {
        ConfigurationGrammar([
            .required("url", .url, "Where lines are posted: https, or http of a loopback address."),
            .optional("timeout", .duration, default: "5s", "The timeout of one request."),
        ]).withSecret(
            "secret", required: false, "The key that signs requests: `whsec_` and 24 to 64 bytes in base64.")
    }

    package init(from reader: inout ConfigurationReader) throws(ConfigurationError) {
        timeout = reader.optional("timeout", default: .seconds(5), in: Self.timeouts)
        secret = reader.optionalSecret("secret")
        url = try reader.required("url")
        guard url.value.isTrustworthy else {
            throw ConfigurationError(
                .configBadURL, at: url.location, "url: must be https, or http of a loopback address")
        }
    }
}

extension SyslogAddress: ConfigurationValue {
    private static let standardPort: UInt16 = 514

    /// `unix:/dev/log`, `udp://host` or `udp://host:514`.
    package init(decoding node: ConfigurationNode) throws(ConfigurationError) {
        let text = try node.text()
        if text.hasPrefix("unix:") {
            let path = SocketAddress.socketPath(text.dropFirst(5), relativeTo: node.location.file)
            if let path {
                self = .unix(path: path)
                return
            }
        }
        let prefix = "udp://"
        guard text.hasPrefix(prefix),
            let (host, port) = HostAndPort.parse(Array(text.utf8.dropFirst(prefix.utf8.count))), port != 0
        else {
            throw node.error(
                .configBadAddress, "\(quoted(text)) is not an address such as unix:/dev/log or udp://host:514")
        }
        self = .udp(host: host, port: port ?? Self.standardPort)
    }
}
