internal import MartletConfig
public import MartletCore
public import MartletProvider

extension OIDCProvider: Redirecting {
    /// The same in every browser; until the issuer's page is known, its origin is taken for the issuer's.
    public func redirectFlow(in browser: BrowserKind) -> RedirectFlow? {
        guard let web = configuration.web else { return nil }
        let page =
            web.authorizationURL?.value ?? discovery?.document?.authorizationURL
            ?? URLText(configuration.issuer.value)
        return RedirectFlow(responseMode: web.responseMode, origins: page.map { [$0.origin] } ?? [])
    }

    /// The authorization endpoint, with a request for a code.
    public func authorizationURL(
        for attempt: RedirectAttempt, language: LanguageTag?, until deadline: MonotonicTime
    ) async throws(AuthenticationError) -> String {
        guard let web = configuration.web else { throw .noRedirect }
        let endpoint = try await OIDCError.result(await endpoints(of: web).authorization)
        var parameters = [
            (name: "response_type", value: "code"), (name: "client_id", value: web.client.id),
            (name: "redirect_uri", value: attempt.redirectURI),
            (name: "scope", value: web.scopes.joined(separator: " ")), (name: "state", value: attempt.state),
            (name: "nonce", value: attempt.nonce),
        ]
        // The query is the default.
        if web.responseMode == .formPost {
            parameters.append((name: "response_mode", value: web.responseMode.rawValue))
        }
        if web.usesCodeChallenge {
            parameters += [
                (name: "code_challenge", value: attempt.codeChallenge), (name: "code_challenge_method", value: "S256"),
            ]
        }
        parameters += web.parameters.parameters(for: attempt.request, language: language)
        return AuthorizationURL.make(endpoint, parameters)
    }

    /// Exchanges the code that came back, once, and authenticates the user by the ID token that it brings.
    public func complete(
        _ callback: RedirectCallback, in context: AuthenticationContext
    ) async throws(AuthenticationError) -> RedirectOutcome {
        guard let web = configuration.web else { throw .noRedirect }
        let response = try CodeResponse(callback.fields)
        return try await OIDCError.result(await outcome(of: response, callback.attempt, web, in: context))
    }

    private func outcome(
        of response: CodeResponse, _ attempt: RedirectAttempt, _ web: OIDCWebBlock, in context: AuthenticationContext
    ) async throws(OIDCError) -> RedirectOutcome {
        let endpoints = try await endpoints(of: web)
        try response.checkIssuer(among: configuration.issuers, isRequired: endpoints.namesIssuerInResponses)
        switch response.result {
        case .failed(let error): return try failure(error, of: web.client.id)
        case .code(let code):
            let flow = CodeFlow(provider: self, web: web, endpoints: endpoints)
            return .signedIn(try await flow.run(code, of: attempt, in: context))
        }
    }

    /// What an error of the authorization endpoint means (RFC 6749 §4.1.2.1).
    private func failure(_ rejection: IssuerRejection, of client: String) throws(OIDCError) -> RedirectOutcome {
        let error = rejection.error
        if error.hasSameBytes(as: "access_denied") {
            // Most often the user has cancelled, without a word; an issuer that denies says why.
            if rejection.description != nil {
                rejection.log("issuer denied an authorization", of: client, to: context.logger)
            }
            return .cancelled
        }
        rejection.log("issuer refused an authorization", of: client, to: context.logger)
        if error.hasSameBytes(as: "temporarily_unavailable") || error.hasSameBytes(as: "server_error") {
            throw .unavailable("issuer_unavailable", "the issuer's page says that it is unavailable")
        }
        throw .rejected("authorization_failed", "the issuer's page returned \(ShownText.make(error))")
    }
}
