internal import MartletBrowser
internal import MartletCore
internal import MartletPages
internal import MartletProvider
internal import MartletResponder

/// A request to one of the endpoints that browsers load.
struct BrowserCall: Sendable {
    let request: LocalRequest
    let setup: BrowserSetup
    /// The arguments of the query; none if it cannot be decoded.
    let query: SignInForm
    let choice: LanguageChoice
    /// Whether the response is shown to a person.
    let isNavigation: Bool
    let now: UnixTime
    private let found: BrowserCookies

    init(_ request: LocalRequest, _ setup: BrowserSetup, now: UnixTime) {
        self.request = request
        self.now = now
        self.setup = setup
        query = (try? SignInBody.form(Array(request.query.utf8))) ?? SignInForm(texts: [:], others: [:], isForm: true)
        let languages = request.values(of: "accept-language")
        choice = LanguageChoice(
            parameter: try? query.text("lang"),
            acceptLanguage: languages.isEmpty ? nil : languages.joined(separator: ","), standard: setup.site.language)
        isNavigation = NavigationRule.isNavigation(request)
        found = BrowserCookies(request, setup.cookies)
    }

    /// The `Set-Cookie` values that delete the cookies that cannot be used.
    var deletions: [String] { found.unusable.map(setup.cookies.deletion(of:)) }

    /// Whether the user is to authenticate again, for a change that needs it.
    var isConfirmation: Bool { (try? query.text("confirm")) == "true" }

    /// The kind of browser, as it says itself.
    var browser: BrowserKind { BrowserKind(userAgent: request.field("User-Agent")) }

    /// The form in the body, as pages of this site send it; without a body an empty one.
    ///
    /// The token in it is not the only protection: a request that another site caused is rejected, too.
    /// - Throws: 403 `cross_site`, 415 for anything but a form of a page, 400, 413.
    func form() throws(Failure) -> SignInForm {
        if request.field("Sec-Fetch-Site") != nil || request.field("Origin") != nil { try setup.checkSite(of: request) }
        guard request.bodyBytes > 0 else { return SignInForm(texts: [:], others: [:], isForm: true) }
        return try SignInBody.pageForm(of: request)
    }

    /// - Throws: 400 for a cookie that is repeated, malformed or too long, unless this is a navigation.
    func cookies() throws(Failure) -> BrowserCookies { try found.checked(isNavigation) }

    /// Where the browser goes afterwards.
    func target(_ form: SignInForm) -> ReturnTarget { setup.returns.target(of: try? form.text("return_to")) }

    /// What a page depends on.
    /// - Parameter path: where the language switch leads to; `nil` for pages that cannot be loaded again.
    func context(path: String?, returnTo target: ReturnTarget) -> PageContext {
        PageContext(site: setup.site, choice: choice, path: path, returnTo: target == .home ? nil : target.text)
    }

    /// The paths of the endpoints.
    func path(_ name: String) -> String { "\(setup.base)/\(name)" }
}

extension NavigationRule {
    /// Whether the response to a request to one of the endpoints is shown to a person.
    static func isNavigation(_ request: LocalRequest) -> Bool {
        isNavigation(method: request.method == "HEAD" ? "GET" : request.method, fields: request.fields, isForm: true)
    }
}
