/// The pages of one-time links in mails: one asks for the mail, the others get the link and ask for the password.
package struct LinkPage: Page {
    /// What a page is for.
    package enum Purpose: Sendable, Equatable {
        /// Asks for a mail: `email`, `locale` and `csrf`.
        case forgot
        /// Sets another password: `token`, `new_password` and `csrf`.
        case reset(token: String)
        /// Proves the address of a new user: `token`, `password` and `csrf`.
        case verify(token: String)
    }

    package let purpose: Purpose
    /// The path that the form posts to.
    package let action: String
    package let csrf: String
    /// Of passwords, in code points.
    package let minimumLength: Int
    /// The path of the page for signing in.
    package let signIn: String
    /// What the user typed before, to be shown again.
    package let address: String?
    package let error: FormError?
    package let requestID: String?
    /// The sign-in page, which follows, may redirect to anywhere.
    package let formOrigins: [String]? = nil

    package init(
        _ purpose: Purpose, action: String, csrf: String, minimumLength: Int, signIn: String, address: String? = nil,
        error: FormError? = nil, requestID: String? = nil
    ) {
        self.purpose = purpose
        self.action = action
        self.csrf = csrf
        self.minimumLength = minimumLength
        self.signIn = signIn
        self.address = address
        self.error = error
        self.requestID = requestID
    }

    /// The heading.
    package func title(in context: PageContext) -> String {
        switch purpose {
        case .forgot, .reset: context.words(.resetTitle)
        case .verify: context.words(.verifyTitle)
        }
    }

    /// The elements inside `main`.
    package func content(in context: PageContext) -> HTML {
        let (words, parts) = (context.words, PageComponents(context))
        let text = error?.text(words)
        let message = error?.field == nil ? text.map { parts.notice($0, .error, requestID: requestID) } : nil
        let fieldError = error?.field == nil ? nil : text
        let (field, lead, button): (FormField, WordKey, WordKey)
        var hidden: [(String, String?)] = []
        switch purpose {
        case .forgot:
            hidden = [("locale", context.choice.language.rawValue)]
            field = FormField(
                id: "email", name: "email", label: words(.email), autocomplete: "email", value: address,
                error: fieldError)
            (lead, button) = (.forgotText, .forgotSend)
        case .reset(let token), .verify(let token):
            let isReset = purpose == .reset(token: token)
            hidden = [("token", token)]
            let name = isReset ? "new_password" : "password"
            field = FormField(
                id: name, name: name, label: words(isReset ? .newPassword : .password), autocomplete: "new-password",
                hint: words(.passwordHint, ["count": String(minimumLength)]), error: fieldError)
            (lead, button) = isReset ? (.resetText, .changePassword) : (.verifyText, .verifySend)
        }
        let form = parts.form(
            action, csrf: csrf, hidden: hidden,
            """
            \(parts.field(field))
            <button class="button primary" type="submit">\(words(button))</button>
            """)
        let aside: HTML = "<p class=\"aside\"><a href=\"\(context.localized(signIn))\">\(words(.backToSignIn))</a></p>"
        let content: [HTML?] = [
            parts.heading(title(in: context)), message, "<p class=\"lead\">\(words(lead))</p>", form, aside,
        ]
        return .joined(content.compactMap(\.self), separator: "\n")
    }
}
