internal import MartletAccounts
internal import MartletConfig
internal import MartletCore
internal import MartletCrypto
internal import MartletEvents
internal import MartletJSON
internal import MartletProvider
internal import MartletResponder
internal import MartletSession

/// Endpoints where a user replaces a forgotten password by a link in a mail.
extension SignInEndpoints {
    /// `POST /password/forgot`: known and unknown addresses get the same response after the same steps.
    func forgotPassword(_ request: LocalRequest) async throws(Failure) -> LocalResponse {
        guard let links = setup.links else { throw .noRoute(.signInNoAccounts) }
        let form = try SignInBody.form(of: request)
        return try await withBudget(budgets.mailRequests, request, countsSuccess: true) {
            () async throws(Failure) in
            let (entry, address, locale): (SelfServiceProviders.Entry, EmailAddress, LanguageTag?)
            do throws(AuthenticationError) {
                entry = try SelfServiceProviders.chosen(from: selfService.resetting, by: form)
                (address, locale) = (try form.requiredAddress(), try form.locale())
            } catch {
                throw .authentication(error)
            }
            let token = try newToken()
            let expiry = setup.clock.unixTime.advanced(bySeconds: PasswordLinkLimits.lifetime.wholeSeconds)
            let mail = MailRequest(
                to: address.text, .passwordReset, token: token.text,
                link: entry.provider.selfService.reset?.link?.link(token.text), locale: locale?.text,
                expiresAt: expiry)
            return try await requestLink(
                PasswordLinkRequest(
                    .reset, provider: entry.name,
                    address: entry.provider.canonicalName(address.text) ?? address.text, digest: token.digest,
                    mails: PasswordLinkRequest.Mails(user: mail.data, other: nil)), links)
        }
    }

    /// `POST /password/reset`: consumes the link after the new password was checked, so that a bad one can be corrected.
    func resetPassword(_ request: LocalRequest) async throws(Failure) -> LocalResponse {
        guard let accounts = setup.accounts, let links = setup.links else { throw .noRoute(.signInNoAccounts) }
        let form = try SignInBody.form(of: request)
        return try await withBudget(budgets.links, request) { () async throws(Failure) in
            let (digest, entry) = try await validLink(form, for: .reset, among: selfService.resetting, links)
            let context = context(of: request)
            let hash: String
            do throws(AuthenticationError) {
                hash = try await entry.provider.hashNewPassword(
                    try form.requiredSecret("new_password"), member: "new_password", in: context)
            } catch {
                throw .authentication(error)
            }
            let user: String?
            do throws(AccountError) {
                user = try await links.reset(with: digest, to: hash, at: setup.clock.unixTime)
            } catch {
                throw .account(error)
            }
            guard let user else { throw .credentialInvalid(.signInBadLink) }
            setup.logger.info("password reset", ("provider", entry.name), ("request_id", request.requestID))
            try await endSessions(ofUser: user, in: accounts, request)
            return SignInResponse.noContent
        }
    }

    /// Ends every session of the accounts of a user, whose record all password providers share.
    private func endSessions(
        ofUser key: String, in accounts: any AccountStoring, _ request: LocalRequest
    ) async throws(Failure) {
        for entry in selfService.all {
            await entry.provider.passwordWasReset(of: key, in: context(of: request))
            let account: Account?
            do throws(AccountError) {
                account = try await accounts.find(AccountIdentity(provider: entry.name, subjects: [key]))
            } catch {
                throw .account(error)
            }
            // A user who has never signed in has neither an account nor sessions.
            guard let account else { continue }
            do throws(Failure) {
                try await ends.end(SessionsEnd("password_changed"), of: account.subject)
            } catch {
                setup.logger.warning(
                    "sessions not ended after password reset", ("reason", "\(error.reason)"),
                    ("request_id", request.requestID))
                throw error
            }
            setup.logger.info(
                "sessions ended", ("subject", account.subject), ("reason", "password_changed"),
                ("request_id", request.requestID))
        }
    }
}
