internal import MartletBrowser
internal import MartletConfig
internal import MartletCore
internal import MartletCrypto
internal import MartletJSON
internal import MartletPages
internal import MartletProvider
internal import MartletResponder
internal import MartletSession

/// The way of a browser to a provider.
struct RedirectFlows: Sendable {
    let endpoints: SignInEndpoints
    let call: BrowserCall
    let provider: RedirectingProvider

    var setup: BrowserSetup { call.setup }

    /// `GET /start/{provider}`: sends the browser to the provider.
    func start() async throws(Failure) -> BrowserResponse {
        let cookies = try call.cookies()
        let destination = try destination()
        // The provider's way back may come without the session's cookie.
        let session: SignInAttempt.Session? =
            if case .page = destination {
                try await BrowserSessions(endpoints: endpoints, call: call).current(cookies.session)?.bound
            } else {
                nil
            }
        do throws(Failure) {
            return try await begin(.signIn, destination, session, status: 302, cookies)
        } catch {
            guard case .app(let app) = destination else { throw error }
            return .toApp(app, error)
        }
    }

    /// Begins an attempt: a redirect to the provider, and the cookie that binds the attempt to this browser.
    /// - Parameter status: 302, or 303 after a form.
    func begin(
        _ purpose: SignInAttempt.Purpose, _ destination: SignInAttempt.Destination, _ session: SignInAttempt.Session?,
        status: Int, _ cookies: BrowserCookies
    ) async throws(Failure) -> BrowserResponse {
        guard provider.redirecting.redirectFlow(in: call.browser) != nil else {
            throw .authentication(.noRedirect)
        }
        let seal = try await setup.secrets().attempts
        let attempt = try attempt(purpose, destination, session)
        let (redirecting, context) = (provider.redirecting, endpoints.context(of: call.request))
        let language = LanguageTag(call.choice.language.rawValue)
        let redirected = try read(redirectAttempt(attempt, for: request(for: destination)))
        let url = try await fromProvider(
            await provider.handle.run(in: context) { () async throws(AuthenticationError) in
                try await redirecting.authorizationURL(for: redirected, language: language, until: context.deadline)
            })
        let value = try value(of: attempt, seal)
        let superseded = cookies.attempts(seal).superseded(byOneMoreOf: value.utf8.count, now: call.now)
        let deletions =
            cookies.withoutAttempt(seal).map(setup.cookies.deletion(of:))
            + superseded.map { setup.cookies.start($0.cookieID).deletion }
        let cookie = try setup.setting(setup.cookies.start(attempt.cookieID), to: value)
        return .redirect(status, to: url, cookies: deletions + [cookie])
    }

    /// What the provider is asked for: what the page demands that the browser returns to, and what its link says.
    private func request(for destination: SignInAttempt.Destination) -> RedirectRequest {
        var request = RedirectRequest()
        if case .page(let text) = destination, let stepUp = setup.stepUp(setup.returns.target(of: text)) {
            request.maximumAge = stepUp.maximumAge.map { .seconds($0) }
            request.level = stepUp.acr
        }
        request.confirms = call.isConfirmation
        for member in call.query.members.members {
            if let value = member.value.string { request.arguments[member.name] = value }
        }
        return request
    }

    private func attempt(
        _ purpose: SignInAttempt.Purpose, _ destination: SignInAttempt.Destination, _ session: SignInAttempt.Session?
    ) throws(Failure) -> SignInAttempt {
        try random(
            SignInAttempt(
                provider: provider.name, purpose: purpose, destination: destination, session: session, now: call.now))
    }

    /// Where the flow ends: at a page, or in an app that asks for it with `client=native`.
    private func destination() throws(Failure) -> SignInAttempt.Destination {
        // An app gets errors for what a page would ignore.
        let query = call.request.query.utf8.isEmpty ? call.query : try SignInBody.form(Array(call.request.query.utf8))
        guard let client = try read(query.text("client")) else { return .page(call.target(query).text) }
        guard client == "native" else { throw .authentication(.malformed(.signInBadQuery)) }
        let (redirect, challenge) = (try read(query.text("redirect")), try read(query.text("code_challenge")))
        let (method, state) = (try read(query.text("code_challenge_method")), try read(query.text("state")))
        do throws(BrowserError) {
            return .app(
                try AppRequest(
                    redirect: redirect, challenge: challenge, method: method, state: state,
                    redirects: setup.configuration.nativeRedirects))
        } catch {
            throw .authentication(.malformed(error.code))
        }
    }

    /// The response to a callback that leads back to a page of this site.
    ///
    /// Browsers do not send a `SameSite=Strict` cookie with a redirect of a request that another site caused.
    func arrive(at location: String, cookies: [String] = []) -> BrowserResponse {
        guard setup.configuration.cookie.sameSite == .strict else {
            return .redirect(303, to: location, cookies: cookies)
        }
        var response = BrowserResponse.page(ContinuePage(to: location))
        response.refresh = location
        response.cookies = cookies
        return response
    }

    /// An attempt as providers get it.
    /// - Parameter request: what it is begun for.
    func redirectAttempt(
        _ attempt: SignInAttempt, for request: RedirectRequest = RedirectRequest()
    ) throws(AuthenticationError) -> RedirectAttempt {
        guard
            var made = RedirectAttempt(
                state: attempt.state, nonce: attempt.nonce, codeVerifier: Secret(attempt.verifier),
                redirectURI: setup.callback(of: provider.name), browser: call.browser)
        else { throw .rejected(.browserAttemptUnknown) }
        made.request = request
        return made
    }

    /// The value of an attempt's cookie.
    /// - Throws: 400 if it does not fit into one, 503.
    func value(of attempt: SignInAttempt, _ seal: AttemptSeal) throws(Failure) -> String {
        let value = try random(seal.seal(attempt))
        guard let value else { throw .malformed(.browserAttemptTooLarge) }
        return value
    }
}

extension VerifiedSession {
    /// The session as a sign-in is bound to it; `nil` for one without an id.
    var bound: SignInAttempt.Session? {
        principal.sessionID.map { SignInAttempt.Session(subject: principal.subject, id: $0) }
    }
}
