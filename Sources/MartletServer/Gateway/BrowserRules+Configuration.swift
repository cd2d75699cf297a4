internal import MartletBrowser
internal import MartletConfig
internal import MartletDecisions
internal import MartletRouter
internal import MartletSignIn

extension BrowserRules {
    /// The rules of a configuration for its routes.
    ///
    /// A navigation is redirected on routes where a session may be used, unless `auth: { browser: never }`.
    /// - Parameter endpoints: those of the configuration, which have the pages.
    convenience init(
        _ browser: BrowserConfiguration, _ configuration: GatewayConfiguration, _ routes: RouteTable,
        _ endpoints: SignInEndpoints
    ) {
        let redirecting = Set(configuration.routes.filter(\.signsInBrowsers).map(\.name.value))
        self.init(
            GatewayCookies(browser.cookie), CrossSiteRule(origin: browser.origin.value),
            ReturnRule(
                origin: browser.origin.value, otherOrigins: browser.returnOrigins,
                signInPath: configuration.sessions.path),
            redirects: routes.routes.map { route in
                route.mount < 0 && route.mode != .none && route.credentials.contains(.session)
                    && redirecting.contains(route.name)
            }, errors: BrowserErrorPages(endpoints).map(ErrorPages.init))
    }
}

extension ErrorPages {
    /// The pages of the endpoints.
    init(_ pages: BrowserErrorPages) {
        self.init(
            language: { pages.language($0) },
            page: { pages.page(for: $0, in: $1, requestID: $2) },
            denial: { await pages.denial(of: $1, because: $0) })
    }
}
