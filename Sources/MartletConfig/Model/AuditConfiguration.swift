package import MartletCore

/// `audit:` — where security events are recorded.
@frozen package struct AuditConfiguration: Sendable {
    package var file: Located<FilePath>?
    package var syslog: Located<SyslogAddress>?
    package var webhook: AuditWebhookConfiguration?
    package var key: Located<Secret>
}

/// `audit.webhook:`, a URL or a block.
@frozen package struct AuditWebhookConfiguration: Sendable {
    package var url: Located<URLText>
    /// Signs requests as Standard Webhooks specifies; `nil` for none.
    package var secret: Located<Secret>?
    package var timeout = Duration.seconds(5)
}

/// Where syslog listens: `unix:/dev/log` or `udp://host:514`.
@frozen package enum SyslogAddress: Sendable, Hashable {
    case unix(path: String)
    case udp(host: String, port: UInt16)
}
