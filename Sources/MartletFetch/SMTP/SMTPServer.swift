package import MartletCore

/// A mail server and how to connect to it.
package struct SMTPServer: Sendable {
    /// When the connection is encrypted.
    package enum Encryption: Sendable, Equatable {
        /// From its first byte (`smtps`).
        case immediate
        /// After STARTTLS, without which nothing is sent.
        case startTLS
        /// Never; for loopback addresses only.
        case none
    }

    /// A name or an address; IPv6 without brackets.
    package let host: String
    package let port: UInt16
    package let encryption: Encryption
    /// `nil` for a server without authentication.
    package let login: Login?
    /// A PEM file of authorities to trust instead of the system's.
    package let caFile: String?
    /// The timeout of one mail, from name resolution to the last response.
    package let timeout: Duration

    /// The credentials of the server's user.
    package struct Login: Sendable {
        package let user: String
        package let password: Secret

        package init(user: String, password: Secret) {
            self.user = user
            self.password = password
        }
    }

    package init(
        host: String, port: UInt16, encryption: Encryption, login: Login?, caFile: String?, timeout: Duration
    ) {
        self.host = host
        self.port = port
        self.encryption = encryption
        self.login = login
        self.caFile = caFile
        self.timeout = timeout
    }

    /// The URL for libcurl, without the user.
    var url: String {
        let name = host.utf8.contains(UInt8(ascii: ":")) ? "[\(host)]" : host
        return "\(encryption == .immediate ? "smtps" : "smtp")://\(name):\(port)"
    }
}

/// Why a mail was not accepted by the server.
package struct SMTPError: CodedError, Equatable {
    package let code: ErrorCode
    package let message: String
    /// Whether the server will not accept this mail later either.
    package let isPermanent: Bool

    package init(_ code: ErrorCode, _ message: String, isPermanent: Bool = false) {
        self.code = code
        self.message = message
        self.isPermanent = isPermanent
    }

    static let setUpFailed = SMTPError(.smtpFailed, "libcurl setup failed")
    static let overloaded = SMTPError(.smtpOverloaded, "too many mails in flight")
    static let stopped = SMTPError(.smtpStopped, "stopped")
    static let invalid = SMTPError(
        .smtpInvalid, "an address contains a character that is not allowed", isPermanent: true)
}

extension ErrorCode {
    /// An address or a mail that cannot be sent.
    package static let smtpInvalid: ErrorCode = "smtp.invalid"
    /// The server rejected the sender, the recipient or the mail.
    package static let smtpRejected: ErrorCode = "smtp.rejected"
    /// The server rejected the user or the password.
    package static let smtpLoginDenied: ErrorCode = "smtp.login_denied"
    /// The server does not offer STARTTLS, or its certificate is not trusted.
    package static let smtpNotEncrypted: ErrorCode = "smtp.not_encrypted"
    package static let smtpUnreachable: ErrorCode = "smtp.unreachable"
    package static let smtpTimeout: ErrorCode = "smtp.timeout"
    package static let smtpFailed: ErrorCode = "smtp.failed"
    package static let smtpOverloaded: ErrorCode = "smtp.overloaded"
    package static let smtpStopped: ErrorCode = "smtp.stopped"
}
