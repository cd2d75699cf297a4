internal import MartletAccounts
internal import MartletConfig
internal import MartletCore
internal import MartletCrypto
internal import MartletEvents
internal import MartletJSON
internal import MartletProvider
internal import MartletResponder

/// Endpoints where a user registers with an email address and a password.
///
/// Known and unknown addresses get the same response after the same steps: a hash, and one transaction that stores a
/// link and records a mail.
extension SignInEndpoints {
    /// A registration that was checked.
    private struct Applicant {
        let address: EmailAddress
        /// The canonical name of the user.
        let key: String
        let hash: String
        let name: String?
        let locale: LanguageTag?

        /// The claims of the new user.
        func claims(isVerified: Bool) -> JSONObject {
            var claims: JSONObject = [:]
            if let name { claims["name"] = .string(name) }
            if let locale { claims["locale"] = .string(locale.text) }
            if isVerified {
                claims["email"] = .string(address.text)
                claims["email_verified"] = true
            }
            return claims
        }
    }

    /// `POST /register`.
    func register(_ request: LocalRequest) async throws(Failure) -> LocalResponse {
        guard let accounts = setup.accounts, let links = setup.links else { throw .noRoute(.signInNoAccounts) }
        let form = try SignInBody.form(of: request)
        return try await withBudget(budgets.registrations, request, countsSuccess: true) {
            () async throws(Failure) in
            let entry: SelfServiceProviders.Entry
            let rules: PasswordSelfService.Registration
            let applicant: Applicant
            do throws(AuthenticationError) {
                entry = try SelfServiceProviders.chosen(from: selfService.registering, by: form)
                guard let found = entry.provider.selfService.registration else { throw form.missing("provider") }
                rules = found
                applicant = try await self.applicant(form, rules, entry, request)
            } catch {
                throw .authentication(error)
            }
            if rules.verifiesAddress { return try await requestVerification(of: applicant, rules, entry, links) }
            try await add(applicant, to: accounts, request)
            return SignInResponse.noContent
        }
    }

    private func applicant(
        _ form: SignInForm, _ rules: PasswordSelfService.Registration, _ entry: SelfServiceProviders.Entry,
        _ request: LocalRequest
    ) async throws(AuthenticationError) -> Applicant {
        let address = try form.requiredAddress()
        guard let key = entry.provider.canonicalName(address.text) else {
            throw .malformed(
                .signInBadAddress, BodyError("email", .invalid, detail: "`email` is not an email address."))
        }
        let (name, locale) = (try form.displayName(), try form.locale())
        if rules.requiresName, name == nil { throw form.missing("name") }
        let hash = try await entry.provider.hashNewPassword(
            try form.requiredSecret("password"), member: "password", in: context(of: request))
        return Applicant(address: address, key: key, hash: hash, name: name, locale: locale)
    }

    /// Stores a link that creates the user, and has it mailed; a user's address gets a mail that says so.
    private func requestVerification(
        of applicant: Applicant, _ rules: PasswordSelfService.Registration, _ entry: SelfServiceProviders.Entry,
        _ links: any PasswordLinkStoring
    ) async throws(Failure) -> LocalResponse {
        let token = try newToken()
        let expiry = setup.clock.unixTime.advanced(bySeconds: PasswordLinkLimits.lifetime.wholeSeconds)
        let (address, locale) = (applicant.address.text, applicant.locale?.text)
        let mails = PasswordLinkRequest.Mails(
            user: MailRequest(to: address, .alreadyRegistered, locale: locale, expiresAt: expiry).data,
            other: MailRequest(
                to: address, .register, token: token.text, link: rules.link?.link(token.text), locale: locale,
                expiresAt: expiry
            ).data)
        return try await requestLink(
            PasswordLinkRequest(
                .registration, provider: entry.name, address: applicant.key, digest: token.digest,
                newUser: PasswordLinkRequest.NewUser(
                    hash: applicant.hash, claims: applicant.claims(isVerified: true)),
                mails: mails), links)
    }

    /// Adds a user whose address is not verified; an existing user looks the same.
    private func add(
        _ applicant: Applicant, to accounts: any AccountStoring, _ request: LocalRequest
    ) async throws(Failure) {
        let user = UserRecord(
            name: applicant.address.text, key: applicant.key, hash: applicant.hash, isDisabled: false,
            claims: applicant.claims(isVerified: false))
        do throws(AccountError) {
            try await accounts.addUser(user, at: setup.clock.unixTime)
        } catch {
            guard error.kind == .duplicateUser else { throw .account(error) }
        }
        setup.logger.info("registration handled", ("request_id", request.requestID))
    }

    /// `POST /register/verify`: creates the user of a link.
    func verifyRegistration(_ request: LocalRequest) async throws(Failure) -> LocalResponse {
        guard let links = setup.links else { throw .noRoute(.signInNoAccounts) }
        let form = try SignInBody.form(of: request)
        return try await withBudget(budgets.links, request) { () async throws(Failure) in
            let (digest, _) = try await validLink(form, for: .registration, among: selfService.registering, links)
            let user: String?
            do throws(AccountError) {
                user = try await links.register(with: digest, at: setup.clock.unixTime)
            } catch {
                throw .account(error)
            }
            guard user != nil else { throw .credentialInvalid(.signInBadLink) }
            setup.logger.info("user registered", ("request_id", request.requestID))
            return SignInResponse.noContent
        }
    }
}

// MARK: - Links

extension SignInEndpoints {
    /// A new token for a link.
    func newToken() throws(Failure) -> LinkToken {
        do throws(CryptoError) { return try LinkToken() } catch { throw .authUnavailable(.signInNoEntropy) }
    }

    /// Stores a link and records its mail; the response is the same for every address.
    func requestLink(
        _ request: PasswordLinkRequest, _ links: any PasswordLinkStoring
    ) async throws(Failure) -> LocalResponse {
        let receipt: PasswordLinkReceipt
        do throws(AccountError) {
            receipt = try await links.request(request, at: setup.clock.unixTime)
        } catch {
            throw .account(error)
        }
        switch receipt {
        case .accepted:
            return SignInResponse.accepted(["expires_in": .integer(PasswordLinkLimits.lifetime.wholeSeconds)])
        case .throttled(let wait):
            throw .throttled(.signInTooManyMails, retryAfter: Int(clamping: max(wait.wholeSeconds, 1)))
        }
    }

    /// The digest of the token in a body, and the provider of its link, which stays valid.
    /// - Throws: 401 for a link that is not valid, or whose provider no longer allows it.
    func validLink(
        _ form: SignInForm, for purpose: PasswordLinkPurpose, among entries: [SelfServiceProviders.Entry],
        _ links: any PasswordLinkStoring
    ) async throws(Failure) -> (digest: String, entry: SelfServiceProviders.Entry) {
        let token: Secret
        do throws(AuthenticationError) { token = try form.requiredSecret("token") } catch {
            throw .authentication(error)
        }
        guard let digest = LinkToken.digest(of: token) else { throw .credentialInvalid(.signInBadLink) }
        let name: String?
        do throws(AccountError) {
            name = try await links.linkProvider(of: digest, for: purpose, at: setup.clock.unixTime)
        } catch {
            throw .account(error)
        }
        guard let name, let entry = entries.first(where: { $0.name.hasSameBytes(as: name) }) else {
            throw .credentialInvalid(.signInBadLink)
        }
        return (digest, entry)
    }
}
