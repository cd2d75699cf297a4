internal import MartletAccounts
internal import MartletBrowser
internal import MartletConfig
internal import MartletCore
internal import MartletJSON
internal import MartletPages
internal import MartletProvider
internal import MartletResponder
internal import MartletSession

/// The page for signing in, and its form for a name and a password.
struct SignInFlow: Sendable {
    let endpoints: SignInEndpoints
    let call: BrowserCall

    private var sessions: BrowserSessions { BrowserSessions(endpoints: endpoints, call: call) }
    private var binding: FormBinding { FormBinding(purpose: "sign-in", call: call) }

    /// `GET /sign-in`: the page, or a redirect for a browser that has a session.
    ///
    /// With `confirm=true` there is a page in either case: for a change that needs a recent sign-in.
    func show() async throws(Failure) -> BrowserResponse {
        let (cookies, target) = (try call.cookies(), call.target(call.query))
        let session = try await sessions.current(cookies.session)
        if session != nil, !call.isConfirmation { return .redirect(303, to: target.text) }
        var notice: SignInNotice? = session != nil ? .confirmIdentity : nil
        if let text = try? call.query.text("result"), let result = SignInResult(rawValue: text) {
            notice = result.notice
        } else if let start = startLocation {
            let isEnded = session == nil && cookies.session != nil
            return .redirect(302, to: start, cookies: isEnded ? [call.setup.cookies.session.deletion] : [])
        }
        var response = try await page(notice, status: 200, cookies, target)
        if session == nil, cookies.session != nil { response.cookies.append(call.setup.cookies.session.deletion) }
        return response
    }

    /// Where the sign-in begins without the page, where the configuration says so; with the arguments of the page.
    private var startLocation: String? {
        guard let name = call.setup.configuration.start?.value,
            let provider = RedirectingProvider(name, in: endpoints.setup),
            provider.redirecting.redirectFlow(in: call.browser) != nil
        else { return nil }
        let arguments = call.query.members.members.map { ($0.name, $0.value.string) }
        return PageURL.local(call.path("start/\(name)"), arguments)
    }

    /// `POST /sign-in`: signs in with the name and the password of the form.
    func submit() async throws(Failure) -> BrowserResponse {
        guard let (provider, signingIn) = passwordProvider else { throw .noRoute(.signInUnknownProvider) }
        let (cookies, form) = (try call.cookies(), try call.form())
        let target = call.target(form)
        let username = try? form.text("username")
        if let problem = try await binding.problem(of: form, cookies) {
            let notice: SignInNotice = problem == .cookiesNeeded ? .cookiesNeeded : .formExpired
            return try await page(notice, status: 403, cookies, target).because(of: problem.failure)
        }
        do throws(Failure) {
            let new = try await authenticate(form, with: provider, signingIn)
            let cookie = try await sessions.begin(new, replacing: cookies.session)
            return .redirect(303, to: target.text, cookies: [cookie])
        } catch {
            guard call.isNavigation else { throw error }
            return try await page(
                SignInNotice(error), status: error.status, cookies, target, username: username
            ).because(of: error)
        }
    }

    /// Authenticates the name and the password of a form.
    func authenticate(
        _ form: SignInForm, with provider: ProviderHandle, _ signingIn: any SigningIn
    ) async throws(Failure) -> NewSession {
        let request = call.request
        let (start, signIn) = try await endpoints.reportingFailure(of: provider, request) {
            () async throws(Failure) in
            try await endpoints.logIn(form, with: provider, signingIn, request)
        }
        return try await endpoints.creation.prepare(signIn, by: provider, startedAt: start, request)
    }

    /// The provider of the password form: the first one whose users have passwords.
    private var passwordProvider: (ProviderHandle, any SigningIn)? {
        for provider in endpoints.setup.providers where provider.passwordChanging != nil {
            if let signingIn = provider.signingIn { return (provider, signingIn) }
        }
        return nil
    }

    /// The page.
    /// - Parameter username: what the user typed before.
    func page(
        _ notice: SignInNotice?, status: Int, _ cookies: BrowserCookies, _ target: ReturnTarget,
        username: String? = nil
    ) async throws(Failure) -> BrowserResponse {
        let redirecting = endpoints.setup.providers.compactMap(RedirectingProvider.init)
        let flows = redirecting.compactMap { provider in
            provider.redirecting.redirectFlow(in: call.browser).map { (provider, $0) }
        }
        var form: SignInPage.PasswordForm?
        var cookie: String?
        if passwordProvider != nil {
            let issued = try await binding.issue(cookies)
            form = SignInPage.PasswordForm(
                action: call.path("sign-in"), csrf: issued.token, username: username,
                forgot: endpoints.selfService.resetting.isEmpty ? nil : call.path("forgot"))
            cookie = issued.setCookie
        }
        let page = SignInPage(
            providers: flows.map { button($0.0, target) }, password: form, notice: notice,
            requestID: notice?.hasReference == true ? call.request.requestID : nil,
            registration: SignUpFlow(endpoints: endpoints, call: call).isOffered ? call.path("sign-up") : nil)
        return .page(page, status: status, path: call.path("sign-in"), target: target, cookie: cookie)
    }

    private func button(_ provider: RedirectingProvider, _ target: ReturnTarget) -> ProviderButton {
        let url = PageURL.local(
            call.path("start/\(provider.name)"),
            [
                ("confirm", call.isConfirmation ? "true" : nil),
                ("return_to", target == .home ? nil : target.text),
            ])
        return ProviderButton(name: provider.name, kind: call.setup.kind(of: provider.handle), url: url)
    }
}

extension SignInNotice {
    init(_ failure: Failure) {
        switch failure.status {
        case 400: self = .wrongPassword
        case 401:
            // A person can do nothing about what overtook the sign-in, but try again.
            self = [.signInOvertaken, .identityRevoked].contains(failure.reason) ? .failed : .wrongPassword
        case 403: self = .notAllowed
        case 429: self = .throttled(seconds: failure.wait)
        case 503: self = .unavailable(seconds: failure.wait)
        default: self = .failed
        }
    }

    /// Whether the page names the request, for those who are asked for help.
    var hasReference: Bool {
        switch self {
        case .failed, .unavailable, .notAllowed: true
        default: false
        }
    }
}
