package import MartletCore

/// `audit:` — where security events are recorded.
@frozen package struct AuditConfiguration: KeyedBlock {
    package var file: Located<FilePath>?
    package var syslog: Located<SyslogAddress>?
    package var webhook: AuditWebhookConfiguration?
    package var key = Located<Secret>.unread

    static let keys: [ConfigurationKey<Self>] = [
        .key("file", \.file, "The file that lines are appended to."),
        .key("syslog", \.syslog, "A syslog server: `unix:/dev/log` or `udp://host:514`."),
        .row(
            .optional(
                "webhook", .either([.url, .block(of: AuditWebhookConfiguration.self)]),
                "Where lines are posted: a URL, or a block.")
        ) { $0.webhook = webhook(&$1) },
        .check(always: true) { $1.checkWritable($0.file, "file") },
        .requiredSecret(
            "key", \.key, "The P-256 private key that signs the log, as PEM; `martlet keygen audit` makes one."),
        .check { _, reader throws(ConfigurationError) in
            guard reader.has("file") || reader.has("syslog") || reader.has("webhook") else {
                throw ConfigurationError(
                    .configMissingKey, at: reader.location, "audit: needs 'file', 'syslog' or 'webhook'")
            }
        },
    ]

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

/// `audit.webhook:`, a URL or a block.
@frozen package struct AuditWebhookConfiguration: KeyedBlock {
    package var url = Located<URLText>.unread
    /// Signs requests as Standard Webhooks specifies; `nil` for none.
    package var secret: Located<Secret>?
    package var timeout = Duration.seconds(5)

    static let keys: [ConfigurationKey<Self>] = [
        .required("url", \.url, endsBlock: true, "Where lines are posted: https, or http of a loopback address."),
        .key("timeout", \.timeout, in: .milliseconds(100) ... .seconds(30), "The timeout of one request."),
        .secret("secret", \.secret, "The key that signs requests: `whsec_` and 24 to 64 bytes in base64."),
        .check { block, _ throws(ConfigurationError) in try block.url.checkTrust() },
    ]
}

/// Where syslog listens: `unix:/dev/log` or `udp://host:514`.
@frozen package enum SyslogAddress: Sendable, Hashable {
    case unix(path: String)
    case udp(host: String, port: UInt16)
}

extension SyslogAddress: ConfigurationValue, Spelling {
    static let shape = ConfigurationGrammar.Shape.pattern("^(unix:|udp://)")
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
