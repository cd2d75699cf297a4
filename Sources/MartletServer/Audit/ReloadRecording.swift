package import MartletAdmin
internal import MartletAudit
internal import MartletConfig
package import MartletCore
internal import MartletCrypto

/// A reload and its outcome, as the audit log records it.
package struct ReloadRecording: Sendable {
    let trigger: ReloadTrigger
    let isSuccess: Bool
    let digest: String?
    let reason: ErrorCode?

    /// - Parameters:
    ///   - digest: identifies the new configuration; `nil` for one with errors.
    ///   - reason: why it is not in effect: the first error.
    package init(_ trigger: ReloadTrigger, isSuccess: Bool, digest: String? = nil, reason: ErrorCode? = nil) {
        self.trigger = trigger
        self.isSuccess = isSuccess
        self.digest = digest
        self.reason = reason
    }

    var event: AuditEvent {
        var event = AuditEvent(.reload, isSuccess ? .success : .failed)
        event.set(trigger)
        event.set("digest", digest)
        event.set("reason", reason?.rawValue)
        return event
    }
}

extension AuditEvent {
    mutating func set(_ trigger: ReloadTrigger) {
        switch trigger {
        case .signal: set("trigger", "signal")
        case .watch: set("trigger", "watch")
        case .admin(let address, let requestID):
            set("trigger", "admin")
            set("address", address)
            set("request_id", requestID)
        }
    }
}

extension Blueprint {
    /// Identifies the text of the configuration: its SHA-256.
    package var digest: String { Hexadecimal.text(SHA256.digest(configuration.source.text)) }
}
