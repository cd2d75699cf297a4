package import MartletCore

extension ErrorCode {
    /// No random bytes are available for the identifier of an event.
    package static let eventsNoEntropy: ErrorCode = "events.no_entropy"
    /// No event with this identifier is in the outbox.
    package static let eventsUnknown: ErrorCode = "events.unknown"
    /// The webhook responded with a status other than 2xx.
    package static let eventsStatus: ErrorCode = "events.status"
    /// The event is not one of a mail.
    package static let eventsNoMail: ErrorCode = "events.no_mail"
    /// The link of a mail has expired before the mail could be sent.
    package static let eventsExpired: ErrorCode = "events.expired"
    /// The webhook of a delivery is not configured any more.
    package static let eventsDropped: ErrorCode = "events.dropped"
}
