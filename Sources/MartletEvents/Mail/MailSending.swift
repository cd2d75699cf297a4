package import MartletCore

/// A mail server.
package protocol MailSending: Sendable {
    /// Hands a mail over to the server.
    func send(
        from sender: EmailAddress, to recipient: EmailAddress, content: [UInt8]
    ) async -> DeliveryAttempt
}

/// Sends the mails of events `mail.requested`.
package struct MailEventSender: EventSending {
    /// Its name in the outbox, which no webhook can have.
    package static let hook = "mail:smtp"

    package var name: String { MailEventSender.hook }
    package let retries: RetrySchedule
    package let concurrency: Int
    private let sender: (name: String?, address: EmailAddress)
    private let server: any MailSending
    private let clock: Clock

    /// - Parameters:
    ///   - sender: the name and the address of `From`.
    ///   - server: takes the mails.
    ///   - concurrency: the number of connections to it.
    ///   - maximumAge: the age after which a mail is not retried.
    package init(
        from sender: (name: String?, address: EmailAddress), by server: any MailSending, concurrency: Int,
        maximumAge: Duration, clock: Clock
    ) {
        self.sender = sender
        self.server = server
        self.concurrency = concurrency
        self.clock = clock
        retries = RetrySchedule(maximumAge: maximumAge)
    }

    /// Writes the mail of an event and hands it over.
    package func send(_ event: Event) async -> DeliveryAttempt {
        guard event.type == .mailRequested, let request = MailRequest(event.data),
            let recipient = EmailAddress(request.address)
        else { return .refused(reason: "\(ErrorCode.eventsNoMail): not a mail") }
        let now = clock.unixTime
        guard now < request.expiresAt else { return .refused(reason: "\(ErrorCode.eventsExpired): link expired") }
        let message = MailMessage(from: sender, to: recipient, MailText(request), id: event.id, at: now)
        return await server.send(from: sender.address, to: recipient, content: message.content)
    }
}
