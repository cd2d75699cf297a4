internal import MartletAudit
internal import MartletCore
internal import MartletResponder

/// Records changes by operators in the audit log.
enum AdminAudit {
    /// Records a request that is to change something, and what came of it; a request that reads is no event.
    /// - Parameter log: `nil` without an audit log.
    static func record(_ request: LocalRequest, _ response: LocalResponse, in log: (any AuditRecording)?) {
        guard let log, request.method != "GET", request.method != "HEAD", request.method != "OPTIONS" else { return }
        let outcome: AuditEvent.Outcome =
            switch response.status {
            case ..<400: .success
            case ..<500: .rejected
            default: .failed
            }
        var event = AuditEvent(.adminChange, outcome)
        event.set("method", request.method)
        event.set("path", request.path)
        event.set("status", response.status)
        event.set("reason", response.reason?.rawValue)
        event.set("address", request.client)
        event.set("request_id", request.requestID)
        log.record(event)
    }
}
