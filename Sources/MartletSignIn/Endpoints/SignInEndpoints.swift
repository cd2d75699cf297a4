internal import MartletConfig
internal import MartletCore
internal import MartletIdentities
internal import MartletJSON
package import MartletProvider
package import MartletResponder
internal import MartletSession

/// The endpoints that the gateway serves itself: logins, sessions, links, passwords, and related documents.
///
/// A request's path, method and size are checked before any store or provider is called. Rejections are ``Failure``s,
/// which are mapped to statuses in one place.
// lint:large-type one method for each endpoint
package final class SignInEndpoints: Sendable {
    let setup: SignInSetup
    let fence: LoginFence
    let budgets: AttemptBudgets
    let ends: SessionEnds
    let creation: SessionCreation
    let selfService: SelfServiceProviders
    let mails: AddressMails
    let audit: SignInAudit
    let flights = CallbackFlights()
    private let crossOrigin: CrossOrigin
    /// The response with the description of the endpoints.
    let description: LocalResponse
    /// The same with the forms of bodies.
    let formDescription: LocalResponse

    package init(_ setup: SignInSetup) {
        self.setup = setup
        budgets = AttemptBudgets(setup.providers)
        audit = SignInAudit(setup.audit)
        ends = SessionEnds(setup)
        selfService = SelfServiceProviders(setup.providers)
        mails = AddressMails(
            origin: setup.browser?.configuration.origin.value, base: setup.configuration.path, clock: setup.clock)
        fence = LoginFence(store: setup.store, keyPrefix: setup.storeKeyPrefix, isNeeded: setup.accounts != nil)
        creation = SessionCreation(setup: setup, fence: fence, ends: ends)
        crossOrigin = CrossOrigin(
            origins: setup.configuration.corsOrigins, allowsProofs: setup.configuration.dpop != .off)
        let logins = setup.providers.filter { $0.signingIn != nil }.map(OpenAPI.Login.init)
        let (path, cookie) = (setup.configuration.path, setup.browser?.configuration.cookie.name)
        description = SignInResponse.json(OpenAPI.document(path: path, logins: logins, cookie: cookie))
        formDescription = SignInResponse.json(
            OpenAPI.document(path: path, logins: logins, hasForms: true, cookie: cookie))
    }

    /// Why requests of a network are not handled now, whatever they ask for; never waits.
    ///
    /// To be asked before anything is done for a request.
    package func rejection(of network: ClientNetwork?) -> Failure? {
        budgets.unreadable.wait(of: network, at: setup.clock.monotonicTime).map {
            .budget(BudgetExceededError(retryAfter: $0))
        }
    }

    /// Handles a request to one of the paths; suspends for stores and providers, never blocks a thread.
    package func handle(_ request: LocalRequest) async -> LocalResponse {
        let response = await respond(request)
        if [400, 413, 415].contains(response.status) {
            budgets.unreadable.add(from: request.network, at: setup.clock.monotonicTime)
        }
        return response
    }

    private func respond(_ request: LocalRequest) async -> LocalResponse {
        let note = CallerNote()
        var request = request
        request.callerNote = note
        if let browser = setup.browser, let endpoint = BrowserEndpoint.find(request, in: setup) {
            let response = await BrowserEndpoints(endpoints: self, setup: browser).handle(request, at: endpoint)
            audit.record(AuditDeed(endpoint, request), request, response)
            return response.noting(note)
        }
        guard let endpoint = Endpoint.find(request.path, in: setup), isOffered(endpoint) else {
            return crossOrigin.addingFields(to: LocalResponse(refusing: .noRoute(.signInUnknownEndpoint)), for: request)
        }
        var response: LocalResponse
        do throws(Failure) { response = try await dispatch(request, to: endpoint) } catch {
            response = LocalResponse(refusing: error.describingBody())
        }
        audit.record(AuditDeed(endpoint, request), request, response)
        response = response.noting(note)
        return endpoint.isForPages ? crossOrigin.addingFields(to: response, for: request) : response
    }

    private func dispatch(_ request: LocalRequest, to endpoint: Endpoint) async throws(Failure) -> LocalResponse {
        if request.method == "OPTIONS", let response = crossOrigin.preflight(request, for: endpoint) { return response }
        let method = request.method == "HEAD" ? "GET" : request.method
        guard endpoint.methods.contains(method) else { throw .methodNotAllowed(endpoint.allow) }
        guard request.bodyBytes <= SignInBody.maximumBytes else { throw .tooLarge(.signInBodyTooLarge) }
        if endpoint.readsLogin(method) { try await admitLogin(request) }
        switch endpoint {
        case .login(let provider, let signingIn): return try await login(request, with: provider, signingIn)
        case .nonce: return try await nonce(request)
        case .refresh: return try await refresh(request)
        case .revocation: return try await revoke(request)
        case .token: return try await TokenEndpoint(endpoints: self).exchange(request)
        case .logout: return try await logout(request)
        case .session: return try await session(request)
        case .sessions: return try await sessions(request)
        case .identities: return try await identities(request)
        case .account:
            return try await method == "GET" ? account(request) : deleteAccount(request)
        case .profile: return try await changeProfile(request)
        case .notifications(let provider, let notifying):
            return try await notify(request, from: provider, notifying)
        case .oneSession(let id): return try await endSession(id, request)
        case .link(let name, let provider):
            guard method == "POST" else { return try await unlink(name, provider, request) }
            return try await link(request, with: provider)
        case .password: return try await changePassword(request)
        case .reauthentication: return try await reauthenticate(request)
        case .register: return try await register(request)
        case .verifyRegistration: return try await verifyRegistration(request)
        case .forgotPassword: return try await forgotPassword(request)
        case .resetPassword: return try await resetPassword(request)
        case .description:
            return request.query.split(separator: "&").contains("forms=true") ? formDescription : description
        case .metadata(let document): return SignInResponse.json(document)
        case .keySet(let keys): return SignInResponse.json(keys)
        case .appSiteAssociation(let apps): return SignInResponse.appSiteAssociation(apps)
        case .changePassword(let url): return SignInResponse.seeOther(url)
        }
    }

    /// Counts a request with the credential of a login by the limits of logins.
    func admitLogin(_ request: LocalRequest) async throws(Failure) {
        if let failure = await setup.loginLimit?(request) { throw failure }
    }

    /// Whether some provider allows what an endpoint is for.
    private func isOffered(_ endpoint: Endpoint) -> Bool {
        switch endpoint {
        case .register, .verifyRegistration: !selfService.registering.isEmpty
        case .forgotPassword, .resetPassword: !selfService.resetting.isEmpty
        default: true
        }
    }

    /// The context of a request for providers.
    /// - Parameter provider: the one that gets it, if it may get the request, too.
    func context(
        of request: LocalRequest, for purpose: AuthenticationContext.Purpose = .request,
        with provider: ProviderHandle? = nil
    ) -> AuthenticationContext {
        AuthenticationContext(
            now: setup.clock.unixTime, deadline: setup.clock.monotonicTime + LocalLimits.timeout,
            client: request.network, address: request.address, purpose: purpose,
            request: provider?.reuseKey == nil ? nil : RequestFacts(request))
    }
}

extension RequestFacts {
    fileprivate init(_ request: LocalRequest) {
        self.init(method: request.method, host: request.field("host") ?? "", path: request.path)
    }
}

extension LocalRequest {
    /// The values of the fields of a name.
    /// - Parameter name: in lower case.
    func values(of name: String) -> [String] { fields.filter { $0.name.lowercased() == name }.map(\.value) }
}

// MARK: - Caller

/// The live session behind a request.
struct Caller: Sendable {
    let principal: Principal
    let session: SessionReference
    /// The token of the session's cookie; `nil` for a bearer token.
    var cookie: Secret?
}

extension SignInEndpoints {
    /// Verifies a request's session with the store, never with an event loop's cached copy.
    /// - Throws: 401 without a valid session, 503 when the store is unavailable.
    /// - Parameter isProven: whether this request's caller was verified before, and only may have been ended since.
    func caller(of request: LocalRequest, isProven: Bool = false) async throws(Failure) -> Caller {
        if let browser = setup.browser, let cookie = try browser.sessionCookie(of: request) {
            return try await caller(withCookie: cookie, request, browser)
        }
        let token = try PresentedToken(of: request)
        let session = try await session(of: token.bytes, request)
        try await ClientKeys(endpoints: self).check(proofOf: session, token, isProven: isProven, request)
        return try caller(session, request)
    }

    /// Verifies an access token, but not the proof that a bound one needs.
    /// - Throws: 401 if it is not valid, 503 when the store is unavailable.
    func session(of token: [UInt8], _ request: LocalRequest) async throws(Failure) -> VerifiedSession {
        let prefix = type(of: setup.sessions).accessPrefix
        guard token.starts(with: prefix.utf8) else { throw .credentialInvalid(.signInSessionNeeded) }
        do throws(AuthenticationError) {
            return try await setup.sessions.verify(Credential(bearer: token), in: context(of: request))
        } catch {
            request.callerNote?.note(error.caller)
            throw .authentication(error)
        }
    }

    /// The caller of a verified session.
    func caller(_ proven: VerifiedSession, _ request: LocalRequest) throws(Failure) -> Caller {
        request.callerNote?.note(subject: proven.principal.subject, sessionID: proven.principal.sessionID)
        request.callerNote?.note(provider: proven.principal.provider)
        guard let id = proven.principal.sessionID else { throw .credentialInvalid(.signInSessionNeeded) }
        return Caller(principal: proven.principal, session: SessionReference(subject: proven.principal.subject, id: id))
    }
}
