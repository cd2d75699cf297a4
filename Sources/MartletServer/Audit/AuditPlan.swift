package import MartletAudit
internal import MartletConfig
internal import MartletCore
internal import MartletCrypto
internal import MartletFetch

/// The audit log of a configuration, validated.
package struct AuditPlan: Sendable {
    let configuration: AuditConfiguration
    package let key: AuditKey
    let signer: WebhookSigner?

    /// Validates the keys; errors are recorded.
    init?(_ configuration: AuditConfiguration?, into diagnostics: inout Diagnostics) {
        guard let configuration else { return nil }
        let secret = configuration.key
        let key = AuditKey(pem: secret.value)
        if key == nil {
            diagnostics.error(
                .configBadValue, at: secret.location,
                "audit.key: must be a P-256 private key as PEM; martlet keygen audit makes one")
        }
        let hook = configuration.webhook?.secret
        signer = hook.flatMap { WebhookSigner($0.value) }
        if let hook, signer == nil {
            diagnostics.error(
                .configBadValue, at: hook.location,
                "audit.webhook.secret: must be 24 to 64 bytes in base64, with or without whsec_ before them")
            return nil
        }
        guard let key else { return nil }
        self.key = key
        self.configuration = configuration
    }

    fileprivate func destinations(_ services: Services, route: OutboundRoute) -> AuditLog.Plan {
        var plan = AuditLog.Plan(key: key)
        plan.file = configuration.file?.value.text
        switch configuration.syslog?.value {
        case .unix(let path)?: plan.syslog = .unix(path: path)
        case .udp(let host, let port)?: plan.syslog = .udp(host: host, port: port)
        case nil: break
        }
        plan.webhook = configuration.webhook.map { webhook in
            AuditWebhook(
                url: webhook.url.value.text, signer: signer, timeout: webhook.timeout,
                client: HTTPCaller(fetcher: services.fetcher, purpose: .audit, route: route))
        }
        return plan
    }
}

extension Blueprint {
    /// Where events of the audit log go; `nil` without one.
    func auditDestinations(_ services: Services) -> AuditLog.Plan? {
        audit?.destinations(services, route: OutboundRoute(nil, configuration.outbound))
    }
}
