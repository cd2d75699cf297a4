/// A page that says what happened and what to do: for errors of navigations.
package struct MessagePage: Page {
    package var message: Message
    /// As in the log.
    package var requestID: String?
    /// The path of the page for signing in; `nil` shows no link.
    package var signIn: String?
    /// Who is signed in, and how to leave; `nil` for others.
    package var account: Account?
    /// In place of the time that the message says.
    var wait: String?

    /// Who may not see what they asked for.
    package struct Account: Sendable, Equatable {
        /// The name or the address that the user is known by.
        package let name: String?
        /// The path that signs out by a form.
        package let signOut: String

        package init(name: String?, signOut: String) {
            self.name = name
            self.signOut = signOut
        }
    }

    package init(_ message: Message, requestID: String?, signIn: String?, account: Account? = nil) {
        self.account = account
        self.message = message
        self.requestID = requestID
        self.signIn = signIn
    }

    /// What happened.
    package enum Message: Sendable, Equatable {
        /// The way back from a provider failed, without saying which check.
        case signInFailed
        /// The request came from another site.
        case crossSite
        case notAllowed, notFound, invalid
        /// - Parameter seconds: until the next attempt.
        case throttled(seconds: Int64)
        /// - Parameter seconds: until the next attempt.
        case unavailable(seconds: Int64)
        case internalError, cookiesNeeded, formExpired
        /// The user has to sign in again, because it was too long ago, or not as strongly as the page demands.
        case confirmation
        /// A mail was requested, whether or not the address gets one.
        case mailSent
    }

    /// The heading.
    package func title(in context: PageContext) -> String { context.words(message.title) }

    /// The elements inside `main`.
    package func content(in context: PageContext) -> HTML {
        let parts = PageComponents(context)
        let link = signIn.map { path -> HTML in
            let url = PageURL.local(context.localized(path), [("return_to", context.returnTo)])
            return "<p><a class=\"button primary\" href=\"\(url)\">\(context.words(linkText))</a></p>"
        }
        let text = message.text(context.words, site: context.site.title, wait: wait)
        let content: [HTML?] = [
            parts.heading(title(in: context)), signedIn(context), "<p class=\"lead\">\(text)</p>", link,
            account.map { account in
                parts.form(
                    account.signOut, csrf: nil,
                    "<button class=\"button plain\" type=\"submit\">\(context.words(.signOut))</button>")
            },
            parts.reference(requestID),
        ]
        return .joined(content.compactMap(\.self), separator: "\n")
    }

    private func signedIn(_ context: PageContext) -> HTML? {
        guard let name = account?.name else { return nil }
        return "<p class=\"dim\"><bdi>\(context.words(.signedInAs, ["name": name]))</bdi></p>"
    }

    private var linkText: WordKey {
        if account != nil { return .otherAccount }
        return message == .confirmation ? .signInAgain : .backToSignIn
    }
}

extension MessagePage.Message {
    var title: WordKey {
        switch self {
        case .signInFailed: .failedTitle
        case .crossSite: .crossSiteTitle
        case .notAllowed: .notAllowedTitle
        case .notFound: .notFoundTitle
        case .invalid: .invalidTitle
        case .throttled: .throttledTitle
        case .unavailable: .unavailableTitle
        case .internalError: .internalTitle
        case .cookiesNeeded: .cookiesTitle
        case .formExpired: .expiredTitle
        case .mailSent: .mailSentTitle
        case .confirmation: .confirmTitle
        }
    }

    /// - Parameter wait: in place of the time that the message says.
    func text(_ words: Words, site: String, wait: String? = nil) -> String {
        switch self {
        case .signInFailed: words(.failedText)
        case .crossSite: words(.crossSiteText, ["site": site])
        case .notAllowed: words(.notAllowedText)
        case .notFound: words(.notFoundText)
        case .invalid: words(.invalidText)
        case .throttled(let seconds): words(.throttledText, ["wait": wait ?? words.wait(seconds: seconds)])
        case .unavailable(let seconds): words(.unavailableText, ["wait": wait ?? words.wait(seconds: seconds)])
        case .internalError: words(.internalText)
        case .cookiesNeeded: words(.cookiesNeeded)
        case .formExpired: words(.expiredText)
        case .mailSent: words(.mailSentText)
        case .confirmation: words(.confirmIdentity)
        }
    }
}

/// The page after signing out.
package struct SignedOutPage: Page {
    /// Whether all sessions of the user ended.
    package var isEverywhere: Bool
    /// The path of the page for signing in.
    package var signIn: String

    package init(isEverywhere: Bool, signIn: String) {
        self.isEverywhere = isEverywhere
        self.signIn = signIn
    }

    /// The heading.
    package func title(in context: PageContext) -> String { context.words(.signedOutTitle) }

    /// The elements inside `main`.
    package func content(in context: PageContext) -> HTML {
        let url = PageURL.local(context.localized(signIn), [("return_to", context.returnTo)])
        return """
            \(PageComponents(context).heading(title(in: context)))
            <p class="lead">\(context.words(isEverywhere ? .signedOutEverywhere : .signedOutText))</p>
            <p><a class="button primary" href="\(url)">\(context.words(.signInAgain))</a></p>
            """
    }
}
