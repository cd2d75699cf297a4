internal import MartletConfig
internal import MartletCore
internal import MartletProvider

/// Builds the URLs of WeChat's pages, which contain no secret.
struct WeChatPages: Sendable {
    private let base: String

    init(_ base: URLText) { self.base = base.text.hasSuffix("/") ? String(base.text.dropLast()) : base.text }

    /// The page on which a user consents.
    ///
    /// WeChat matches such URLs by a pattern: the parameters must be in this order, and the fragment at the end.
    func authorization(
        of app: WeChatConfiguration.NamedApp, scope: String, _ attempt: RedirectAttempt, language: LanguageTag?
    ) -> String {
        let isWebsite = app.variant == .website
        var parameters = [
            (name: "appid", value: app.id), (name: "redirect_uri", value: attempt.redirectURI),
            (name: "response_type", value: "code"), (name: "scope", value: scope),
            (name: "state", value: attempt.state),
        ]
        // Chinese is the default.
        if isWebsite, let language, language.language != "zh" { parameters.append((name: "lang", value: "en")) }
        let path = isWebsite ? "/connect/qrconnect" : "/connect/oauth2/authorize"
        return AuthorizationURL.make(base + path, parameters) + "#wechat_redirect"
    }
}
