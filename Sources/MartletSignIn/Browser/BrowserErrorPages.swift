internal import MartletAccounts
internal import MartletBrowser
internal import MartletCore
internal import MartletJSON
internal import MartletPages
internal import MartletProvider
package import MartletResponder
internal import MartletSession

/// The pages for errors of navigations on routes, and for paths that have no route.
package struct BrowserErrorPages: Sendable {
    /// What pages say; the time is inserted when they are sent.
    private static let messages: [MessagePage.Message] = [
        .crossSite, .notAllowed, .notFound, .invalid, .throttled(seconds: 1), .unavailable(seconds: 1), .internalError,
    ]
    /// Where signing in may help.
    private static let linked: [MessagePage.Message] = [.notAllowed, .notFound, .invalid]

    private static func message(for failure: Failure) -> MessagePage.Message? {
        switch failure.status {
        // Its challenge is for programs.
        case ..<400, 401: nil
        case 403: failure.reason == "auth.cross_site" ? .crossSite : .notAllowed
        case 404, 410: .notFound
        case 429: .throttled(seconds: 1)
        case 503 where failure.retryAfter > 0: .unavailable(seconds: 1)
        case 500...: .internalError
        default: .invalid
        }
    }

    private let endpoints: SignInEndpoints
    private let setup: BrowserSetup
    /// By message and language.
    private let prepared: [[PreparedMessage]]

    /// `nil` without `browser:`.
    package init?(_ endpoints: SignInEndpoints) {
        guard let setup = endpoints.setup.browser else { return nil }
        self.endpoints = endpoints
        self.setup = setup
        prepared = Self.messages.map { message in
            let signIn = Self.linked.contains(message) ? "\(setup.base)/sign-in" : nil
            return PageLanguage.allCases.map { PreparedMessage(message, of: setup.site, in: $0, signIn: signIn) }
        }
    }

    /// The index of the language of a page.
    package func language(_ acceptLanguage: String?) -> UInt8 {
        let choice = LanguageChoice(parameter: nil, acceptLanguage: acceptLanguage, standard: setup.site.language)
        return UInt8(clamping: PageLanguage.allCases.firstIndex(of: choice.language) ?? 0)
    }

    /// The page for a failure; `nil` for one that stays a document.
    package func page(for failure: Failure, in language: UInt8, requestID: String) -> ErrorPage? {
        guard let message = Self.message(for: failure), let row = Self.messages.firstIndex(of: message),
            prepared[row].indices.contains(Int(language))
        else { return nil }
        let page = prepared[row][Int(language)].render(requestID: requestID, seconds: failure.wait)
        return ErrorPage(fields: page.fields, body: page.bytes)
    }

    /// The page for a user who is signed in and may not see what they asked for: it says who they are, and how to sign in
    /// with another account, or again.
    package func denial(of request: LocalRequest, because failure: Failure) async -> LocalResponse {
        let call = BrowserCall(request, setup, now: endpoints.setup.clock.unixTime)
        let isConfirmation = failure.status == 401
        var account: MessagePage.Account?
        if !isConfirmation {
            // The page is of use without the name, too.
            let cookie = try? call.cookies().session
            let session = try? await BrowserSessions(endpoints: endpoints, call: call).current(cookie)
            account = MessagePage.Account(
                name: session?.principal.identity.displayName,
                signOut: PageURL.local(call.path("sign-out"), [("return_to", call.path("signed-out"))]))
        }
        let page = MessagePage(
            isConfirmation ? .confirmation : .notAllowed, requestID: request.requestID,
            signIn: PageURL.local(call.path("sign-in"), [("confirm", "true")]), account: account)
        var response = BrowserResponse.page(page, status: failure.status)
        response.target = setup.returns.target(of: request.path + (request.query.isEmpty ? "" : "?\(request.query)"))
        response.challenge = failure.challengeText
        return response.rendered(for: call)
    }
}

extension Identity {
    /// The name or the address that the user is known by.
    var displayName: String? {
        ["name", "preferred_username", "email"].lazy.compactMap { claims[$0]?.string }.first { !$0.isEmpty }
    }
}
