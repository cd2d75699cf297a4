internal import MartletCore
internal import MartletJSON
internal import MartletResponder

/// `/auth/authorize` of the simulated Apple: a page on which a user signs in, and its response.
struct AppleAuthorizeEndpoint {
    let simulator: AppleSimulator

    /// `GET`: the page.
    func ask(_ form: AppleForm, query: String) throws(AppleAPIError) -> LocalResponse {
        try AuthorizationRequest.checkSpaces(query)
        try form.allow(AuthorizationRequest.names)
        return AuthorizationPage.asking(try checked(form))
    }

    /// `POST`: what the user has chosen.
    func respond(_ form: AppleForm) throws(AppleAPIError) -> LocalResponse {
        try form.allow(AuthorizationRequest.names + PageChoice.names)
        let request = try checked(form)
        let choice = try PageChoice(form)
        let parameters =
            choice.isCancelled
            ? [(name: "error", value: "user_cancelled_authorize")] : try login(of: choice, for: request)
        let state = request.state.map { [(name: "state", value: $0)] } ?? []
        return response(to: request, state + parameters)
    }

    /// What the redirect URI gets, by the browser: a page or a redirection that carries it.
    private func response(
        to request: AuthorizationRequest, _ parameters: [(name: String, value: String)]
    ) -> LocalResponse {
        let uri = request.redirectURI
        guard request.mode != .formPost else { return AuthorizationPage.posting(parameters, to: uri) }
        let separator = request.mode == .fragment ? "#" : uri.contains("?") ? "&" : "?"
        return BrowserPage.redirection(to: BrowserPage.url(uri, separator, parameters))
    }

    private func checked(_ form: AppleForm) throws(AppleAPIError) -> AuthorizationRequest {
        let request = try AuthorizationRequest(form)
        let registered = simulator.records.withBooks { $0.redirectURIs[request.clientID] }
        guard registered?.contains(where: { $0.hasSameBytes(as: request.redirectURI) }) != false else {
            throw AppleAPIError(status: 400, code: "invalid_redirect_uri", text: "The redirect_uri is not registered.")
        }
        return request
    }

    // MARK: Logins

    private func login(
        of choice: PageChoice, for request: AuthorizationRequest
    ) throws(AppleAPIError) -> [(name: String, value: String)] {
        let asksForData = request.wantsName || request.wantsEmail
        let consent = simulator.records.withBooks {
            $0.users.consent(choice.subject, email: choice.email, asksForData: asksForData)
        }
        guard let consent else { throw .invalidRequest("The Apple Account is deleted.") }
        var token = token(of: choice.subject, for: request, email: consent.email)
        let options = AppleSimulator.CodeOptions(
            clientID: request.clientID, subject: choice.subject, redirectURI: request.redirectURI,
            challenge: request.challenge)
        guard let code = try? simulator.issueCode(with: &token, options) else {
            throw .invalidRequest("The login is too large, or the Apple Account is deleted.")
        }
        var parameters = [(name: "code", value: code)]
        if request.wantsToken {
            guard let signed = try? simulator.mint(token, by: simulator.key) else { throw .unavailable }
            parameters.append(("id_token", signed))
        }
        guard consent.isFirst else { return parameters }
        let user = JSON.write(Self.user(choice, for: request, email: consent.email))
        return parameters + [("user", String(decoding: user, as: UTF8.self))]
    }

    private func token(of subject: String, for request: AuthorizationRequest, email: AppleUser.Email) -> IdentityToken {
        var token = simulator.token(audience: request.clientID, subject: subject)
        // Never on the web.
        token.claims["real_user_status"] = nil
        token.claims["nonce"] = request.nonce.map { .string($0) }
        for name in ["email", "email_verified", "is_private_email"] { token.claims[name] = nil }
        guard request.wantsEmail else { return token }
        token.claims["email"] = .string(email.address)
        token.claims["email_verified"] = true
        if email.isRelay { token.claims["is_private_email"] = true }
        return token
    }

    private static func user(
        _ choice: PageChoice, for request: AuthorizationRequest, email: AppleUser.Email
    ) -> JSONObject {
        var user: JSONObject = [:]
        if request.wantsName {
            user["name"] = ["firstName": .string(choice.firstName), "lastName": .string(choice.lastName)]
        }
        if request.wantsEmail { user["email"] = .string(email.address) }
        return user
    }
}
