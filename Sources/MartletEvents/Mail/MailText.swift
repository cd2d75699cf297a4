internal import MartletCore

/// The subject and the text of a mail, in English or Simplified Chinese.
package struct MailText: Sendable, Equatable {
    package let subject: String
    /// Lines that end in a newline.
    package let body: String

    private enum Language { case english, chinese }

    /// Writes the text of a mail; nothing of it is chosen by the one who requested it.
    package init(_ request: MailRequest) {
        let locale = request.locale.flatMap(LanguageTag.init)
        let language: Language = locale?.language == "zh" ? .chinese : .english
        let texts = Self.texts(of: request.template, in: language)
        subject = texts.subject
        let token = (request.link ?? request.token).map { "\($0)\n\n" } ?? ""
        let removed = request.removed.isEmpty ? "" : request.removed.map { "* \($0)\n" }.joined() + "\n"
        let warning = request.isFirstProof ? "\(Self.firstProof(language))\n\n" : ""
        body = "\(texts.before)\n\n\(removed)\(token)\(warning)\(texts.after)\n"
    }

    private static func firstProof(_ language: Language) -> String {
        switch language {
        case .english:
            "This email address was never confirmed before. With the new password, everything that\nwas added to the "
                + "account before is removed: other ways to sign in, API keys, sessions."
        case .chinese: "此邮箱地址尚未经过确认。设置新密码后，此前添加到该账号的一切都会被移除：其他登录方式、API 密钥和会话。"
        }
    }

    private static func texts(
        of template: MailTemplate, in language: Language
    ) -> (subject: String, before: String, after: String) {
        switch (template, language) {
        case (.register, .english):
            (
                "Confirm your email address", "To finish your registration, confirm this email address:",
                "This is valid once, for 30 minutes. If you did not register, ignore this mail:\nwithout the "
                    + "confirmation there is no account."
            )
        case (.register, .chinese):
            ("确认您的邮箱地址", "要完成注册，请确认此邮箱地址：", "仅可使用一次，30 分钟内有效。如果您没有注册，请忽略此邮件：\n未经确认不会创建账号。")
        case (.alreadyRegistered, .english):
            (
                "You are already registered",
                "There was an attempt, probably by you, to register with this email address,\nwhich has an account already.",
                "If you have forgotten your password, ask for a new one where you sign in.\nIf it was not you, ignore "
                    + "this mail: nothing has changed."
            )
        case (.alreadyRegistered, .chinese):
            ("您已经注册", "有人（可能是您本人）尝试用此邮箱地址注册，但该地址已有账号。", "如果忘记了密码，请在登录页面重设密码。\n如果不是您本人操作，请忽略此邮件：账号没有任何变化。")
        case (.passwordReset, .english):
            (
                "Choose a new password", "To choose a new password for your account:",
                "This is valid once, for 30 minutes. If you did not ask for it, ignore this\nmail: your password has "
                    + "not changed."
            )
        case (.accountReclaimed, .english):
            (
                "Your account is yours alone",
                "You have confirmed your email address. It was never confirmed before, so everything that\nwas added to "
                    + "your account until then was removed:",
                "All sessions have ended. If something in this list is yours, add it again after you\nhave signed in."
            )
        case (.accountReclaimed, .chinese):
            ("您的账号现在只属于您", "您已确认邮箱地址。此前无人确认过该地址，因此在此之前添加到您账号的内容均已移除：", "所有会话均已结束。如果其中有您自己添加的内容，请在登录后重新添加。")
        case (.passwordReset, .chinese):
            ("重设密码", "要为您的账号设置新密码：", "仅可使用一次，30 分钟内有效。如果不是您本人的请求，请忽略此邮件：\n您的密码没有改变。")
        }
    }
}
