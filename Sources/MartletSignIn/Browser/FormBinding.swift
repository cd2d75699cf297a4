internal import MartletBrowser
internal import MartletCore
internal import MartletCrypto
internal import MartletPages
internal import MartletProvider
internal import MartletResponder

/// Binds the gateway's own forms to the browser that loads them.
struct FormBinding: Sendable {
    /// Which form.
    let purpose: String
    let call: BrowserCall

    /// The token for a form, and the cookie that has to be set with it; `nil` for a browser that has it.
    /// - Throws: 503 without the shared key.
    func issue(_ cookies: BrowserCookies) async throws(Failure) -> (token: String, setCookie: String?) {
        let forms = try await call.setup.secrets().forms
        let now = call.now
        if let browser = cookies.browser { return (forms.token(for: purpose, browser: browser, now: now), nil) }
        let browser = try random(FormTokens.newBrowser())
        return (
            forms.token(for: purpose, browser: Array(browser.utf8), now: now),
            try call.setup.setting(call.setup.cookies.form, to: browser)
        )
    }

    /// Why a form is not accepted.
    enum Problem {
        case cookiesNeeded, expired

        var failure: Failure { .notAllowed(.browserFormTokenInvalid) }
        /// What the page with the form says.
        var error: FormError { self == .cookiesNeeded ? .cookiesNeeded : .formExpired }
    }

    /// Checks a form that was sent; `nil` if it is accepted.
    /// - Throws: 503 without the shared key, 403 for a form that is not accepted if no page can say so.
    func problem(of form: SignInForm, _ cookies: BrowserCookies) async throws(Failure) -> Problem? {
        guard let problem = try await problem(of: (try? form.text("csrf")) ?? "", cookies.browser) else { return nil }
        guard call.isNavigation else { throw problem.failure }
        return problem
    }

    private func problem(of token: String, _ browser: [UInt8]?) async throws(Failure) -> Problem? {
        guard let browser else { return .cookiesNeeded }
        let forms = try await call.setup.secrets().forms
        return (try? forms.check(token, for: purpose, browser: browser, now: call.now)) == nil ? .expired : nil
    }
}

/// What pages say about the failure of a form.
extension FormError {
    /// - Parameter minimumLength: of passwords, in characters.
    init(ofLink failure: Failure, minimumLength: Int) {
        switch (failure.status, failure.bodyErrors.first?.code) {
        case (400, .tooShort): self = .passwordTooShort(minimum: minimumLength)
        case (400, .tooLong): self = .passwordTooLong
        case (400, _): self = failure.reason == .signInBadAddress ? .addressInvalid : .passwordTooWeak
        case (401, _): self = .linkInvalid
        default: self.init(failure)
        }
    }

    init(ofRegistration failure: Failure, minimumLength: Int) {
        let body = failure.bodyErrors.first
        switch (failure.status, body?.code) {
        case (409, _): self = .usernameTaken
        case (400, .tooShort): self = .passwordTooShort(minimum: minimumLength)
        case (400, .tooLong) where body?.pointer == "/password": self = .passwordTooLong
        case (400, .breached): self = .passwordTooWeak
        case (400, _) where failure.reason == .signInAddressAsName: self = .addressAsName
        case (400, _) where failure.reason == .signInBadAddress: self = .addressInvalid
        case (400, _) where body?.pointer == "/name": self = .nameInvalid
        case (400, _): self = body?.pointer == "/password" ? .passwordTooWeak : .usernameInvalid
        default: self.init(failure)
        }
    }

    /// - Returns: `nil` for a failure that has nothing to do with the form.
    init?(ofChange failure: Failure, minimumLength: Int) {
        switch (failure.status, failure.bodyErrors.first?.code) {
        case (401, _): self = .wrongCurrentPassword
        case (429, _): self.init(failure)
        case (400, .tooShort): self = .passwordTooShort(minimum: minimumLength)
        case (400, .tooLong): self = .passwordTooLong
        case (400, .breached): self = .passwordTooWeak
        default: return nil
        }
    }

    private init(_ failure: Failure) {
        switch failure.status {
        case 429: self = .throttled(seconds: failure.wait)
        case 503: self = .unavailable(seconds: failure.wait)
        default: self = .failed
        }
    }
}
