/// The page on which users create an account: with a name and a password, or with an address that a mail proves.
package struct RegisterPage: Page {
    /// The path that the form posts to: `username`, `password`, `return_to` and `csrf`; with an address `username`,
    /// `name` and `locale`.
    package var action: String
    package var csrf: String
    /// What the user typed before, to be shown again.
    package var username: String?
    package var error: FormError?
    /// Of passwords, in code points.
    package var minimumLength: Int
    /// The path of the page for signing in.
    package var signIn: String
    package var requestID: String?
    /// Where the page that the user wanted redirects to is not known.
    package let formOrigins: [String]? = nil
    /// What is asked for where a mail proves the address; `nil` where a name and a password are enough.
    package var byMail: ByMail?

    /// A registration whose password comes with the proof.
    package struct ByMail: Sendable, Equatable {
        /// Whether the user has to have a display name.
        package let asksName: Bool
        /// What the user typed before, to be shown again.
        package let name: String?

        package init(asksName: Bool, name: String? = nil) {
            self.asksName = asksName
            self.name = name
        }
    }

    package init(
        action: String, csrf: String, minimumLength: Int, signIn: String, username: String? = nil,
        error: FormError? = nil, requestID: String? = nil, byMail: ByMail? = nil
    ) {
        self.byMail = byMail
        self.action = action
        self.csrf = csrf
        self.minimumLength = minimumLength
        self.signIn = signIn
        self.username = username
        self.error = error
        self.requestID = requestID
    }

    /// The heading.
    package func title(in context: PageContext) -> String {
        context.words(.registerTitle, ["site": context.site.title])
    }

    /// The elements inside `main`.
    package func content(in context: PageContext) -> HTML {
        let (words, parts) = (context.words, PageComponents(context))
        let text = error?.text(words)
        let message = error?.field == nil ? text.map { parts.notice($0, .error, requestID: requestID) } : nil
        let form = parts.form(
            action, csrf: csrf,
            hidden: [
                ("return_to", context.returnTo), ("locale", byMail == nil ? nil : context.choice.language.rawValue),
            ],
            """
            \(HTML.joined(fields(words, text).map(parts.field), separator: "\n"))
            <button class="button primary" type="submit">\(words(.register))</button>
            """)
        let url = PageURL.local(context.localized(signIn), [("return_to", context.returnTo)])
        let aside: HTML =
            "<p class=\"aside\">\(words(.signInQuestion)) <a href=\"\(url)\">\(words(.signIn))</a></p>"
        return .joined([parts.heading(title(in: context)), message, form, aside].compactMap(\.self), separator: "\n")
    }
}

extension RegisterPage {
    private func fields(_ words: Words, _ text: String?) -> [FormField] {
        let name = FormField(
            id: "username", name: "username", label: words(byMail == nil ? .username : .email),
            autocomplete: byMail == nil ? "username" : "email", value: username,
            hint: byMail == nil ? nil : words(.registerMailHint), error: error?.field == .username ? text : nil)
        guard let byMail else {
            let secret = FormField(
                id: "password", name: "password", label: words(.password), autocomplete: "new-password",
                hint: words(.passwordHint, ["count": String(minimumLength)]),
                error: error?.field == .password ? text : nil)
            return [name, secret]
        }
        guard byMail.asksName else { return [name] }
        let displayName = FormField(
            id: "name", name: "name", label: words(.displayName), autocomplete: "name", value: byMail.name,
            error: error?.field == .name ? text : nil)
        return [name, displayName]
    }
}
