internal import MartletBrowser
internal import MartletCore
internal import MartletCrypto
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
    enum Problem { case cookiesNeeded, expired }

    /// Checks a form that was sent; `nil` if it is accepted.
    /// - Throws: 503 without the shared key.
    func problem(of form: SignInForm, _ cookies: BrowserCookies) async throws(Failure) -> Problem? {
        guard let browser = cookies.browser else { return .cookiesNeeded }
        let forms = try await call.setup.secrets().forms
        do throws(BrowserError) {
            let token = (try? form.text("csrf")) ?? ""
            try forms.check(token, for: purpose, browser: browser, now: call.now)
            return nil
        } catch {
            return .expired
        }
    }
}
