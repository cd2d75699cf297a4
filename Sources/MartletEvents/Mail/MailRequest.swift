package import MartletCore
package import MartletJSON

/// What a mail is about.
package enum MailTemplate: String, Sendable, CaseIterable {
    /// Verify the address of a new user.
    case register
    /// There was an attempt to register with the address of a user.
    case alreadyRegistered = "already_registered"
    /// Choose a new password.
    case passwordReset = "password_reset"
}

/// The `data` of the event `mail.requested`: a mail to be sent to a user.
package struct MailRequest: Sendable, Equatable {
    package let address: String
    package let template: MailTemplate
    /// `nil` if the mail has no link.
    package let token: String?
    /// The page that gets the token; `nil` if the mail contains the token alone.
    package let link: String?
    /// The language that the user asked for.
    package let locale: String?
    /// When the token expires, and the mail is no longer worth sending.
    package let expiresAt: UnixTime

    package init(
        to address: String, _ template: MailTemplate, token: String? = nil, link: String? = nil, locale: String?,
        expiresAt: UnixTime
    ) {
        self.address = address
        self.template = template
        self.token = token
        self.link = link
        self.locale = locale
        self.expiresAt = expiresAt
    }

    /// The data of the event.
    package var data: JSONObject {
        var data: JSONObject = ["address": .string(address), "template": .string(template.rawValue)]
        if let token { data["token"] = .string(token) }
        if let link { data["link"] = .string(link) }
        if let locale { data["locale"] = .string(locale) }
        data["expires_at"] = .integer(expiresAt.seconds)
        return data
    }

    /// Reads the data of an event; `nil` if it is not that of a mail.
    package init?(_ data: JSONObject) {
        guard let address = data["address"]?.string,
            let template = data["template"]?.string.flatMap(MailTemplate.init(rawValue:)),
            let expiry = data["expires_at"]?.int64
        else { return nil }
        self.init(
            to: address, template, token: data["token"]?.string, link: data["link"]?.string,
            locale: data["locale"]?.string, expiresAt: UnixTime(seconds: expiry))
    }
}
