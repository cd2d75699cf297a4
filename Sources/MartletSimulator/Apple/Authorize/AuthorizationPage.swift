internal import MartletResponder

/// The pages of `/auth/authorize`.
enum AuthorizationPage {
    /// The page on which the user continues or cancels.
    static func asking(_ request: AuthorizationRequest) -> LocalResponse {
        let hidden = request.parameters.map { BrowserPage.hiddenField($0.name, $0.value) }.joined()
        let name =
            request.wantsName
            ? BrowserPage.field("First name", PageChoice.firstName, "Ada")
                + BrowserPage.field("Last name", PageChoice.lastName, "Lovelace")
            : ""
        let email =
            request.wantsEmail
            ? BrowserPage.field("E-mail", PageChoice.email, "ada@example.com")
                + BrowserPage.checkbox("Hide my e-mail", PageChoice.hidesEmail)
            : ""
        let account = BrowserPage.field("Apple Account", PageChoice.account, TokenRequest.standardSubject)
        return BrowserPage.page(
            200, "Sign in with the simulated Apple",
            """
            <p>Signing in to <b>\(BrowserPage.escaped(request.clientID))</b>.</p>\
            <form method="post" action="/auth/authorize">\(hidden)\(account)\(name)\(email)\
            \(BrowserPage.button("Continue", PageChoice.action, "continue"))\
            \(BrowserPage.button("Cancel", PageChoice.action, "cancel"))</form>
            """)
    }

    /// The page that posts itself to the redirect URI.
    static func posting(_ parameters: [(name: String, value: String)], to redirectURI: String) -> LocalResponse {
        let hidden = parameters.map { BrowserPage.hiddenField($0.name, $0.value) }.joined()
        return BrowserPage.page(
            200, "Signing in",
            """
            <form method="post" action="\(BrowserPage.escaped(redirectURI))">\(hidden)\
            <noscript><button>Continue</button></noscript>\
            </form><script>document.forms[0].submit()</script>
            """)
    }

    /// The page of an error, which the redirect URI does not get.
    static func failing(_ error: AppleAPIError) -> LocalResponse {
        BrowserPage.page(
            error.status, BrowserPage.escaped(error.code),
            "<p>\(BrowserPage.escaped(error.text ?? "The request is invalid."))</p>")
    }
}

/// What the user has chosen on the page.
struct PageChoice {
    static let account = "page_account"
    static let firstName = "page_first_name"
    static let lastName = "page_last_name"
    static let email = "page_email"
    static let hidesEmail = "page_hides_email"
    static let action = "page_action"

    static let names = [account, firstName, lastName, email, hidesEmail, action]
    private static let maximumBytes = 255

    let subject: String
    let firstName: String
    let lastName: String
    /// `nil` for a relay address.
    let email: String?
    let isCancelled: Bool

    init(_ form: AppleForm) throws(AppleAPIError) {
        for name in Self.names where (form[name]?.utf8.count ?? 0) > Self.maximumBytes {
            throw .invalidRequest("\(name) is too long.")
        }
        switch form[Self.action] {
        case "continue": isCancelled = false
        case "cancel": isCancelled = true
        default: throw .invalidRequest("\(Self.action) is not supported.")
        }
        subject = isCancelled ? "" : try form.required(Self.account)
        firstName = form[Self.firstName] ?? ""
        lastName = form[Self.lastName] ?? ""
        email = form[Self.hidesEmail] == nil ? form[Self.email] : nil
    }
}
