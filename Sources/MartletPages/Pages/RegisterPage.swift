/// The page on which users create an account with a name and a password.
package struct RegisterPage: Page {
    /// The path that the form posts to: `username`, `password`, `return_to` and `csrf`.
    package var action: String
    package var csrf: String
    /// What the user typed before, to be shown again.
    package var username: String?
    package var error: RegistrationError?
    /// Of passwords, in code points.
    package var minimumLength: Int
    /// The path of the page for signing in.
    package var signIn: String
    package var requestID: String?
    package var formOrigins: [String]

    package init(
        action: String, csrf: String, minimumLength: Int, signIn: String, username: String? = nil,
        error: RegistrationError? = nil, requestID: String? = nil, formOrigins: [String] = []
    ) {
        self.action = action
        self.csrf = csrf
        self.minimumLength = minimumLength
        self.signIn = signIn
        self.username = username
        self.error = error
        self.requestID = requestID
        self.formOrigins = formOrigins
    }

    /// The heading.
    package func title(in context: PageContext) -> String {
        context.words(.registerTitle, ["site": context.site.title])
    }

    /// The elements inside `main`.
    package func content(in context: PageContext) -> HTML {
        let (words, parts) = (context.words, PageComponents(context))
        let text = error?.text(words)
        let name = FormField(
            id: "username", name: "username", label: words(.username), autocomplete: "username", value: username,
            error: error?.field == .username ? text : nil)
        let secret = FormField(
            id: "password", name: "password", label: words(.password), autocomplete: "new-password",
            hint: words(.passwordHint, ["count": String(minimumLength)]),
            error: error?.field == .password ? text : nil)
        let message = error?.field == nil ? text.map { parts.notice($0, .error, requestID: requestID) } : nil
        let form = parts.form(
            action, csrf: csrf, hidden: [("return_to", context.returnTo)],
            """
            \(parts.field(name))
            \(parts.field(secret))
            <button class="button primary" type="submit">\(words(.register))</button>
            """)
        let url = PageURL.local(context.localized(signIn), [("return_to", context.returnTo)])
        let aside: HTML =
            "<p class=\"aside\">\(words(.signInQuestion)) <a href=\"\(url)\">\(words(.signIn))</a></p>"
        return .joined(
            [parts.heading(title(in: context)), message, form, aside].compactMap(\.self), separator: "\n")
    }
}

/// Why an account was not created.
package enum RegistrationError: Sendable, Equatable {
    case usernameTaken, usernameInvalid
    case passwordTooShort(minimum: Int)
    case passwordTooLong, passwordTooWeak
    /// - Parameter seconds: until the next attempt.
    case throttled(seconds: Int64)
    /// - Parameter seconds: until the next attempt.
    case unavailable(seconds: Int64)
    case formExpired, cookiesNeeded, failed

    /// The fields that an error can be about.
    enum Field { case username, password }

    var field: Field? {
        switch self {
        case .usernameTaken, .usernameInvalid: .username
        case .passwordTooShort, .passwordTooLong, .passwordTooWeak: .password
        case .throttled, .unavailable, .formExpired, .cookiesNeeded, .failed: nil
        }
    }

    func text(_ words: Words) -> String {
        switch self {
        case .usernameTaken: words(.usernameTaken)
        case .usernameInvalid: words(.usernameInvalid)
        case .passwordTooShort(let minimum): words(.passwordTooShort, ["count": String(minimum)])
        case .passwordTooLong: words(.passwordTooLong)
        case .passwordTooWeak: words(.passwordTooWeak)
        case .throttled(let seconds): words(.throttled, ["wait": words.wait(seconds: seconds)])
        case .unavailable(let seconds): words(.unavailableText, ["wait": words.wait(seconds: seconds)])
        case .formExpired: words(.formExpired)
        case .cookiesNeeded: words(.cookiesNeeded)
        case .failed: words(.internalText)
        }
    }
}
