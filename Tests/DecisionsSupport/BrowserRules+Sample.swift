import MartletBrowser
package import MartletDecisions

extension BrowserRules {
    /// The rules of `https://app.example.com`, with the usual names; the first of two routes redirects navigations.
    package static let sample = BrowserRules(
        GatewayCookies(name: "__Host-martlet", isSecure: true, sameSite: .lax, maximumAge: .seconds(60)),
        CrossSiteRule(origin: "https://app.example.com"),
        ReturnRule(origin: "https://app.example.com", otherOrigins: [], signInPath: "/auth"), redirects: [true, false])
}
