internal import MartletCore

/// The page on which users sign in: a button for each provider, and the form for passwords where there is one.
package struct SignInPage: Page {
    /// In the order in which they are shown.
    package var providers: [ProviderButton]
    package var password: PasswordForm?
    package var notice: SignInNotice?
    /// Shown with the notice.
    package var requestID: String?
    /// The path of the page that creates accounts; `nil` where none may be created.
    package var registration: String?
    /// Where the page that the user wanted redirects to is not known.
    package let formOrigins: [String]? = nil

    package init(
        providers: [ProviderButton], password: PasswordForm?, notice: SignInNotice? = nil, requestID: String? = nil,
        registration: String? = nil
    ) {
        self.providers = providers
        self.password = password
        self.notice = notice
        self.requestID = requestID
        self.registration = registration
    }

    /// The form for a name and a password.
    package struct PasswordForm: Sendable {
        /// The path that it posts to: `username`, `password`, `return_to` and `csrf`.
        package let action: String
        package let csrf: String
        /// What the user typed before, to be shown again.
        package let username: String?
        /// The path of the page for a forgotten password; `nil` without one.
        package let forgot: String?

        package init(action: String, csrf: String, username: String? = nil, forgot: String? = nil) {
            self.action = action
            self.csrf = csrf
            self.username = username
            self.forgot = forgot
        }
    }

    /// The heading.
    package func title(in context: PageContext) -> String {
        context.words(.signInTitle, ["site": context.site.title])
    }

    /// The elements inside `main`.
    package func content(in context: PageContext) -> HTML {
        let parts = PageComponents(context)
        let message = notice.map { parts.notice($0.text(context.words), $0.kind, requestID: requestID) }
        let content = [
            parts.heading(title(in: context)), message, buttons(context), divider(context), form(context, parts),
            empty(context), aside(context),
        ]
        return .joined(content.compactMap(\.self), separator: "\n")
    }

    private func buttons(_ context: PageContext) -> HTML? {
        guard !providers.isEmpty else { return nil }
        let links = providers.map { provider -> HTML in
            """
            <a class="button \(provider.kind.style)" href="\(context.localized(provider.url))">\(provider.kind.icon)\
            <span>\(provider.kind.label(context.words))</span></a>
            """
        }
        return "<div class=\"providers\">\n\(HTML.joined(links, separator: "\n"))\n</div>"
    }

    private func divider(_ context: PageContext) -> HTML? {
        guard !providers.isEmpty, password != nil else { return nil }
        return "<p class=\"or\"><span>\(context.words(.or))</span></p>"
    }

    private func form(_ context: PageContext, _ parts: PageComponents) -> HTML? {
        guard let password else { return nil }
        let isWrong = notice == .wrongPassword
        let username = FormField(
            id: "username", name: "username", label: context.words(.username), autocomplete: "username",
            value: password.username, isDescribedByNotice: isWrong)
        let secret = FormField(
            id: "password", name: "password", label: context.words(.password), autocomplete: "current-password",
            isDescribedByNotice: isWrong, isInvalid: isWrong)
        return parts.form(
            password.action, csrf: password.csrf, hidden: [("return_to", context.returnTo)],
            """
            \(parts.field(username))
            \(parts.field(secret))
            <button class="button primary" type="submit">\(context.words(.signIn))</button>
            \(forgotten(password, context))
            """)
    }

    private func forgotten(_ password: PasswordForm, _ context: PageContext) -> HTML {
        guard let path = password.forgot else { return .empty }
        let url = PageURL.local(context.localized(path), [("return_to", context.returnTo)])
        return "<p class=\"aside\"><a href=\"\(url)\">\(context.words(.forgotLink))</a></p>"
    }

    private func empty(_ context: PageContext) -> HTML? {
        providers.isEmpty && password == nil ? "<p class=\"dim\">\(context.words(.noMethod))</p>" : nil
    }

    private func aside(_ context: PageContext) -> HTML? {
        guard let registration else { return nil }
        let question = context.words(.registerQuestion, ["site": context.site.title])
        let url = PageURL.local(context.localized(registration), [("return_to", context.returnTo)])
        return "<p class=\"aside\">\(question) <a href=\"\(url)\">\(context.words(.registerLink))</a></p>"
    }
}

/// A provider that users are redirected to.
package struct ProviderButton: Sendable, Equatable {
    /// How a provider's button looks.
    package enum Kind: Sendable, Equatable {
        case apple
        case weChat
        /// A name and a password, in lists of the account's identities.
        case password
        /// - Parameters:
        ///   - label: the name of the provider.
        ///   - icon: the path of its image.
        case other(label: String, icon: String? = nil)
    }

    /// The name in the configuration.
    package let name: String
    package let kind: Kind
    /// The path that the sign-in begins at, with `return_to`.
    package let url: String

    package init(name: String, kind: Kind, url: String) {
        self.name = name
        self.kind = kind
        self.url = url
    }
}

extension ProviderButton.Kind {
    /// The name of the provider for users.
    func displayName(_ words: Words) -> String {
        switch self {
        case .apple: words(.nameApple)
        case .weChat: words(.nameWeChat)
        case .password: words(.password)
        case .other(let label, _): label
        }
    }

    func label(_ words: Words) -> String {
        switch self {
        case .apple: words(.signInWithApple)
        case .weChat: words(.signInWithWeChat)
        case .password: words(.signInWith, ["provider": words(.password)])
        case .other(let label, _): words(.signInWith, ["provider": label])
        }
    }

    var style: String {
        switch self {
        case .apple: "apple"
        case .weChat: "wechat"
        case .password, .other: "plain"
        }
    }

    var icon: HTML {
        switch self {
        case .apple: PageIcons.apple
        case .weChat: PageIcons.weChat
        case .other(_, let icon?) where PageURL.isAllowed(icon):
            "<img src=\"\(icon)\" alt=\"\" width=\"20\" height=\"20\">"
        case .password, .other: .empty
        }
    }
}

/// What the page for signing in says above its forms.
package enum SignInNotice: Sendable, Equatable {
    case wrongPassword
    /// - Parameter seconds: until the next attempt.
    case throttled(seconds: Int64)
    case cookiesNeeded
    /// The user left the provider's page.
    case cancelled(ProviderButton.Kind)
    case formExpired
    case failed
    case notAllowed
    /// - Parameter seconds: until the next attempt.
    case unavailable(seconds: Int64)
    case sessionEnded
    /// What the user wants to do needs a recent sign-in.
    case confirmIdentity
    case accountDeleted
    /// The address is proved, and the password is set.
    case registered, passwordReset

    func text(_ words: Words) -> String {
        switch self {
        case .wrongPassword: words(.wrongPassword)
        case .throttled(let seconds): words(.throttled, ["wait": words.wait(seconds: seconds)])
        case .cookiesNeeded: words(.cookiesNeeded)
        case .cancelled(let provider): words(.cancelled, ["provider": provider.displayName(words)])
        case .formExpired: words(.formExpired)
        case .failed: words(.signInFailed)
        case .notAllowed: words(.notAllowed)
        case .unavailable(let seconds): words(.unavailable, ["wait": words.wait(seconds: seconds)])
        case .sessionEnded: words(.sessionEnded)
        case .confirmIdentity: words(.confirmIdentity)
        case .accountDeleted: words(.accountDeleted)
        case .registered: words(.registeredNotice)
        case .passwordReset: words(.passwordResetNotice)
        }
    }

    var kind: NoticeKind {
        switch self {
        case .cancelled, .sessionEnded, .confirmIdentity: .note
        case .accountDeleted, .registered, .passwordReset: .success
        default: .error
        }
    }
}
