internal import MartletAudit
internal import MartletBrowser
internal import MartletCore
internal import MartletIdentities
internal import MartletPages
internal import MartletProvider
internal import MartletResponder
internal import MartletSession

/// The way back from a provider.
extension RedirectFlows {
    /// `GET` or `POST /callback/{provider}`: completes each attempt once.
    ///
    /// The same way back gets the same response again for some seconds, and a browser that has signed in meanwhile goes
    /// on. Every rejection looks the same, so that nothing is learned about attempts; the log has the code.
    func finish() async throws(Failure) -> BrowserResponse {
        let cookies = try call.cookies()
        let seal = try await setup.secrets().attempts
        let (fields, attempt): (CallbackFields, SignInAttempt)
        do throws(Failure) {
            fields = try self.fields()
            attempt = try find(fields, in: cookies.attempts(seal))
        } catch {
            return try await failed(error, nil, cookies)
        }
        var fate = AttemptFate.stays
        var response = try await finish(attempt, fields, cookies, &fate)
        let cookie = setup.cookies.start(attempt.cookieID)
        switch fate {
        case .stays: break
        case .ends: response.cookies.append(cookie.deletion)
        case .repeats:
            let value = try value(of: attempt, seal)
            response.cookies.append(try setup.setting(cookie.lasting(SignInAttempt.repetition), to: value))
        }
        return response
    }

    /// How the cookie of an attempt is treated.
    private enum AttemptFate {
        /// The attempt was not used: a way back may still come.
        case stays
        /// The same way back is recognized by the cookie, for as long as it gets the same response.
        case repeats
        case ends
    }

    private func fields() throws(Failure) -> CallbackFields {
        if call.request.method == "POST" { try SignInBody.checkPageForm(of: call.request) }
        return try read(
            call.request.method == "POST"
                ? CallbackFields(encoded: call.request.body, sentBy: .formPost)
                : CallbackFields(encoded: Array(call.request.query.utf8), sentBy: .query))
    }

    private func find(_ fields: CallbackFields, in attempts: SignInAttempts) throws(Failure) -> SignInAttempt {
        guard let state = fields.state else { throw .malformed(.redirectStateMismatch) }
        return try fromBrowser(attempts.find(state: state))
    }

    /// Completes an attempt of this browser.
    private func finish(
        _ attempt: SignInAttempt, _ fields: CallbackFields, _ cookies: BrowserCookies, _ fate: inout AttemptFate
    ) async throws(Failure) -> BrowserResponse {
        do throws(BrowserError) { try attempt.check(provider: provider.name, now: call.now) } catch {
            fate = .ends
            return try await failed(.browser(error), attempt, cookies)
        }
        let responses = CallbackResponses(attempt, fields, provider.name, endpoints, call.request)
        let outcome = await endpoints.flights.join(responses.name) {
            do throws(Failure) { return try await complete(attempt, fields, cookies, responses) } catch {
                return .failed(error)
            }
        }
        switch outcome {
        case .response(let response):
            fate = .repeats
            return browserResponse(response)
        case .cancelled:
            fate = .ends
            return try await cancelled(attempt, cookies)
        case .failed(let error):
            // What proves nothing will never prove anything; what is malformed or unavailable may come again. An app
            // begins anew.
            let isUsed = [401, 403].contains(error.status) || error.reason == .browserAttemptUnknown
            fate = isUsed || attempt.isOfApp ? .ends : .stays
            return try await failed(error, attempt, cookies)
        }
    }

    private func complete(
        _ attempt: SignInAttempt, _ fields: CallbackFields, _ cookies: BrowserCookies, _ responses: CallbackResponses
    ) async throws(Failure) -> CallbackFlights.Outcome {
        if let known = try await responses.stored() { return .response(known) }
        let (start, outcome): (LoginFence.Start, RedirectOutcome)
        do throws(Failure) { (start, outcome) = try await self.outcome(of: attempt, fields) } catch {
            // An identical way back, by another instance, has used up the provider's code meanwhile.
            if let known = try? await responses.stored() { return .response(known) }
            throw error
        }
        guard case .signedIn(let signIn) = outcome else { return .cancelled }
        return .response(
            try await responses.once { () async throws(Failure) in
                try await response(to: signIn, startedAt: start, attempt, cookies)
            })
    }

    private func browserResponse(_ response: CallbackResponse) -> BrowserResponse {
        switch response.destination {
        case .app: .redirect(302, to: response.location)
        case .page: arrive(at: response.location, cookies: response.cookies)
        }
    }

    /// Carries out what an identity was proved for.
    private func response(
        to signIn: SignIn, startedAt start: LoginFence.Start, _ attempt: SignInAttempt, _ cookies: BrowserCookies
    ) async throws(Failure) -> CallbackResponse {
        if attempt.purpose == .link { return try await link(signIn, attempt) }
        let new = try await endpoints.creation.prepare(signIn, by: provider.handle, startedAt: start, call.request)
        switch attempt.destination {
        case .app(let app):
            let code = try await AppCodes(endpoints.setup, for: call.request.owner).issue(for: new, app)
            return CallbackResponse(destination: .app, location: app.location(code: code))
        case .page(let text):
            let cookie = try await BrowserSessions(endpoints: endpoints, call: call).begin(
                new, replacing: cookies.session, attempt.session)
            return CallbackResponse(
                destination: .page, location: setup.returns.target(of: text).text, cookies: [cookie])
        }
    }

    private func target(of attempt: SignInAttempt?) -> ReturnTarget {
        guard case .page(let text) = attempt?.destination else { return .home }
        return setup.returns.target(of: text)
    }

    /// Has the provider verify what the browser brought. Nothing is stored about an attempt before: anyone can begin one
    /// and come back with whatever fails.
    private func outcome(
        of attempt: SignInAttempt, _ fields: CallbackFields
    ) async throws(Failure) -> (LoginFence.Start, RedirectOutcome) {
        let purpose: AuthenticationContext.Purpose =
            attempt.purpose == .link ? .link(sessionID: attempt.session?.id ?? "") : .login
        // Within the budget of the client's network: a browser can begin and end any number of attempts.
        return try await endpoints.reportingFailure(
            of: provider.handle, call.request, as: attempt.purpose == .link ? .link : .login
        ) { () async throws(Failure) in
            let start = try await fromStore(await endpoints.fence.start())
            let (handle, redirecting) = (provider.handle, provider.redirecting)
            guard let flow = redirecting.redirectFlow(in: call.browser) else { throw .authentication(.noRedirect) }
            let callback = try read(RedirectCallback(fields, of: redirectAttempt(attempt), in: flow))
            let context = endpoints.context(of: call.request, for: purpose)
            let outcome = try await fromProvider(
                await endpoints.traced(with: handle) { () async throws(AuthenticationError) in
                    try await handle.logIn(in: context) { () async throws(AuthenticationError) in
                        try await redirecting.complete(callback, in: context)
                    }
                })
            return (start, outcome)
        }
    }

    private func cancelled(
        _ attempt: SignInAttempt, _ cookies: BrowserCookies
    ) async throws(Failure) -> BrowserResponse {
        if case .app(let app) = attempt.destination {
            return .redirect(302, to: app.location(error: "access_denied"))
        }
        if attempt.purpose == .link {
            return arrive(at: AccountResult.linkCancelled(provider.name).location(call.path("account")))
        }
        let kind = setup.kind(of: provider.handle)
        return try await SignInFlow(endpoints: endpoints, call: call).page(
            .cancelled(kind), status: 200, cookies, target(of: attempt))
    }

    /// The page with one message: unavailable, throttled, or that it failed. An app gets an error instead, and a browser
    /// that is signed in meanwhile goes on.
    /// - Parameter attempt: `nil` if the browser has none that this is the way back of.
    private func failed(
        _ failure: Failure, _ attempt: SignInAttempt?, _ cookies: BrowserCookies
    ) async throws(Failure) -> BrowserResponse {
        let isTemporary = failure.status == 503 || failure.status == 429
        let shown = isTemporary || failure.status == 415 ? failure : Failure.malformed(failure.reason)
        if case .app(let app) = attempt?.destination { return .toApp(app, failure) }
        guard call.isNavigation else { throw shown }
        if shown.status == 400, try await isSignedIn(since: attempt, cookies) {
            return arrive(at: target(of: attempt).text)
        }
        return try await SignInFlow(endpoints: endpoints, call: call).page(
            isTemporary ? SignInNotice(failure) : .failed, status: shown.status, cookies, target(of: attempt)
        ).because(of: shown)
    }

    /// Whether the browser has a session that it had not when the attempt began: another tab has signed in.
    private func isSignedIn(since attempt: SignInAttempt?, _ cookies: BrowserCookies) async throws(Failure) -> Bool {
        guard attempt?.purpose != .link,
            let session = try await BrowserSessions(endpoints: endpoints, call: call).current(cookies.session)
        else { return false }
        return attempt == nil || session.bound != attempt?.session
    }
}

extension SignInAttempt {
    /// Whether it ends in an app.
    var isOfApp: Bool {
        if case .app = destination { return true }
        return false
    }
}

extension BrowserResponse {
    /// The way back to an app that gets no code (RFC 6749 §4.1.2.1).
    static func toApp(_ app: AppRequest, _ failure: Failure) -> BrowserResponse {
        let error =
            switch failure.status {
            case 403: "access_denied"
            case 429, 503: "temporarily_unavailable"
            default: "server_error"
            }
        return .redirect(302, to: app.location(error: error)).because(of: failure)
    }
}
