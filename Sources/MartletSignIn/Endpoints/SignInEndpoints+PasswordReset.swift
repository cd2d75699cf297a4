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
