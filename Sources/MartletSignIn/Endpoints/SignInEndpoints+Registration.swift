internal import MartletAccounts
internal import MartletConfig
internal import MartletCore
internal import MartletCrypto
internal import MartletEvents
internal import MartletJSON
internal import MartletProvider
internal import MartletResponder

/// Endpoints where a user registers with an email address, and proves that it is the user's.
///
/// Known and unknown addresses get the same response after the same steps.
extension SignInEndpoints {
    /// A registration that was checked.
    struct Applicant {
        let entry: SelfServiceProviders.Entry
        let rules: PasswordSelfService.Registration
        let address: EmailAddress
        /// The canonical name of the user.
        let key: String
        let name: String?
        let locale: LanguageTag?

        /// The claims of the new user, but for the address.
        var claims: JSONObject {
            var claims: JSONObject = [:]
            if let name { claims["name"] = .string(name) }
            if let locale { claims["locale"] = .string(locale.text) }
            return claims
        }

        var recipient: AddressMails.Recipient {
            AddressMails.Recipient(address, key: key, locale: locale, provider: entry.name)
        }
    }

    /// `POST /register`.
    ///
    /// Where the address is verified, a password is ignored: it may be a stranger's. The one that counts comes with the
    /// proof.
    func register(_ request: LocalRequest) async throws(Failure) -> LocalResponse {
        guard let accounts = setup.accounts, setup.links != nil else { throw .noRoute(.signInNoAccounts) }
        let form = try SignInBody.form(of: request)
        return try await withBudget(budgets.registrations, request, countsSuccess: true) {
            () async throws(Failure) in
            let applicant: Applicant
            var hash: String?
            do throws(AuthenticationError) {
                let entry = try SelfServiceProviders.chosen(from: selfService.registering, by: form)
                applicant = try self.applicant(form, entry, addressMember: "email")
                if !applicant.rules.verifiesAddress {
                    hash = try await entry.provider.hashNewPassword(
                        try form.requiredSecret("password"), member: "password", in: context(of: request))
                }
            } catch {
                throw .authentication(error)
            }
            guard let hash else { return try await requestVerification(of: applicant, request) }
            try await add(applicant, hash, to: accounts, request)
            return SignInResponse.noContent
        }
    }

    /// - Parameter addressMember: the member that has the address.
    func applicant(
        _ form: SignInForm, _ entry: SelfServiceProviders.Entry, addressMember: String
    ) throws(AuthenticationError) -> Applicant {
        guard let rules = entry.provider.selfService.registration else { throw form.missing("provider") }
        let address = try form.requiredAddress(addressMember)
        guard let key = entry.provider.canonicalName(address.text) else { throw form.badAddress(addressMember) }
        let (name, locale) = (try form.displayName(), try form.locale())
        if rules.requiresName, name == nil { throw form.missing("name") }
        return Applicant(entry: entry, rules: rules, address: address, key: key, name: name, locale: locale)
    }

    /// Stores a link that creates the user, and has it mailed; a user's address gets a mail that says so.
    func requestVerification(
        of applicant: Applicant, _ request: LocalRequest
    ) async throws(Failure) -> LocalResponse {
        let origin = await origin(of: request, for: applicant.key, applicant.entry)
        let link = try random(
            mails.registration(of: applicant.recipient, applicant.rules, claims: applicant.claims, from: origin))
        return try await requestLink(link, request)
    }

    /// Adds a user whose address is not verified; an existing user looks the same.
    private func add(
        _ applicant: Applicant, _ hash: String, to accounts: any AccountStoring, _ request: LocalRequest
    ) async throws(Failure) {
        let user = UserRecord(
            name: applicant.address.text, key: applicant.key, hash: hash, isDisabled: false,
            claims: applicant.claims)
        do throws(AccountError) { try await accounts.addUser(user, at: setup.clock.unixTime) } catch {
            guard error.kind == .duplicateUser else { throw .account(error) }
        }
        setup.logger.info("registration handled", ("request_id", request.requestID))
    }

    /// `POST /register/verify`: creates the user of a link, with the password of this request.
    func verifyRegistration(_ request: LocalRequest) async throws(Failure) -> LocalResponse {
        try await LinkUse(endpoints: self).use(request, for: .registration, passwordMember: "password")
        return SignInResponse.noContent
    }
}

// MARK: - Forgotten passwords

/// Endpoints where a user replaces a forgotten password by a link in a mail.
extension SignInEndpoints {
    /// `POST /password/forgot`: known and unknown addresses get the same response after the same steps.
    func forgotPassword(_ request: LocalRequest) async throws(Failure) -> LocalResponse {
        guard setup.links != nil else { throw .noRoute(.signInNoAccounts) }
        let form = try SignInBody.form(of: request)
        return try await withBudget(budgets.mailRequests, request, countsSuccess: true) {
            () async throws(Failure) in
            let entry = try read(SelfServiceProviders.chosen(from: selfService.resetting, by: form))
            let (address, locale) = (try read(form.requiredAddress()), try read(form.locale()))
            guard let rules = entry.provider.selfService.reset else { throw .noRoute(.signInUnknownEndpoint) }
            let key = entry.provider.canonicalName(address.text) ?? address.text
            let origin = await origin(of: request, for: key, entry)
            let link = try random(
                mails.reset(
                    of: AddressMails.Recipient(address, key: key, locale: locale, provider: entry.name), rules,
                    from: origin))
            return try await requestLink(link, request)
        }
    }

    /// `POST /password/reset`.
    func resetPassword(_ request: LocalRequest) async throws(Failure) -> LocalResponse {
        try await LinkUse(endpoints: self).use(request, for: .reset, passwordMember: "new_password")
        return SignInResponse.noContent
    }
}

// MARK: - Links

extension SignInEndpoints {
    /// Where a request for a mail comes from.
    func origin(
        of request: LocalRequest, for key: String, _ entry: SelfServiceProviders.Entry
    ) async -> PasswordLinkRequest.Origin {
        var isKnown = false
        if let network = request.network { isKnown = await entry.provider.hasLoggedIn(key, from: network) }
        return PasswordLinkRequest.Origin(request.network, for: key, isKnown: isKnown)
    }

    /// Stores a link and records its mail; the response is the same for every address, and for one that gets no mail
    /// because this network has caused enough of them.
    func requestLink(_ link: PasswordLinkRequest, _ request: LocalRequest) async throws(Failure) -> LocalResponse {
        guard let links = setup.links else { throw .noRoute(.signInNoAccounts) }
        let receipt = try await fromAccounts(await links.request(link, at: setup.clock.unixTime))
        if receipt == .withheld {
            setup.logger.info(
                "mail withheld", ("code", "\(ErrorCode.signInTooManyMails)"), ("request_id", request.requestID))
        }
        return SignInResponse.accepted(["expires_in": .integer(PasswordLinkLimits.lifetime.wholeSeconds)])
    }
}
