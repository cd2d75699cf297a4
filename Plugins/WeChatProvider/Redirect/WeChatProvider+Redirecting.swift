internal import MartletConfig
public import MartletCore
public import MartletProvider

extension WeChatProvider: Redirecting {
    /// By a page at `open_url`, if an application is configured for the kind of browser.
    public func redirectFlow(in browser: BrowserKind) -> RedirectFlow? {
        guard configuration.webApp(in: browser) != nil else { return nil }
        return RedirectFlow(responseMode: .query, origins: [configuration.openURL.value.origin])
    }

    /// The page with a QR code, or inside WeChat the one that asks for consent.
    public func authorizationURL(
        for attempt: RedirectAttempt, language: LanguageTag?, until deadline: MonotonicTime
    ) throws(AuthenticationError) -> String {
        guard let app = configuration.webApp(in: attempt.browser) else { throw .noRedirect }
        return WeChatPages(configuration.openURL.value).authorization(
            of: app, scope: configuration.webScope(of: app), attempt, language: language)
    }

    /// Exchanges the code that came back, once, with the application that the browser was sent to.
    public func complete(
        _ callback: RedirectCallback, in context: AuthenticationContext
    ) async throws(AuthenticationError) -> RedirectOutcome {
        guard let app = configuration.webApp(in: callback.attempt.browser) else { throw .noRedirect }
        // WeChat reports a user who does not consent, if at all, by a response without a code.
        guard let code = try callback.fields.secret("code", maximumBytes: LoginRequest.maximumCodeBytes) else {
            return .cancelled
        }
        return .signedIn(try await signIn(with: try makeRequest(app, code, in: context), in: context))
    }
}

extension WeChatConfiguration {
    /// The application with which a kind of browser signs in; `nil` if there is none.
    func webApp(in browser: BrowserKind) -> NamedApp? {
        let name =
            switch browser {
            case .standard: web?.app
            case .weChat: web?.officialAccount
            }
        return name.flatMap { name in apps.first { $0.clientName.hasSameBytes(as: name.value) } }
    }

    /// The scope to ask for.
    ///
    /// `snsapi_base` needs no consent, but yields an openid alone: enough only where the configuration wants nothing
    /// else.
    func webScope(of app: NamedApp) -> String {
        guard app.variant == .officialAccount else { return "snsapi_login" }
        let needsOnlyOpenID = allowsBaseScope && !fetchesProfile && accountKey == .openID
        return needsOnlyOpenID ? "snsapi_base" : "snsapi_userinfo"
    }
}
