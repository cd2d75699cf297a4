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

extension MailConfiguration: ConfigurationDecodable {
    private static let timeouts = Duration.milliseconds(100)...Duration.seconds(120)

    package static var grammar: ConfigurationGrammar? {
        ConfigurationGrammar([
            .required(
                "smtp", .pattern("^smtps?://"),
                "The mail server: `smtps://user@host`, or `smtp://user@host` with STARTTLS; ports 465 and 587."),
            .required("from", .text, "The sender: an address, or `Name <address>`."),
            .optional("ca_file", .path, "Authorities to trust instead of the system's, PEM."),
            .optional("timeout", .duration, default: "30s", "The timeout of one mail."),
        ]).withSecret("password", required: false, "The password of the user in `smtp`.")
    }

    package init(from reader: inout ConfigurationReader) throws(ConfigurationError) {
        timeout = reader.optional("timeout", default: .seconds(30), in: Self.timeouts)
        caFile = reader.optional("ca_file")
        password = reader.optionalSecret("password")
        sender = try reader.required("from")
        server = try reader.required("smtp")
        guard (server.value.user == nil) == (password == nil) else {
            throw ConfigurationError(
                .configMissingKey, at: password?.location ?? server.location,
                password == nil
                    ? "smtp: a user needs 'password' or 'password_file'"
                    : "password: needs a user in smtp: (smtps://user@host)")
        }
    }
}
