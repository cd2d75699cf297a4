internal import MartletAccounts
internal import MartletBrowser
internal import MartletCore
internal import MartletIO
internal import MartletPages
internal import MartletProvider
internal import MartletResponder
internal import MartletSession

/// What a form of the account's page does.
enum AccountAction: Sendable {
    case link(RedirectingProvider?)
    /// A provider's name.
    case unlink(String)
    /// A session's id.
    case endSession(String)
    case changePassword, delete
}

/// The page on which users manage their account, and its forms.
struct AccountFlow: Sendable {
    let endpoints: SignInEndpoints
    let call: BrowserCall

    private var path: String { call.path("account") }

    /// The forms of a session.
    private func binding(_ caller: Caller) -> FormBinding {
        FormBinding(purpose: "account \(caller.session.id)", call: call)
    }

    /// `GET /account` by a navigation: the page; without a session the way to sign in.
    func show() async throws(Failure) -> BrowserResponse {
        let cookies = try call.cookies()
        let caller: Caller
        do throws(Failure) { caller = try await self.caller(cookies) } catch {
            guard error.status == 401 else { throw error }
            let target = call.setup.returns.target(of: path)
            return .redirect(
                302, to: call.setup.returns.signInLocation(returningTo: target),
                cookies: cookies.session == nil ? [] : [call.setup.cookies.session.deletion])
        }
        let result = AccountResult(call.query)
        // Only a link of this session renews its cookie: a page of another site must not end sessions with a link.
        if case .linked = result, let proof = try? call.query.text("proof"),
            try await LinkProof(session: caller.session.id, call: call).matches(proof)
        {
            _ = try? await endpoints.renewCookie(of: caller, call.request)
        }
        let notice = result?.notice { name in endpoints.setup.provider(name).map(call.setup.kind(of:)) }
        return try await page(caller, cookies, AccountPageState(notice: notice), status: 200)
    }

    /// `POST /account/…`: the redirect back to the page, or the page with what is wrong.
    func perform(_ action: AccountAction) async throws(Failure) -> BrowserResponse {
        let cookies = try call.cookies()
        let caller = try await self.caller(cookies)
        let form = try call.form()
        if let problem = try await binding(caller).problem(of: form, cookies) {
            guard problem == .expired else { throw problem.failure }
            return try await page(caller, cookies, AccountPageState(notice: .formExpired), status: 403)
                .because(of: problem.failure)
        }
        if case .delete = action, (try? form.text("confirm")) != "true" {
            return try await page(caller, cookies, AccountPageState(isUnconfirmed: true), status: 400)
                .because(of: .malformed(.signInNotConfirmed))
        }
        do throws(Failure) { return try await perform(action, caller) } catch {
            guard call.isNavigation else { throw error }
            let state = AccountPageState(error, of: action, minimumLength: endpoints.minimumPasswordLength)
            return try await page(caller, cookies, state, status: error.status).because(of: error)
        }
    }

    private func perform(_ action: AccountAction, _ caller: Caller) async throws(Failure) -> BrowserResponse {
        let request = call.request
        switch action {
        case .link(let provider):
            guard let provider else { throw .noRoute(.signInUnknownProvider) }
            return try await RedirectFlows(endpoints: endpoints, call: call, provider: provider).startLink(caller)
        case .unlink(let name):
            _ = try await endpoints.unlink(name, endpoints.setup.provider(name), request)
            return back(.unlinked(name))
        case .endSession(let id):
            _ = try await endpoints.endSession(id, request)
            return back(.sessionEnded)
        case .changePassword:
            _ = try await endpoints.changePassword(request)
            return back(.passwordChanged)
        case .delete:
            _ = try await endpoints.deleteAccount(request)
            request.callerNote?.note(setCookie: call.setup.cookies.session.deletion)
            return .redirect(303, to: "\(call.path("sign-in"))?result=account_deleted")
        }
    }

    private func back(_ result: AccountResult) -> BrowserResponse { .redirect(303, to: result.location(path)) }

    private func caller(_ cookies: BrowserCookies) async throws(Failure) -> Caller {
        guard let cookie = try call.setup.sessionCookie(of: call.request) else { throw .credentialMissing }
        return try await endpoints.caller(withCookie: cookie, call.request, call.setup)
    }

    private func page(
        _ caller: Caller, _ cookies: BrowserCookies, _ state: AccountPageState, status: Int
    ) async throws(Failure) -> BrowserResponse {
        let issued = try await binding(caller).issue(cookies)
        let contents = AccountContents(endpoints: endpoints, call: call, caller: caller)
        let page = AccountPage(
            name: contents.name, identities: try await contents.identities(), linkable: try await contents.linkable(),
            sessions: try await contents.sessions(), password: try await contents.password(state.passwordError),
            deletion: contents.deletion(isUnconfirmed: state.isUnconfirmed), csrf: issued.token,
            signOut: PageURL.local(call.path("sign-out"), [("return_to", call.path("signed-out"))]),
            notice: state.notice, requestID: state.isFailure ? call.request.requestID : nil,
            formOrigins: contents.formOrigins, now: call.now)
        return .page(page, status: status, path: path, cookie: issued.setCookie)
    }
}

/// What the account's page says about the last action.
struct AccountPageState {
    var notice: AccountNotice?
    var passwordError: FormError?
    var isUnconfirmed = false
    /// Whether the page names the request, for those who are asked for help.
    var isFailure = false
}

extension AccountPageState {
    /// After a failed action.
    init(_ failure: Failure, of action: AccountAction, minimumLength: Int) {
        self.init()
        if case .changePassword = action, let error = FormError(ofChange: failure, minimumLength: minimumLength) {
            passwordError = error
            return
        }
        isFailure = true
        notice = failure.reason == .accountsLastIdentity ? .lastIdentity : .failed
        if failure.status == 503 { notice = .unavailable(seconds: failure.wait) }
    }
}
