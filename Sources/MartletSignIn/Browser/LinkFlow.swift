internal import MartletAccounts
internal import MartletBrowser
internal import MartletCore
internal import MartletPages
internal import MartletProvider
internal import MartletResponder

/// The pages of one-time links in mails: they do by a form what the endpoints for apps do.
///
/// Loading a page uses no link up: programs that look into mails load it, too.
struct LinkFlow: Sendable {
    /// Which page.
    enum Kind: String, Sendable, CaseIterable {
        case forgot, reset, verify
    }

    let kind: Kind
    let endpoints: SignInEndpoints
    let call: BrowserCall

    private var binding: FormBinding { FormBinding(purpose: kind.rawValue, call: call) }

    private var isOffered: Bool {
        guard endpoints.setup.links != nil else { return false }
        return kind == .verify ? !endpoints.selfService.registering.isEmpty : !endpoints.selfService.resetting.isEmpty
    }

    /// `GET /forgot`, `/reset?token=`, `/verify?token=`.
    func show() async throws(Failure) -> BrowserResponse {
        guard isOffered else { throw .noRoute(.signInUnknownEndpoint) }
        return try await page(call.query, nil, status: 200, try call.cookies())
    }

    /// `POST` of the form.
    func submit() async throws(Failure) -> BrowserResponse {
        guard isOffered else { throw .noRoute(.signInUnknownEndpoint) }
        let (cookies, form) = (try call.cookies(), try call.form())
        if let problem = try await binding.problem(of: form, cookies) {
            return try await page(form, problem.error, status: 403, cookies).because(of: problem.failure)
        }
        do throws(Failure) {
            switch kind {
            case .forgot:
                return .mailRequested(try await endpoints.forgotPassword(call.request), call, call.target(form))
            case .reset:
                try await LinkUse(endpoints: endpoints).use(call.request, for: .reset, passwordMember: "new_password")
                return .redirect(303, to: "\(call.path("sign-in"))?result=\(SignInResult.passwordReset.rawValue)")
            case .verify:
                try await LinkUse(endpoints: endpoints).use(
                    call.request, for: .registration, passwordMember: "password")
                return .redirect(303, to: "\(call.path("sign-in"))?result=\(SignInResult.registered.rawValue)")
            }
        } catch {
            guard call.isNavigation else { throw error }
            let shown = FormError(ofLink: error, minimumLength: endpoints.minimumPasswordLength)
            return try await page(form, shown, status: error.status, cookies).because(of: error)
        }
    }

    /// - Parameter form: has the token, or what the user typed before.
    private func page(
        _ form: SignInForm, _ error: FormError?, status: Int, _ cookies: BrowserCookies
    ) async throws(Failure) -> BrowserResponse {
        let token = (try? form.text("token")) ?? ""
        guard kind == .forgot || !token.isEmpty else { throw .malformed(.signInBadLink) }
        let purpose: LinkPage.Purpose =
            switch kind {
            case .forgot: .forgot
            case .reset: .reset(token: token)
            case .verify: .verify(token: token)
            }
        let issued = try await binding.issue(cookies)
        let page = LinkPage(
            purpose, action: call.path(kind.rawValue), csrf: issued.token,
            minimumLength: endpoints.minimumPasswordLength, signIn: call.path("sign-in"),
            address: try? form.text("email"), error: error,
            requestID: error == .failed ? call.request.requestID : nil)
        return .page(page, status: status, cookie: issued.setCookie)
    }
}

extension BrowserResponse {
    /// The response to a request for a mail, the same for every address.
    static func mailRequested(
        _ document: LocalResponse, _ call: BrowserCall, _ target: ReturnTarget
    ) -> BrowserResponse {
        guard call.isNavigation else { return BrowserResponse(content: .document(document), status: document.status) }
        return .page(
            MessagePage(.mailSent, requestID: nil, signIn: call.path("sign-in")), status: document.status,
            target: target)
    }
}

/// What the page for signing in says after something else, by the argument `result`.
enum SignInResult: String, CaseIterable {
    case accountDeleted = "account_deleted"
    case registered
    case passwordReset = "password_reset"

    var notice: SignInNotice {
        switch self {
        case .accountDeleted: .accountDeleted
        case .registered: .registered
        case .passwordReset: .passwordReset
        }
    }
}
