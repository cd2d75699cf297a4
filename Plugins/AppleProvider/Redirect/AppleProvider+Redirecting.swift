private import MartletConfig
public import MartletCore
private import MartletJSON
public import MartletProvider

extension AppleProvider: Redirecting {
    /// The same in every browser; Apple's page is at `base_url`.
    public func redirectFlow(in browser: BrowserKind) -> RedirectFlow? {
        configuration.web.map {
            RedirectFlow(responseMode: $0.responseMode.value, origins: [configuration.baseURL.value.origin])
        }
    }

    /// Apple's page has no parameter for a language: it follows the browser's.
    public func authorizationURL(
        for attempt: RedirectAttempt, language: LanguageTag?, until deadline: MonotonicTime
    ) throws(AuthenticationError) -> String {
        guard let web = configuration.web else { throw .noRedirect }
        let isPosted = web.responseMode.value == .formPost
        var parameters = [
            (name: "client_id", value: web.clientID.value), (name: "redirect_uri", value: attempt.redirectURI),
            // Apple sends no token in a query.
            (name: "response_type", value: isPosted ? "code id_token" : "code"),
            (name: "response_mode", value: web.responseMode.value.rawValue),
        ]
        if !web.scopes.isEmpty {
            parameters.append((name: "scope", value: web.scopes.map(\.rawValue).joined(separator: " ")))
        }
        let nonce = LoginChecks.sent(attempt.nonce, as: configuration.nonceForm(of: web.clientID.value))
        parameters += [(name: "state", value: attempt.state), (name: "nonce", value: nonce)]
        if web.usesCodeChallenge.value {
            parameters += [
                (name: "code_challenge", value: attempt.codeChallenge), (name: "code_challenge_method", value: "S256"),
            ]
        }
        return AuthorizationURL.make(AppleEndpoints(base: configuration.baseURL.value.text).authorization, parameters)
    }

    /// Authenticates the user by the identity token that came with the code, by the one that Apple returns for the code,
    /// or by both, which must then agree.
    ///
    /// Without a key the code is not used, and the token alone identifies the user. It proves that Apple authenticated
    /// the user for this client and for this browser's request: it is signed, and has the attempt's nonce.
    public func complete(
        _ callback: RedirectCallback, in context: AuthenticationContext
    ) async throws(AuthenticationError) -> RedirectOutcome {
        guard let web = configuration.web else { throw .noRedirect }
        switch try WebResponse(callback.fields) {
        case .cancelled: return .cancelled
        case .failed(let error):
            self.context.logger.warning("apple refused an authorization", ("error", ShownText.make(error)))
            throw Self.authenticationError(.authorizationFailed)
        case .login(let login):
            return .signedIn(try await Self.result(await signIn(with: login, of: callback.attempt, web, in: context)))
        }
    }

    private func signIn(
        with login: WebResponse.Login, of attempt: RedirectAttempt, _ web: WebBlock, in context: AuthenticationContext
    ) async throws(AppleError) -> SignIn {
        let checks = WebChecks(clientID: web.clientID.value, attempt: attempt, configuration: configuration)
        let token = try await verifiedToken(of: login, checks, at: context.now)
        guard let client else {
            // `check` demands a key where no token is sent.
            guard let token else { throw .apiUnreachable("no key is configured") }
            return Self.signIn(token, login, grant: nil)
        }
        // Before anything is consumed: without capacity for the call the user can try again.
        let ready = try await client.reserved(until: context.deadline)
        let holder = CodeExchange.Holder(
            clientID: web.clientID.value, redirectURI: attempt.redirectURI,
            codeVerifier: web.usesCodeChallenge.value ? attempt.codeVerifier : nil)
        let exchanged = try await CodeExchange(provider: self, client: ready)
            .run(login.code, of: holder, with: token, in: context)
        try checks.check(exchanged.token)
        return Self.signIn(token ?? exchanged.token, login, grant: exchanged.grant)
    }

    /// The token that came with the code; `nil` where none is asked for.
    private func verifiedToken(
        of login: WebResponse.Login, _ checks: WebChecks, at now: UnixTime
    ) async throws(AppleError) -> VerifiedToken? {
        guard configuration.web?.responseMode.value == .formPost else { return nil }
        guard let sent = login.identityToken else { throw .tokenMissing }
        var log = CheckLog(recorded: false)
        let token = try await verifyFetchingKey(
            Credential(bearer: sent.withBytes { $0.map(\.self) }), for: .login, at: now, log: &log)
        try checks.check(token)
        try LoginChecks.check(login.code, of: token)
        return token
    }

    private static func signIn(_ token: VerifiedToken, _ login: WebResponse.Login, grant: ProviderGrant?) -> SignIn {
        SignIn(
            identity: token.identity, storedClaims: login.name.map { ["name": .string($0)] } ?? [:], grant: grant,
            isFresh: grant != nil)
    }
}
