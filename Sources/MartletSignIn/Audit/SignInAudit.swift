internal import MartletAudit
internal import MartletCore
internal import MartletProvider
internal import MartletResponder

/// Records what users do, for the audit log; does nothing without one.
struct SignInAudit: Sendable {
    private let log: (any AuditRecording)?

    init(_ log: (any AuditRecording)?) { self.log = log }

    var isOn: Bool { log != nil }

    /// Records an event of a request.
    /// - Parameters:
    ///   - reason: why it was rejected.
    ///   - caller: whom it is about; the caller of the request if absent.
    func record(
        _ kind: AuditEvent.Kind, _ request: LocalRequest, _ outcome: AuditEvent.Outcome = .success,
        provider: String? = nil, detail: String? = nil, reason: ErrorCode? = nil, caller: NamedCaller? = nil
    ) {
        guard let log else { return }
        let caller = caller ?? request.callerNote?.caller
        var event = AuditEvent(kind, outcome)
        event.set(subject: caller?.subject)
        event.set("session_id", caller?.sessionID)
        event.set("provider", provider)
        event.set("detail", detail)
        event.set("reason", reason?.rawValue)
        event.set("address", request.client)
        event.set("request_id", request.requestID)
        log.record(event)
    }

    /// Records that a request was rejected; an outage and an error in its form are no rejections.
    func recordRejection(
        _ kind: AuditEvent.Kind, _ failure: Failure, _ request: LocalRequest, provider: String? = nil
    ) {
        guard isOn, Self.isRejection(failure.status) else { return }
        record(kind, request, .rejected, provider: provider, reason: failure.reason)
    }

    private static func isRejection(_ status: Int) -> Bool { [401, 403, 409].contains(status) }

    /// Records a request to an endpoint by its response, where that says it all.
    func record(_ deed: @autoclosure () -> AuditDeed?, _ request: LocalRequest, _ response: LocalResponse) {
        guard isOn, let deed = deed() else { return }
        let reason = response.failure?.reason ?? response.reason
        if response.status < 400, reason == nil {
            guard !deed.isRecordedBefore else { return }
            // An unknown token revokes nothing.
            guard !deed.needsCaller || request.callerNote?.caller != nil else { return }
            record(deed.kind, request, provider: deed.provider, detail: deed.detail)
        } else if Self.isRejection(response.status) {
            record(deed.kind, request, .rejected, provider: deed.provider, detail: deed.detail, reason: reason)
        }
    }
}

/// What a request to an endpoint does, for the audit log.
struct AuditDeed: Equatable {
    let kind: AuditEvent.Kind
    var detail: String?
    var provider: String?
    /// Whether it is nothing without a known caller.
    var needsCaller = false
    /// Whether the endpoint itself records that it is done; only rejections are left.
    var isRecordedBefore = false
}

extension AuditDeed {
    /// - Returns: `nil` for endpoints that change nothing, and for those that record what they do themselves.
    init?(_ endpoint: Endpoint, _ request: LocalRequest) {
        switch (endpoint, request.method) {
        case (.logout, "POST"):
            self.init(kind: .revoke, detail: request.query.contains("all=true") ? "logout_all" : "logout")
        case (.revocation, "POST"): self.init(kind: .revoke, detail: "token", needsCaller: true)
        case (.oneSession, "DELETE"): self.init(kind: .revoke, detail: "session")
        case (.link(let name, let provider), "DELETE"):
            self.init(kind: .unlink, provider: provider == nil ? nil : name)
        case (.account, "DELETE"): self.init(kind: .deletion, detail: "requested", isRecordedBefore: true)
        case (.password, "POST"): self.init(kind: .passwordChange)
        case (.resetPassword, "POST"): self.init(kind: .passwordReset)
        case (.verifyRegistration, "POST"): self.init(kind: .registration, detail: "verified")
        case (.register, "POST"): self.init(kind: .registration, detail: "requested")
        case (.reauthentication, "POST"): self.init(kind: .reauthentication)
        default: return nil
        }
    }

    /// The same for browsers.
    init?(_ endpoint: BrowserEndpoint, _ request: LocalRequest) {
        guard request.method == "POST" else { return nil }
        switch endpoint {
        case .signOut: self.init(kind: .revoke, detail: "logout", needsCaller: true)
        case .link(.verify): self.init(kind: .registration, detail: "verified")
        case .link(.reset): self.init(kind: .passwordReset)
        case .accountAction(.unlink(let name)): self.init(kind: .unlink, provider: name)
        case .accountAction(.endSession): self.init(kind: .revoke, detail: "session")
        case .accountAction(.changePassword): self.init(kind: .passwordChange)
        case .accountAction(.delete): self.init(kind: .deletion, detail: "requested", isRecordedBefore: true)
        default: return nil
        }
    }
}
