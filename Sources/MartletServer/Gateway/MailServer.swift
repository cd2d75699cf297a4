internal import MartletConfig
internal import MartletCore
internal import MartletEvents
internal import MartletFetch

struct MailServer: Sendable {
    let client: SMTPClient
    let sender: MailEventSender

    /// - Parameter route: whom it trusts where the configuration of mails does not say.
    init(_ configuration: MailConfiguration, route: OutboundRoute, clock: Clock) {
        let address = configuration.server.value
        let login = address.user.flatMap { user in
            configuration.password.map { SMTPServer.Login(user: user, password: $0.value) }
        }
        client = SMTPClient(
            SMTPServer(
                host: address.host, port: address.port,
                encryption: address.isSecure ? .immediate : address.isEncrypted ? .startTLS : .none, login: login,
                caFile: configuration.caFile?.text ?? route.caFile, timeout: configuration.timeout), clock: clock)
        sender = MailEventSender(
            from: (configuration.sender.name, configuration.sender.address), by: MailCaller(client: client),
            concurrency: SMTPClient.concurrency, maximumAge: MailServer.maximumAge, clock: clock)
    }

    /// The lifetime of the links in mails.
    private static let maximumAge = Duration.seconds(30 * 60)
}

/// Sends mails by libcurl.
private struct MailCaller: MailSending {
    let client: SMTPClient

    func send(
        from sender: EmailAddress, to recipient: EmailAddress, content: [UInt8]
    ) async -> DeliveryAttempt {
        do throws(SMTPError) {
            try await client.send(from: sender.text, to: recipient.text, content: content)
            return .delivered
        } catch {
            let reason = "\(error.code): \(error.message)"
            return error.isPermanent ? .refused(reason: reason) : .failed(reason: reason)
        }
    }
}

extension EventSubscriptions.Subscriber {
    /// The mail server gets every mail.
    static let mails = EventSubscriptions.Subscriber(
        hook: MailEventSender.hook, patterns: [EventPattern(EventType.mailRequested.rawValue)].compactMap(\.self))
}
