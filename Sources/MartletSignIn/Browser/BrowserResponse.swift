internal import MartletBrowser
internal import MartletCore
internal import MartletPages
internal import MartletResponder

/// What a browser gets: a page or a redirect, and cookies.
struct BrowserResponse: Sendable {
    enum Content: Sendable {
        case page(any Page)
        /// 303 after a form, 302 else.
        case redirect(String)
        case logo(PageLogo)
        /// What a program gets.
        case document(LocalResponse)
    }

    var content: Content
    var status: Int
    /// Where a page leads by itself.
    var refresh: String?
    /// Where the language switch of a page leads to.
    var path: String?
    var target = ReturnTarget.home
    /// The values of `Set-Cookie`.
    var cookies: [String] = []
    /// For logs and metrics; `nil` is a success.
    var reason: ErrorCode?
    /// In seconds; 0 leaves the field out.
    var retryAfter = 0
    /// The value of `Allow`.
    var allow: String?
    /// The value of `WWW-Authenticate`; `nil` for the usual one of a 401.
    var challenge: String?

    /// - Parameters:
    ///   - path: where its language switch leads to.
    ///   - target: where its user wants to go.
    static func page(
        _ page: any Page, status: Int = 200, path: String? = nil, target: ReturnTarget = .home, cookie: String? = nil
    ) -> BrowserResponse {
        BrowserResponse(
            content: .page(page), status: status, path: path, target: target,
            cookies: cookie.map { [$0] } ?? [])
    }

    static func redirect(_ status: Int, to location: String, cookies: [String] = []) -> BrowserResponse {
        BrowserResponse(content: .redirect(location), status: status, cookies: cookies)
    }

    /// The same because of a failure.
    func because(of failure: Failure) -> BrowserResponse {
        var copy = self
        copy.reason = failure.reason
        copy.retryAfter = failure.retryAfter
        copy.allow = failure.allow
        return copy
    }

    /// The response as it is sent.
    func rendered(for call: BrowserCall) -> LocalResponse {
        var response: LocalResponse
        switch content {
        case .redirect(let location):
            response = LocalResponse(
                status: status, fields: [("Location", location), ("Cache-Control", "no-store")], body: [])
        case .document(let document): response = document
        case .logo(let logo): response = LocalResponse(status: status, fields: logo.fields, body: logo.bytes)
        case .page(let page):
            let rendered = page.render(in: call.context(path: path, returnTo: target))
            response = LocalResponse(status: status, fields: rendered.fields, body: rendered.bytes)
            // RFC 9110 §15.5.2: every 401 has a challenge. Browsers show no dialog for this one.
            if let challenge = challenge ?? (status == 401 ? "Bearer realm=\"martlet\"" : nil) {
                response.fields.append(("WWW-Authenticate", challenge))
            }
        }
        if let refresh { response.fields.append(("Refresh", "0; url=\(refresh)")) }
        response.fields += cookies.map { (name: "Set-Cookie", value: $0) }
        if let allow { response.fields.append(("Allow", allow)) }
        if retryAfter > 0 { response.fields.append(("Retry-After", String(retryAfter))) }
        response.reason = reason
        return response
    }
}
