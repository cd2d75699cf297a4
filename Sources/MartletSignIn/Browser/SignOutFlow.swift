internal import MartletAccounts
internal import MartletBrowser
internal import MartletCore
internal import MartletPages
internal import MartletProvider
internal import MartletResponder
internal import MartletSession

/// Signing out.
struct SignOutFlow: Sendable {
    let endpoints: SignInEndpoints
    let call: BrowserCall

    /// `POST /sign-out`: ends the session of the cookie, with `all=true` all of the subject's, and deletes the cookie.
    ///
    /// Requests from other sites are rejected without a cookie as well: the response deletes one that the browser did
    /// not send.
    func signOut() async throws(Failure) -> BrowserResponse {
        try call.setup.checkSite(of: call.request)
        let form = try SignInBody.optionalForm(of: call.request) ?? call.query
        let everywhere = try endsAll(form)
        if let cookie = try call.cookies().session {
            let session = try await BrowserSessions(endpoints: endpoints, call: call).current(cookie)
            if let session { try await end(session, everywhere: everywhere) }
        }
        // The form of the account's page has it in its action.
        let target = call.target((try? form.text("return_to")) == nil ? call.query : form)
        return .redirect(303, to: target.text, cookies: [call.setup.cookies.session.deletion])
    }

    private func end(_ session: VerifiedSession, everywhere: Bool) async throws(Failure) {
        let caller = try endpoints.caller(session, call.request)
        try await endpoints.ends.logOut(caller, everywhere: everywhere)
    }

    /// Accepts only `true` and `false`, so that a typing error does not leave sessions alive.
    private func endsAll(_ form: SignInForm) throws(Failure) -> Bool {
        let text = try read(form.text("all"))
        switch text {
        case nil, "false": return false
        case "true": return true
        default: throw .malformed(.signInBadQuery)
        }
    }

    /// `GET /signed-out`: the page that says so.
    func confirmation() -> BrowserResponse {
        let page = SignedOutPage(isEverywhere: (try? call.query.text("all")) == "true", signIn: call.path("sign-in"))
        return .page(page, path: call.path("signed-out"))
    }
}
