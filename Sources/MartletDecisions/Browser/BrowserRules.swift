package import MartletAuthenticator
package import MartletBrowser
internal import MartletCore
package import MartletHTTP
package import MartletResponder

/// What the request path does for browsers, as a configuration says it: compiled and immutable.
package final class BrowserRules: Sendable {
    /// How a request uses the gateway's cookies.
    package enum Use: Equatable {
        /// There is no session cookie, or the route takes no credential: the request is authorized as any other.
        case none
        /// The session cookie is the credential; where its value is in the head.
        case session(ByteRange)
    }

    /// A request as far as the rules depend on it.
    package struct Request {
        package let method: Method
        package let opensWebSocket: Bool
        let hasAuthorization: Bool
        /// The route takes credentials.
        let takesCredentials: Bool
    }

    package let cookies: GatewayCookies
    private let crossSite: CrossSiteRule
    private let returns: ReturnRule
    private let redirects: [Bool]
    /// The pages for errors; `nil` leaves them documents.
    package let errors: ErrorPages?

    /// - Parameter redirects: for each route, whether a navigation without a session is redirected to the sign-in page.
    package init(
        _ cookies: GatewayCookies, _ crossSite: CrossSiteRule, _ returns: ReturnRule, redirects: [Bool],
        errors: ErrorPages? = nil
    ) {
        self.errors = errors
        self.cookies = cookies
        self.crossSite = crossSite
        self.returns = returns
        self.redirects = redirects
    }

    /// How a request uses the session's cookie that was found in its head.
    /// - Parameter origin: its own, if that is one that the route names (`cors.origins`).
    /// - Throws: 400 for a cookie beside another credential, 403 for a request that another site may have caused.
    package func use(
        of session: ByteRange?, _ bytes: Span<UInt8>, _ fields: borrowing FieldList, by request: Request,
        from origin: @autoclosure () -> [String]
    ) throws(Failure) -> Use {
        guard request.takesCredentials, let session, !session.isEmpty else { return .none }
        guard !request.hasAuthorization else { throw .malformed("auth.two_credentials") }
        do throws(BrowserError) {
            try crossSite.check(
                bytes, fields, method: request.method, isWebSocket: request.opensWebSocket, origins: origin())
        } catch {
            throw error.failure
        }
        return .session(session)
    }

    /// What a navigation gets whose caller was rejected.
    package enum NavigationResponse {
        /// The response to the rejection, as every other request does.
        case rejection
        /// Another one: without a session, a redirect to the sign-in page where the route has that.
        case failure(Failure)
        /// A page that says who is signed in, and how to leave.
        case denial
        /// The upstream's response: it passes without an identity, and its cookie is deleted.
        case anonymous
    }

    /// What a navigation gets whose caller was rejected.
    /// - Parameters:
    ///   - isCookie: whether its credential was the session cookie.
    ///   - isOptional: whether the route lets requests pass without a credential.
    ///   - target: path and query of the request.
    ///   - check: what it is, if a proxy asks about it: then the proxy decides whether it is redirected.
    package func response(
        to rejection: Rejection, isCookie: Bool, isOptional: Bool, on route: Int, target: @autoclosure () -> [UInt8],
        check: CheckMarks
    ) -> NavigationResponse {
        let isUnknown =
            switch rejection.cause {
            case .verification: isCookie && rejection.failure.status == 401
            case .request, .policy: !isCookie && rejection.failure.reason == Failure.credentialMissing.reason
            }
        guard isUnknown else {
            if isCookie, check.isEmpty, case .policy = rejection.cause { return .denial }
            return .rejection
        }
        if isCookie, isOptional { return .anonymous }
        var response = rejection.failure
        let isRedirected =
            check.isEmpty
            ? redirects.indices.contains(route) && redirects[route] : check.contains(.redirectsBrowsers)
        if isRedirected {
            response = .signIn(
                at: returns.signInLocation(returningTo: returns.target(ofBytes: target())), response.reason)
        }
        if isCookie { response.setCookies = [cookies.session.deletion] }
        return .failure(response)
    }

    /// Whether a 401 does not offer Basic: a browser would ask for the password in a window of its own, and send it with
    /// every request from then on.
    package func hidesBasic(_ bytes: Span<UInt8>, _ fields: borrowing FieldList) -> Bool {
        NavigationRule.hasMode(bytes, fields)
    }

    /// A response's head without the `Set-Cookie` fields that name a cookie of the gateway.
    /// - Parameter head: one that the gateway has written: lines end with CR and LF, a colon follows each name.
    package func withoutOwnCookies(_ head: [UInt8]) -> [UInt8] {
        let name = Array("set-cookie:".utf8)
        var kept: [UInt8] = []
        kept.reserveCapacity(head.count)
        var start = 0
        while start < head.count {
            let end = head[start...].firstIndex(of: 0x0A).map { $0 + 1 } ?? head.count
            let line = head[start..<end]
            let isSetCookie = line.count > name.count + 1 && Self.begins(line, with: name)
            let value = ByteRange(from: start + name.count, to: max(end - 2, start + name.count))
            if !isSetCookie || !cookies.areSet(by: value, in: head.span) { kept += line }
            start = end
        }
        return kept
    }

    /// Ignores the case of letters.
    private static func begins(_ line: ArraySlice<UInt8>, with name: [UInt8]) -> Bool {
        zip(line, name).allSatisfy { byte, expected in
            byte == expected || (0x41...0x5A).contains(byte) && byte | 0x20 == expected
        }
    }
}

extension BrowserError {
    /// The response to a request that is rejected because of it.
    package var failure: Failure { code == .browserCrossSite ? .crossSite("auth.cross_site") : .malformed(code) }
}
