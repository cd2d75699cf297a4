package import MartletAccounts
internal import MartletConfig
package import MartletCore
package import MartletCrypto
internal import MartletEvents
package import MartletJSON
package import MartletProvider

/// Makes the requests for mails whose links prove an address, for endpoints, pages and commands alike.
package struct AddressMails: Sendable {
    /// Whom a mail is for.
    package struct Recipient: Sendable {
        package let address: EmailAddress
        /// The canonical name of the user.
        package let key: String
        package let locale: LanguageTag?
        /// The provider's name in `providers:`.
        package let provider: String

        package init(_ address: EmailAddress, key: String, locale: LanguageTag?, provider: String) {
            self.address = address
            self.key = key
            self.locale = locale
            self.provider = provider
        }
    }

    /// The URL below which the gateway's own pages are; `nil` without `browser:`.
    private let pages: String?
    private let clock: Clock

    /// - Parameters:
    ///   - origin: `browser.origin`; `nil` without it.
    ///   - base: `sessions.path`.
    package init(origin: String?, base: String, clock: Clock) {
        pages = origin.map { $0 + base }
        self.clock = clock
    }

    /// A mail whose link creates the user; a user's address gets one that says so.
    /// - Parameters:
    ///   - claims: of the new user.
    ///   - origin: where the request comes from; `nil` for an operator, whose mails have no limit.
    /// - Throws: if no random bytes are available.
    package func registration(
        of recipient: Recipient, _ rules: PasswordSelfService.Registration, claims: JSONObject,
        from origin: PasswordLinkRequest.Origin?
    ) throws(CryptoError) -> PasswordLinkRequest {
        let token = try LinkToken()
        let mails = PasswordLinkRequest.Mails(
            user: mail(.alreadyRegistered, to: recipient, nil, nil),
            other: mail(.register, to: recipient, token, link(rules.link, page: "verify", token)))
        var claims = claims
        claims["email"] = .string(recipient.address.text)
        claims["email_verified"] = true
        return request(.registration, recipient, token, claims, mails, origin)
    }

    /// A mail whose link sets the password of a user; no other address gets one.
    /// - Parameters:
    ///   - isInvitation: whether the user is new, and the account has nothing.
    ///   - origin: where the request comes from; `nil` for an operator, whose mails have no limit.
    /// - Throws: if no random bytes are available.
    package func reset(
        of recipient: Recipient, _ rules: PasswordSelfService.Reset, isInvitation: Bool = false,
        from origin: PasswordLinkRequest.Origin?
    ) throws(CryptoError) -> PasswordLinkRequest {
        let token = try LinkToken()
        let link = link(rules.link, page: "reset", token)
        let mails = PasswordLinkRequest.Mails(
            user: mail(.passwordReset, to: recipient, token, link),
            unproved: mail(.passwordReset, to: recipient, token, link, isFirstProof: !isInvitation), other: nil)
        return request(.reset, recipient, token, [:], mails, origin)
    }

    private func request(
        _ purpose: PasswordLinkPurpose, _ recipient: Recipient, _ token: LinkToken, _ claims: JSONObject,
        _ mails: PasswordLinkRequest.Mails, _ origin: PasswordLinkRequest.Origin?
    ) -> PasswordLinkRequest {
        PasswordLinkRequest(
            purpose, provider: recipient.provider, address: recipient.key, digest: token.digest, claims: claims,
            mails: mails, from: origin ?? PasswordLinkRequest.Origin(network: token.digest, neighborhood: nil))
    }

    private func mail(
        _ template: MailTemplate, to recipient: Recipient, _ token: LinkToken?, _ link: String?,
        isFirstProof: Bool = false
    ) -> JSONObject {
        MailRequest(
            to: recipient.address.text, template, token: token?.text, link: link, locale: recipient.locale?.text,
            expiresAt: clock.unixTime.advanced(bySeconds: PasswordLinkLimits.lifetime.wholeSeconds),
            isFirstProof: isFirstProof
        ).data
    }

    /// The URL in a mail: of the configured page, or of ours; `nil` if there is neither.
    private func link(_ template: LinkTemplate?, page: String, _ token: LinkToken) -> String? {
        template?.link(token.text) ?? pages.map { "\($0)/\(page)?token=\(token.text)" }
    }
}

extension PasswordLinkRequest.Origin {
    /// The origin of a request by the client's network.
    /// - Parameter isKnown: whether the user has logged in from there before.
    init(_ network: ClientNetwork?, for key: String, isKnown: Bool) {
        func digest(_ text: String) -> String {
            Base64URL.encode(SHA256.digest(Array("martlet mails \(key)\u{0}\(text)".utf8)))
        }
        self.init(
            network: digest(network?.description ?? ""),
            neighborhood: isKnown ? nil : network?.blocks.last.map { digest("\($0)") })
    }
}
