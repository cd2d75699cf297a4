internal import MartletResponder

/// What the redirect URI gets, by the browser.
struct AuthorizationResponse {
    let redirectURI: String
    let mode: AuthorizationRequest.ResponseMode
    let parameters: [(name: String, value: String)]

    /// The page or the redirection that carries it.
    var response: LocalResponse {
        switch mode {
        case .formPost: AuthorizationPage.posting(parameters, to: redirectURI)
        case .query: redirection(redirectURI.contains("?") ? "&" : "?")
        case .fragment: redirection("#")
        }
    }

    private func redirection(_ separator: String) -> LocalResponse {
        BrowserPage.redirection(to: BrowserPage.url(redirectURI, separator, parameters))
    }
}
