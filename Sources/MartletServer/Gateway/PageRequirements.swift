internal import MartletBrowser
internal import MartletConfig
internal import MartletCore
internal import MartletHTTP
internal import MartletProvider
internal import MartletRouter

/// What a sign-in has to prove for the page that the browser returns to: `max_age` and `acr` of the page's route.
struct PageRequirements: Sendable {
    private let host: String
    private let paths: PathOptions
    private let routes: RouteTable

    init(_ browser: BrowserConfiguration, _ paths: PathOptions, _ routes: RouteTable) {
        host = browser.host
        self.paths = paths
        self.routes = routes
    }

    /// The requirement of the route that a navigation to the target has; `nil` without one, and for another site.
    ///
    /// A route that also depends on fields of requests is taken as if they fit.
    func requirement(of target: ReturnTarget) -> StepUpRequirement? {
        guard target.isLocal else { return nil }
        let received = Array(target.text.utf8.prefix { $0 != UInt8(ascii: "?") })
        var path = ByteBuffer()
        switch PathNormalizer.normalize(
            received.span, keepsEncodedSlash: paths.keepsEncodedSlash, keepsEncodedPercent: paths.keepsEncodedPercent,
            mergesSlashes: paths.mergesSlashes, into: &path)
        {
        case .failure: return nil
        case .unchanged: return requirement(ofPath: received)
        case .rewritten: return requirement(ofPath: path.array)
        }
    }

    private func requirement(ofPath path: [UInt8]) -> StepUpRequirement? {
        let found = routes.match(
            method: Array("GET".utf8).span, authority: Array(host.utf8).span, path: path.span)
        guard case .route(let index) = found else { return nil }
        return routes.routes[index].policy.stepUp
    }
}
