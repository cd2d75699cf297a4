internal import MartletConfig
internal import MartletCore
private import MartletProvider

/// Builds the URLs of calls to WeChat; they contain secrets and must not be logged.
struct WeChatEndpoints: Sendable {
    private let base: String

    init(_ base: URLText) { self.base = base.text.hasSuffix("/") ? String(base.text.dropLast()) : base.text }

    /// Exchanges a code: for a user's token, or for a mini-program's session.
    func exchange(_ code: String, of app: WeChatConfiguration.NamedApp) -> String {
        let isMiniProgram = app.variant == .miniProgram
        return AuthorizationURL.make(
            base + (isMiniProgram ? "/sns/jscode2session" : "/sns/oauth2/access_token"),
            [
                ("appid", app.id), ("secret", app.secret.text), (isMiniProgram ? "js_code" : "code", code),
                ("grant_type", "authorization_code"),
            ])
    }

    /// Fetches a user's profile.
    func profile(token: String, openID: String, language: WeChatConfiguration.Language) -> String {
        AuthorizationURL.make(
            base + "/sns/userinfo", [("access_token", token), ("openid", openID), ("lang", language.rawValue)])
    }

    /// Issues the token of a mini-program itself; its parameters are in the body.
    var accountToken: String { base + "/cgi-bin/stable_token" }

    /// Exchanges the code of a phone number.
    func phoneNumber(token: Secret) -> String {
        AuthorizationURL.make(base + "/wxa/business/getuserphonenumber", [("access_token", token.text)])
    }
}
