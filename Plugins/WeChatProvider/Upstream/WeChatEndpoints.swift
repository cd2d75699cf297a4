internal import MartletConfig
internal import MartletCore

/// Builds the URLs of calls to WeChat; they contain secrets and must not be logged.
struct WeChatEndpoints: Sendable {
    private let base: String

    init(_ base: URLText) { self.base = base.text.hasSuffix("/") ? String(base.text.dropLast()) : base.text }

    /// Exchanges a code: for a user's token, or for a mini-program's session.
    func exchange(_ code: [UInt8], of app: WeChatConfiguration.NamedApp) -> String {
        let isMiniProgram = app.variant == .miniProgram
        let path = isMiniProgram ? "/sns/jscode2session" : "/sns/oauth2/access_token"
        return app.secret.withBytes { secret in
            url(
                path,
                [
                    ("appid", Array(app.id.utf8)), ("secret", secret), (isMiniProgram ? "js_code" : "code", code),
                    ("grant_type", Array("authorization_code".utf8)),
                ])
        }
    }

    /// Fetches a user's profile.
    func profile(token: String, openID: String, language: WeChatConfiguration.Language) -> String {
        url(
            "/sns/userinfo",
            [
                ("access_token", Array(token.utf8)), ("openid", Array(openID.utf8)),
                ("lang", Array(language.rawValue.utf8)),
            ])
    }

    /// Issues the token of a mini-program itself; its parameters are in the body.
    var accountToken: String { base + "/cgi-bin/stable_token" }

    /// Exchanges the code of a phone number.
    func phoneNumber(token: [UInt8]) -> String {
        url("/wxa/business/getuserphonenumber", [("access_token", token)])
    }

    private func url(_ path: String, _ parameters: [(name: String, value: [UInt8])]) -> String {
        var text = Array("\(base)\(path)".utf8)
        for (index, parameter) in parameters.enumerated() {
            text.append(UInt8(ascii: index == 0 ? "?" : "&"))
            text += Array(parameter.name.utf8)
            text.append(UInt8(ascii: "="))
            for byte in parameter.value { Self.append(byte, to: &text) }
        }
        return String(decoding: text, as: UTF8.self)
    }

    /// Percent-encodes everything but the unreserved characters of RFC 3986 §2.3, whatever was checked before.
    private static func append(_ byte: UInt8, to text: inout [UInt8]) {
        if isLetterOrDigit(byte) || "-._~".utf8.contains(byte) { return text.append(byte) }
        let digits = Array("0123456789ABCDEF".utf8)
        text += [UInt8(ascii: "%"), digits[Int(byte >> 4)], digits[Int(byte & 15)]]
    }
}
