internal import MartletAccounts
internal import MartletBrowser
internal import MartletConfig
internal import MartletCore
internal import MartletJSON
internal import MartletPages
internal import MartletProvider
internal import MartletResponder
internal import MartletSession

/// The page on which users create an account, where `browser.register` allows it.
///
/// Where users register by mail, the page only asks for it: the user exists once the address is proved. Otherwise it
/// creates users with a name and a password; where mails go to users by their names, such a name is no address.
struct SignUpFlow: Sendable {
    let endpoints: SignInEndpoints
    let call: BrowserCall

    private var binding: FormBinding { FormBinding(purpose: "sign-up", call: call) }

    /// A provider whose users the gateway stores.
    private struct Registrar {
        let handle: ProviderHandle
        let signingIn: any SigningIn
        let serving: any PasswordSelfServing
        let accounts: any AccountStoring

        var entry: SelfServiceProviders.Entry { SelfServiceProviders.Entry(name: handle.name, provider: serving) }
        /// Whether a mail proves the address of a new user.
        var isByMail: Bool { serving.selfService.registration?.verifiesAddress == true }
    }

    private var registrar: Registrar? {
        guard call.setup.configuration.registers, let accounts = endpoints.setup.accounts else { return nil }
        for handle in endpoints.setup.providers {
            if let serving = handle.selfServing, serving.storesRecords, let signingIn = handle.signingIn {
                return Registrar(handle: handle, signingIn: signingIn, serving: serving, accounts: accounts)
            }
        }
        return nil
    }

    /// Whether there is such a page.
    var isOffered: Bool { registrar != nil }

    /// `GET /sign-up`.
    func show() async throws(Failure) -> BrowserResponse {
        guard isOffered else { throw .noRoute(.signInUnknownEndpoint) }
        return try await page(nil, status: 200, try call.cookies(), call.target(call.query))
    }

    /// `POST /sign-up`: asks for a mail, or creates the account and signs in.
    func submit() async throws(Failure) -> BrowserResponse {
        guard let registrar else { throw .noRoute(.signInUnknownEndpoint) }
        let (cookies, form) = (try call.cookies(), try call.form())
        let target = call.target(form)
        if let problem = try await binding.problem(of: form, cookies) {
            return try await page(problem.error, status: 403, cookies, target).because(of: problem.failure)
        }
        do throws(Failure) {
            if registrar.isByMail { return try await requestMail(form, with: registrar, target) }
            let new = try await register(form, with: registrar)
            let cookie = try await BrowserSessions(endpoints: endpoints, call: call).begin(
                new, replacing: cookies.session)
            return .redirect(303, to: target.text, cookies: [cookie])
        } catch {
            guard call.isNavigation else { throw error }
            let shown = FormError(ofRegistration: error, minimumLength: endpoints.minimumPasswordLength)
            return try await page(shown, status: error.status, cookies, target, form).because(of: error)
        }
    }

    /// The page is the same for every address.
    private func requestMail(
        _ form: SignInForm, with registrar: Registrar, _ target: ReturnTarget
    ) async throws(Failure) -> BrowserResponse {
        let (request, endpoints) = (call.request, endpoints)
        let document = try await endpoints.withBudget(endpoints.budgets.registrations, request, countsSuccess: true) {
            () async throws(Failure) in
            let applicant = try read(endpoints.applicant(form, registrar.entry, addressMember: "username"))
            return try await endpoints.requestVerification(of: applicant, request)
        }
        return .mailRequested(document, call, target)
    }

    private func register(_ form: SignInForm, with registrar: Registrar) async throws(Failure) -> NewSession {
        let (request, endpoints) = (call.request, endpoints)
        return try await endpoints.withBudget(endpoints.budgets.registrations, request, countsSuccess: true) {
            () async throws(Failure) in
            do throws(AuthenticationError) {
                let name = try form.requiredText("username")
                guard let key = registrar.serving.canonicalName(name) else {
                    throw .malformed(.signInBadName, BodyError("username", .invalid))
                }
                guard !endpoints.selfService.provesAddresses || !UserRecord.isAddress(key) else {
                    let detail = "`username` must not be an email address."
                    throw .malformed(.signInAddressAsName, BodyError("username", .invalid, detail: detail))
                }
                let hash = try await registrar.serving.hashNewPassword(
                    try form.requiredSecret("password"), member: "password", in: endpoints.context(of: request))
                let user = UserRecord(name: name, key: key, hash: hash, isDisabled: false, claims: [:])
                do throws(AccountError) {
                    try await registrar.accounts.addUser(user, at: endpoints.setup.clock.unixTime)
                } catch {
                    throw error.kind == .duplicateUser
                        ? .malformed(error.code) : .unavailable(error.code, cause: error)
                }
            } catch {
                throw error.code == .accountsDuplicateUser
                    ? Failure.usernameTaken(error.code) : .authentication(error)
            }
            endpoints.setup.logger.info("user registered", ("request_id", request.requestID))
            return try await SignInFlow(endpoints: endpoints, call: call).authenticate(
                form, with: registrar.handle, registrar.signingIn)
        }
    }

    /// - Parameter form: what the user typed before.
    private func page(
        _ error: FormError?, status: Int, _ cookies: BrowserCookies, _ target: ReturnTarget,
        _ form: SignInForm? = nil
    ) async throws(Failure) -> BrowserResponse {
        let issued = try await binding.issue(cookies)
        let (registrar, name) = (registrar, try? form?.text("name"))
        let page = RegisterPage(
            action: call.path("sign-up"), csrf: issued.token, minimumLength: endpoints.minimumPasswordLength,
            signIn: call.path("sign-in"), username: try? form?.text("username"), error: error,
            requestID: error == .failed ? call.request.requestID : nil,
            byMail: registrar?.isByMail == true
                ? RegisterPage.ByMail(
                    asksName: registrar?.serving.selfService.registration?.requiresName == true, name: name) : nil)
        return .page(page, status: status, path: call.path("sign-up"), target: target, cookie: issued.setCookie)
    }
}
