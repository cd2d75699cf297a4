package import MartletCore

/// `mail:` — the mail server for the mails of registrations and password resets.
@frozen package struct MailConfiguration: Sendable {
    package var server: Located<MailServerAddress>
    /// `nil` without a user.
    package var password: Located<Secret>?
    package var sender: MailSender
    /// A PEM file of authorities to trust instead of the system's.
    package var caFile: FilePath?
    /// The timeout of one mail.
    package var timeout: Duration
}
