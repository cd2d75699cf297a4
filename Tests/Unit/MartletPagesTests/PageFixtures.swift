import MartletCore
import Testing

@testable import MartletPages

/// A page that tests render, with a name for its files.
struct PageCase: CustomTestStringConvertible {
    let name: String
    let page: any Page
    var site = PageFixture.site
    var returnTo: String? = "/orders?page=2&sort=date"

    var testDescription: String { name }

    func context(_ language: PageLanguage, isExplicit: Bool = false) -> PageContext {
        PageContext(
            site: site, choice: LanguageChoice(language, isExplicit: isExplicit), path: "/auth/sign-in",
            returnTo: returnTo)
    }

    func text(_ language: PageLanguage = .english, isExplicit: Bool = false) -> String {
        String(decoding: page.render(in: context(language, isExplicit: isExplicit)).bytes, as: UTF8.self)
    }
}

enum PageFixture {
    static let site = PageSite(
        title: "Example", logo: "/auth/logo",
        links: [
            PageLink(
                texts: [.english: "Privacy", .simplifiedChinese: "隐私", .traditionalChinese: "隱私權"], url: "/privacy"),
            PageLink(texts: [.english: "Terms", .simplifiedChinese: "条款"], url: "https://example.com/terms"),
            PageLink(texts: [.english: "Help"], url: "/help"),
        ])
    static let now = UnixTime(seconds: 1_795_426_201)
    static let requestID = "01JD9Y3K7M2Q8X"

    static func start(_ name: String) -> String { "/auth/start/\(name)?return_to=/orders%3Fpage%3D2" }
    static let apple = ProviderButton(name: "apple", kind: .apple, url: start("apple"))
    static let weChat = ProviderButton(name: "wechat", kind: .weChat, url: start("wechat"))
    static let other = ProviderButton(name: "google", kind: .other(label: "Google"), url: start("google"))
    static let form = SignInPage.PasswordForm(action: "/auth/sign-in", csrf: "c5rf")

    static func signIn(
        _ notice: SignInNotice? = nil, providers: [ProviderButton] = [apple, weChat],
        form: SignInPage.PasswordForm? = form,
        requestID: String? = nil
    ) -> SignInPage {
        SignInPage(
            providers: providers, password: form, notice: notice, requestID: requestID, registration: "/auth/register")
    }

    static func register(_ error: FormError? = nil) -> RegisterPage {
        RegisterPage(
            action: "/auth/register", csrf: "c5rf", minimumLength: 8, signIn: "/auth/sign-in",
            username: error == nil ? nil : "alice", error: error)
    }

    static func registerByMail(_ error: FormError? = nil) -> RegisterPage {
        var page = register(error)
        page.byMail = RegisterPage.ByMail(asksName: true, name: error == nil ? nil : "Ada")
        return page
    }

    static func link(_ purpose: LinkPage.Purpose, _ error: FormError? = nil) -> LinkPage {
        LinkPage(
            purpose, action: "/auth/link", csrf: "c5rf", minimumLength: 8, signIn: "/auth/sign-in",
            address: error == nil ? nil : "ada@example.com", error: error, requestID: error == .failed ? requestID : nil
        )
    }

    static func account(
        name: String? = "Ada Lovelace", label: String = "Google", notice: AccountNotice? = nil,
        password: FormError? = nil, isFresh: Bool = true, isUnconfirmed: Bool = false, grace: Int64 = 0
    ) -> AccountPage {
        func ago(_ seconds: Int64) -> UnixTime { now.advanced(bySeconds: -seconds) }
        return AccountPage(
            name: name,
            identities: [
                .init(
                    provider: .apple, name: "a8f2@privaterelay.appleid.com", linkedAt: ago(9_000_000),
                    lastUsedAt: ago(240),
                    unlink: "/auth/account/unlink/apple"),
                .init(
                    provider: .weChat, name: name, linkedAt: ago(900_000), lastUsedAt: ago(500_000), isRevoked: true,
                    unlink: "/auth/account/unlink/wechat"),
            ].suffix(isFresh ? 2 : 1),
            linkable: [.init(provider: .other(label: label), action: "/auth/account/link/google")],
            sessions: [
                .init(
                    deviceName: nil, userAgent: "Mozilla/5.0 (Macintosh) Version/19.0 Safari/605",
                    location: "203.0.113.7",
                    provider: .apple, signedInAt: ago(400_000), lastUsedAt: ago(2), isCurrent: true,
                    end: "/auth/account/sessions/1/end"),
                .init(
                    deviceName: name.map { "\($0) iPhone" }, userAgent: nil, location: "198.51.100.23",
                    provider: .weChat,
                    signedInAt: ago(2_000_000), lastUsedAt: ago(7300), isCurrent: false,
                    end: "/auth/account/sessions/2/end"),
                .init(
                    deviceName: nil, userAgent: nil, location: nil, provider: nil, signedInAt: ago(8_000_000),
                    lastUsedAt: ago(3_000_000), isCurrent: false, end: "/auth/account/sessions/3/end"),
            ],
            password: .init(action: "/auth/account/password", username: "ada", minimumLength: 8, error: password),
            deletion: .init(
                action: "/auth/account/delete", signIn: isFresh ? nil : "/auth/sign-in", grace: grace,
                isUnconfirmed: isUnconfirmed),
            csrf: "c5rf", signOut: "/auth/sign-out", notice: notice, now: now)
    }

    static let notices: [(String, SignInNotice)] = [
        ("wrong-password", .wrongPassword), ("throttled", .throttled(seconds: 280)), ("cookies", .cookiesNeeded),
        ("cancelled", .cancelled(.apple)), ("form-expired", .formExpired), ("failed", .failed),
        ("not-allowed", .notAllowed),
        ("unavailable", .unavailable(seconds: 5)), ("session-ended", .sessionEnded), ("confirm", .confirmIdentity),
        ("deleted", .accountDeleted), ("registered", .registered), ("reset", .passwordReset),
    ]
    static let messages: [(String, MessagePage.Message)] = [
        ("failed", .signInFailed), ("cross-site", .crossSite), ("not-allowed", .notAllowed), ("not-found", .notFound),
        ("invalid", .invalid), ("throttled", .throttled(seconds: 61)), ("unavailable", .unavailable(seconds: 5)),
        ("internal", .internalError), ("cookies", .cookiesNeeded), ("form-expired", .formExpired),
        ("mail-sent", .mailSent),
    ]
    static let linkErrors: [(String, FormError)] = [
        ("address", .addressInvalid), ("short", .passwordTooShort(minimum: 8)), ("long", .passwordTooLong),
        ("weak", .passwordTooWeak), ("link", .linkInvalid), ("throttled", .throttled(seconds: 60)),
        ("unavailable", .unavailable(seconds: 5)), ("form-expired", .formExpired), ("cookies", .cookiesNeeded),
        ("failed", .failed),
    ]
    static let registrationErrors: [(String, FormError)] = [
        ("taken", .usernameTaken), ("invalid", .usernameInvalid), ("short", .passwordTooShort(minimum: 8)),
        ("long", .passwordTooLong), ("weak", .passwordTooWeak), ("throttled", .throttled(seconds: 60)),
        ("unavailable", .unavailable(seconds: 5)), ("form-expired", .formExpired), ("cookies", .cookiesNeeded),
        ("failed", .failed), ("address", .addressInvalid), ("as-name", .addressAsName),
    ]
    static let accountNotices: [(String, AccountNotice)] = [
        ("linked", .linked(.weChat)), ("unlinked", .unlinked(.apple)), ("link-cancelled", .linkCancelled(.weChat)),
        ("taken", .identityTaken(.apple)), ("already", .alreadyLinked(.apple)), ("last", .lastIdentity),
        ("session-ended", .sessionEnded), ("password-changed", .passwordChanged), ("form-expired", .formExpired),
        ("failed", .failed), ("unavailable", .unavailable(seconds: 5)),
    ]
    static let passwordErrors: [(String, FormError)] = [
        ("wrong", .wrongCurrentPassword), ("short", .passwordTooShort(minimum: 8)),
        ("long", .passwordTooLong), ("weak", .passwordTooWeak), ("throttled", .throttled(seconds: 300)),
    ]

    /// Every page in every state.
    static let cases: [PageCase] =
        [
            PageCase(name: "sign-in", page: signIn()),
            PageCase(name: "sign-in-three", page: signIn(providers: [apple, weChat, other])),
            PageCase(name: "sign-in-providers", page: signIn(form: nil)),
            PageCase(
                name: "sign-in-password", page: signIn(providers: []),
                site: PageSite(title: "Example", accent: RGBColor(0x00AA77))),
            PageCase(name: "register-by-mail", page: registerByMail()),
            PageCase(name: "register-by-mail-name", page: registerByMail(.nameInvalid)),
            PageCase(name: "forgot", page: link(.forgot)),
            PageCase(name: "forgot-address", page: link(.forgot, .addressInvalid)),
            PageCase(name: "verify", page: link(.verify(token: "mlt_x"))),
            PageCase(name: "reset", page: link(.reset(token: "mlt_x"))),
            PageCase(name: "sign-in-none", page: SignInPage(providers: [], password: nil)),
            PageCase(
                name: "sign-in-long",
                page: signIn(
                    .cancelled(.other(label: long)),
                    providers: [.init(name: "x", kind: .other(label: long), url: "/auth/start/x")],
                    form: .init(action: "/auth/sign-in", csrf: "c", username: long)),
                site: PageSite(
                    title: long, logo: "/auth/logo", accent: RGBColor(0xFFEE00),
                    links: [PageLink(texts: [.simplifiedChinese: long], url: "/privacy")], language: .simplifiedChinese)
            ),
            PageCase(name: "register", page: register()),
            PageCase(name: "signed-out", page: SignedOutPage(isEverywhere: false, signIn: "/auth/sign-in")),
            PageCase(name: "signed-out-everywhere", page: SignedOutPage(isEverywhere: true, signIn: "/auth/sign-in")),
            PageCase(name: "account", page: account()),
            PageCase(name: "account-stale", page: account(name: nil, isFresh: false)),
            PageCase(name: "account-unconfirmed", page: account(isUnconfirmed: true, grace: 2_592_000)),
            PageCase(name: "account-long", page: account(name: long, label: long)),
        ]
        + notices.map { name, notice in
            PageCase(name: "sign-in-\(name)", page: signIn(notice, requestID: notice == .failed ? requestID : nil))
        }
        + registrationErrors.map { PageCase(name: "register-\($0)", page: register($1)) }
        + linkErrors.map { PageCase(name: "link-\($0)", page: link(.reset(token: "mlt_x"), $1)) }
        + messages.map { name, message in
            PageCase(name: "message-\(name)", page: MessagePage(message, requestID: requestID, signIn: "/auth/sign-in"))
        }
        + accountNotices.map { PageCase(name: "account-\($0)", page: account(notice: $1)) }
        + passwordErrors.map { PageCase(name: "account-password-\($0)", page: account(password: $1)) }

    static let long = "中华人民共和国北京市海淀区中关村软件园信息技术有限责任公司统一身份认证与单点登录服务平台"
}
