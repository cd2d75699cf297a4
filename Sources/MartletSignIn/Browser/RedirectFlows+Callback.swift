internal import MartletAudit
internal import MartletBrowser
internal import MartletCore
internal import MartletPages
internal import MartletProvider
internal import MartletResponder
internal import MartletSession

/// The way back from a provider.
extension RedirectFlows {
    /// `GET` or `POST /callback/{provider}`: accepts exactly one response to each attempt.
    ///
    /// Every rejection looks the same, so that nothing is learned about attempts; the log has the code.
    func finish() async throws(Failure) -> BrowserResponse {
        try checkMethod()
        let cookies = try call.cookies()
        let seal = try await setup.secrets().attempts
        var attempts = cookies.start.map { seal.open($0) } ?? SignInAttempts()
        let (fields, attempt): (CallbackFields, SignInAttempt)
        do throws(Failure) {
            fields = try self.fields()
            attempt = try take(fields, from: &attempts)
        } catch {
            var response = try await failed(error, ReturnTarget.home, cookies)
            if cookies.start != nil { response.cookies.append(try cookie(attempts, seal)) }
            return response
        }
        var isUsed = false
        var response = try await finish(attempt, fields, cookies, &isUsed)
        // Otherwise the attempt stays in the cookie: the same response may be sent again.
        if isUsed { response.cookies.append(try cookie(attempts, seal)) }
        return response
    }

    /// The provider decides how its responses come back.
    private func checkMethod() throws(Failure) {
        let modes = BrowserKind.allCases.compactMap { provider.redirecting.redirectFlow(in: $0)?.responseMode }
        guard !modes.contains(where: { $0.method == call.request.method }) else { return }
        throw .methodNotAllowed(Array(Set(modes.map(\.method))).sorted().joined(separator: ", "))
    }

    private func fields() throws(Failure) -> CallbackFields {
        do throws(AuthenticationError) {
            guard call.request.method == "POST" else {
                return try CallbackFields(encoded: Array(call.request.query.utf8), sentBy: .query)
            }
            return try CallbackFields(encoded: call.request.body, sentBy: .formPost)
        } catch {
            throw .authentication(error)
        }
    }

    private func take(
        _ fields: CallbackFields, from attempts: inout SignInAttempts
    ) throws(Failure) -> SignInAttempt {
        guard let state = fields.state else { throw .malformed(.redirectStateMismatch) }
        do throws(BrowserError) {
            return try attempts.take(state: state, provider: provider.name, now: call.now)
        } catch {
            throw .browser(error)
        }
    }

    /// Completes an attempt that was taken out of the cookie.
    /// - Parameter isUsed: whether the browser loses the attempt.
    private func finish(
        _ attempt: SignInAttempt, _ fields: CallbackFields, _ cookies: BrowserCookies, _ isUsed: inout Bool
    ) async throws(Failure) -> BrowserResponse {
        do throws(Failure) {
            let responses = CallbackResponses(attempt, fields, provider.name, endpoints, call.request)
            if let known = try await responses.stored() { return browserResponse(known) }
            let (start, outcome) = try await outcome(of: attempt, fields)
            guard case .signedIn(let signIn) = outcome else {
                isUsed = true
                return try await cancelled(attempt, cookies)
            }
            let new = try await responses.once { () async throws(Failure) in
                try await response(to: signIn, startedAt: start, attempt, cookies)
            }
            isUsed = true
            return browserResponse(new)
        } catch {
            // What proves nothing will never prove anything; what is malformed or unavailable may come again.
            isUsed = [401, 403].contains(error.status) || error.reason == .browserAttemptUnknown
            return try await failed(error, target(of: attempt), cookies)
        }
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
            let cookie = try await BrowserSessions(endpoints, call).begin(
                new, replacing: cookies.session, attempt.session)
            return CallbackResponse(
                destination: .page, location: setup.returns.target(of: text).text, cookies: [cookie])
        }
    }

    private func target(of attempt: SignInAttempt) -> ReturnTarget {
        guard case .page(let text) = attempt.destination else { return .home }
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
            let start: LoginFence.Start
            do throws(StoreError) { start = try await endpoints.fence.start() } catch { throw .store(error) }
            do throws(AuthenticationError) {
                guard let flow = provider.redirecting.redirectFlow(in: call.browser) else { throw .noRedirect }
                let callback = try RedirectCallback(fields, of: try redirectAttempt(attempt), in: flow)
                let context = endpoints.context(of: call.request, for: purpose)
                let redirecting = provider.redirecting
                let handle = provider.handle
                let outcome = try await endpoints.traced(with: handle) { () async throws(AuthenticationError) in
                    try await handle.logIn(in: context) { () async throws(AuthenticationError) in
                        try await redirecting.complete(callback, in: context)
                    }
                }
                return (start, outcome)
            } catch {
                throw .authentication(error)
            }
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
        let kind = ProviderButton.Kind(provider.handle)
        return try await SignInFlow(endpoints, call).page(
            .cancelled(kind), status: 200, cookies, target(of: attempt))
    }

    /// The page with one message: unavailable, throttled, or that it failed.
    private func failed(
        _ failure: Failure, _ target: ReturnTarget, _ cookies: BrowserCookies
    ) async throws(Failure) -> BrowserResponse {
        let isTemporary = failure.status == 503 || failure.status == 429
        let shown = isTemporary ? failure : Failure.malformed(failure.reason)
        guard call.isNavigation else { throw shown }
        return try await SignInFlow(endpoints, call).page(
            isTemporary ? SignInNotice(failure) : .failed, status: shown.status, cookies, target
        ).because(of: shown)
    }
}
