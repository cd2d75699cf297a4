internal import MartletCore

/// Logs certificates that are expired or not valid yet: when the gateway has started, and once a day.
struct CertificateReminder: GatewayPart {
    private static let interval = Duration.seconds(24 * 3600)

    private let task = BackgroundTask()

    func follow(_ change: GatewayChange, in gateway: Gateway) {
        task.start { [weak gateway] in
            while !Task.isCancelled, let gateway {
                Self.logInvalid(gateway)
                do { try await Task.sleep(for: Self.interval) } catch { return }
            }
        }
    }

    func finish(in gateway: Gateway) async { task.cancel() }

    private static func logInvalid(_ gateway: Gateway) {
        let now = gateway.services.clock.unixTime
        for certificate in gateway.graph.blueprint.tls.certificates {
            guard let error = certificate.validityError(at: now) else { continue }
            gateway.services.logger.error(
                "certificate not valid", ("code", "\(error.code)"), ("reason", error.text),
                (certificate.side, certificate.name))
        }
    }
}
