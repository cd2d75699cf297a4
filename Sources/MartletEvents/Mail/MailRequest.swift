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
    /// The address was proved for the first time, and what others had added to the account is gone.
    case accountReclaimed = "account_reclaimed"
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
    /// Whether using the token is the first proof of the address, which takes from the account what others may have
    /// added.
    package let isFirstProof: Bool
    /// The providers of the identities, and the ids of the API keys, that the first proof has removed.
    package let removed: [String]

    package init(
        to address: String, _ template: MailTemplate, token: String? = nil, link: String? = nil, locale: String?,
        expiresAt: UnixTime, isFirstProof: Bool = false, removed: [String] = []
    ) {
        self.address = address
        self.template = template
        self.token = token
        self.link = link
        self.locale = locale
        self.expiresAt = expiresAt
        self.isFirstProof = isFirstProof
        self.removed = removed
    }

    /// The data of the event.
    package var data: JSONObject {
        var data: JSONObject = ["address": .string(address), "template": .string(template.rawValue)]
        if let token { data["token"] = .string(token) }
        if let link { data["link"] = .string(link) }
        if let locale { data["locale"] = .string(locale) }
        data["expires_at"] = .integer(expiresAt.seconds)
        if isFirstProof { data["first_proof"] = true }
        if !removed.isEmpty { data["removed"] = .array(removed.map { .string($0) }) }
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
            locale: data["locale"]?.string, expiresAt: UnixTime(seconds: expiry),
            isFirstProof: data["first_proof"]?.bool ?? false,
            removed: data["removed"]?.array?.compactMap(\.string) ?? [])
    }
}
