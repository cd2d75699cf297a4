package import MartletAuthenticator
internal import MartletBrowser
package import MartletHTTP
package import MartletResponder
internal import MartletRouter

/// Finds the one credential of a request in its head and its connection, by the rules of its route: the session cookie,
/// a header of its own, `Authorization`, or the client's certificate.
///
/// It knows no loop: `martlet explain` reads by it, too.
package struct CredentialReader {
    package let route: Int
    /// The request has one of the gateway's cookies, which the upstream does not get.
    package private(set) var hasCookie = false
    /// The request has a key of the gateway in a header that its route does not read.
    package private(set) var hasForeignKey = false
    /// The request has cookies of the gateway that are of no use, which the response deletes.
    package private(set) var hasUnusableCookie = false

    package init(route: Int) { self.route = route }

    /// - Parameters:
    ///   - head: a field of its own that is the credential is marked, where no upstream gets it.
    ///   - bytes: the head.
    /// - Throws: 400 for two credentials, which may be those of two callers, or for a cookie or a field that cannot be
    ///   one; 403 for a request that another site may have caused.
    package mutating func read(
        _ head: inout RequestHead, _ bytes: UnsafeBufferPointer<UInt8>, from client: ClientSide,
        _ snapshot: Snapshot
    ) throws(Failure) -> RequestCredential {
        let authorization = head.authorizationValue
        var header: HeaderSearch.Found?
        if snapshot.readsRequests {
            header = unsafe try snapshot.authentication.credentialHeader(
                on: route, head.fields, in: bytes.span, hasAuthorization: authorization != nil)
            hasForeignKey =
                unsafe header == nil && authorization == nil
                && snapshot.authentication.hasForeignKey(on: route, head.fields, in: bytes)
        }
        if let browser = snapshot.browser, authorization == nil || head.fields.has(.cookie),
            let cookie = unsafe try sessionCookie(
                in: &head, bytes, browser, isAlone: authorization == nil && header == nil, from: client, snapshot)
        {
            return .cookie(cookie)
        }
        if let header {
            // It need not be found again among the fields for the upstream.
            if !snapshot.compiledRoutes[route].rewriting.contains(.keepsOwnTokens) {
                head.withhold(Int(header.index))
            }
            return .header(header)
        }
        if let authorization { return .authorization(authorization) }
        if snapshot.authentication.routes[route].acceptsCertificates,
            let certificate = unsafe try client.certificate(in: head, bytes)
        {
            unsafe try client.checkSite(
                head, bytes, named: namedOrigin(in: head.fields, bytes, snapshot), trusting: snapshot.trustedProxies)
            return .certificate(certificate)
        }
        return .none
    }

    /// The session's cookie, where it is the credential.
    private mutating func sessionCookie(
        in head: inout RequestHead, _ bytes: UnsafeBufferPointer<UInt8>, _ browser: BrowserRules, isAlone: Bool,
        from client: ClientSide, _ snapshot: Snapshot
    ) throws(Failure) -> ByteRange? {
        let session: ByteRange?
        if let plain = unsafe browser.cookies.findPlain(in: bytes.span, head.fields) {
            hasCookie = !plain.isEmpty
            session = plain.session
        } else {
            session = unsafe try oddCookie(in: head, bytes, browser, snapshot)
        }
        let request = BrowserRules.Request(
            method: head.method, opensWebSocket: client.opensWebSocket, hasAuthorization: !isAlone,
            takesCredentials: takesCredentials(snapshot))
        switch unsafe try browser.use(
            of: session, bytes.span, head.fields, by: request, from: namedOrigin(in: head.fields, bytes, snapshot))
        {
        case .none: return nil
        case .session(let cookie): return cookie
        }
    }

    /// The session's cookie among others that are of no use.
    @inline(never)
    private mutating func oddCookie(
        in head: borrowing RequestHead, _ bytes: UnsafeBufferPointer<UInt8>, _ browser: BrowserRules,
        _ snapshot: Snapshot
    ) throws(Failure) -> ByteRange? {
        let found = unsafe browser.cookies.find(in: bytes.span, head.fields)
        hasCookie = !found.isEmpty
        hasUnusableCookie = !found.unusable.isEmpty
        let isServed =
            unsafe snapshot.authentication.routes[route].mode != .required
            || NavigationRule.isNavigation(bytes.span, head.fields, method: head.method)
        if let problem = found.problem, !isServed { throw problem.failure }
        return found.session
    }

    @inline(__always)
    private func takesCredentials(_ snapshot: Snapshot) -> Bool {
        // Compared in place: the derived operator of another module is not inlined.
        if case .none = snapshot.authentication.routes[route].mode { false } else { true }
    }

    /// The origin that the request names, if the route accepts it.
    private func namedOrigin(
        in fields: borrowing FieldList, _ bytes: UnsafeBufferPointer<UInt8>, _ snapshot: Snapshot
    ) -> [String] {
        guard snapshot.compiledRoutes[route].extras.contains(.crossOrigin) else { return [] }
        return unsafe snapshot.routeRules[route].crossOrigin?.namedOrigin(of: fields, bytes.span) ?? []
    }
}
