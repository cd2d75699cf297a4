internal import MartletAudit
internal import MartletBrowser
internal import MartletCore
internal import MartletProvider
internal import MartletResponder
internal import MartletSession

/// The token endpoint of OAuth 2.0 (RFC 6749 §3.2), for apps that sign in by a browser.
struct TokenEndpoint: Sendable {
    private static let grantType = "grant_type"

    let endpoints: SignInEndpoints

    /// `POST /token`: exchanges a code, or with `grant_type=refresh_token` a refresh token.
    func exchange(_ request: LocalRequest) async throws(Failure) -> LocalResponse {
        let form = try SignInBody.form(of: request)
        let grantType = try read(form.text(Self.grantType))
        switch grantType {
        case nil, "authorization_code": return try await exchangeCode(form, request)
        case "refresh_token": return try await endpoints.refresh(request)
        default:
            let detail = "`grant_type` must be `authorization_code` or `refresh_token`."
            throw .malformed(.signInBadGrantType, [BodyError(Self.grantType, .invalid, detail: detail)])
        }
    }

    /// Exchanges a code, which is used up, whatever the outcome.
    private func exchangeCode(_ form: SignInForm, _ request: LocalRequest) async throws(Failure) -> LocalResponse {
        let client = try SessionClient(form, request)
        let (code, verifier) = (try read(form.requiredText("code")), try read(form.requiredText("code_verifier")))
        return try await endpoints.withBudget(endpoints.budgets.codes, request) { () async throws(Failure) in
            let (key, new): (String?, NewSession)
            do throws(Failure) {
                key = try await ClientKeys(endpoints: endpoints).newKey(of: request)
                new = try await AppCodes(endpoints.setup, for: request.owner).redeem(code, verifier: verifier)
            } catch {
                endpoints.audit.recordRejection(.login, error, request)
                throw error
            }
            let tokens = try await endpoints.creation.create(new, request) {
                evicting, mark throws(SessionError) in
                try await endpoints.setup.sessions.create(
                    subject: new.subject, provider: new.provider, identity: new.identity.bound(to: key), client: client,
                    evicting: evicting, mark: mark)
            }
            return SignInResponse.tokens(tokens, isNew: new.isNewAccount)
        }
    }
}
