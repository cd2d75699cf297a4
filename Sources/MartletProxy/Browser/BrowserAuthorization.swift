internal import MartletAuthenticator
internal import MartletBrowser
internal import MartletCore
internal import MartletHTTP
internal import MartletResponder
internal import MartletRouter

/// Authorizes requests that browsers may have sent, where `browser:` is configured: those with cookies, and those without
/// a credential.
enum BrowserAuthorization {
    /// Authorizes a request by its session cookie, or as any other if it has none.
    @inline(never)
    static func authorize(
        _ exchange: Handle<Exchange>, _ routed: consuming RoutedRequest, _ bytes: UnsafeBufferPointer<UInt8>,
        _ authorization: ByteRange?, _ header: HeaderSearch.Found?, _ browser: BrowserRules,
        _ verification: BoxedVerificationResult?, _ events: inout EventLoop
    ) -> AuthorizedRequest? {
        let route = routed.route
        let use: BrowserRules.Use
        do throws(Failure) {
            use = unsafe try findCookies(
                exchange, bytes, on: route, browser, hasAuthorization: authorization != nil || header != nil, &events)
        } catch {
            events.loop.reject(exchange, error)
            return nil
        }
        let lent = unsafe events.loop.exchanges.all.address(of: exchange)
        guard case .session(let cookie) = use else {
            let outcome = unsafe RequestCredentials.decide(
                exchange, routed, bytes, authorization, header, verification, &events)
            return unsafe finish(outcome, exchange, bytes, on: route, browser, isCookie: false, &events)
        }
        let outcome = unsafe events.authenticator.authorize(
            routed, bytes, cookie: cookie, result: verification, at: events.loop.time, &lent.pointee.credential)
        return unsafe finish(outcome, exchange, bytes, on: route, browser, isCookie: true, &events)
    }

    /// Finds the gateway's cookies, and how the request uses them.
    private static func findCookies(
        _ exchange: Handle<Exchange>, _ bytes: UnsafeBufferPointer<UInt8>, on route: Int, _ browser: BrowserRules,
        hasAuthorization: Bool, _ events: inout EventLoop
    ) throws(Failure) -> BrowserRules.Use {
        let session: ByteRange?
        if let plain = unsafe browser.cookies.findPlain(in: bytes.span, events.router.head.fields) {
            events.loop.exchanges[exchange].credential.hasCookie = !plain.isEmpty
            session = plain.session
        } else {
            session = unsafe try findOddCookies(exchange, bytes, on: route, browser, &events)
        }
        let isRuled = events.loop.context.snapshot.compiledRoutes[route].extras.contains(.crossOrigin)
        let rules = isRuled ? events.loop.context.snapshot.routeRules[route].crossOrigin : nil
        let request = unsafe BrowserRules.Request(
            method: events.router.head.method,
            opensWebSocket: !events.loop.exchanges[exchange].tunnel.isNone
                || events.loop.exchanges[exchange].request.check.contains(.opensWebSocket),
            hasAuthorization: hasAuthorization,
            takesCredentials: events.loop.context.snapshot.authentication.routes[route].mode != .none,
            namedOrigin: rules?.namedOrigin(of: events.router.head.fields, bytes.span) ?? [])
        return unsafe try browser.use(of: session, bytes.span, events.router.head.fields, by: request)
    }

    /// Finds the session's cookie among others that are of no use, which are deleted.
    @inline(never)
    private static func findOddCookies(
        _ exchange: Handle<Exchange>, _ bytes: UnsafeBufferPointer<UInt8>, on route: Int, _ browser: BrowserRules,
        _ events: inout EventLoop
    ) throws(Failure) -> ByteRange? {
        let found = unsafe browser.cookies.find(in: bytes.span, events.router.head.fields)
        events.loop.exchanges[exchange].credential.hasCookie = !found.isEmpty
        for name in found.unusable { events.loop.setCookie(browser.cookies.deletion(of: name), of: exchange) }
        let isServed =
            unsafe events.loop.context.snapshot.authentication.routes[route].mode != .required
            || NavigationRule.isNavigation(bytes.span, events.router.head.fields, method: events.router.head.method)
        if let problem = found.problem, !isServed { throw problem.failure }
        return found.session
    }

    /// Carries out what the authenticator decided.
    private static func finish(
        _ outcome: consuming AuthorizationOutcome, _ exchange: Handle<Exchange>, _ bytes: UnsafeBufferPointer<UInt8>,
        on route: Int, _ browser: BrowserRules, isCookie: Bool, _ events: inout EventLoop
    ) -> AuthorizedRequest? {
        switch consume outcome {
        case .authorized(let request):
            unsafe events.loop.exchanges[exchange].record.texts.add(names: request.names)
            return request
        case .pending(let request):
            unsafe events.submitVerification(request, of: exchange, bytes)
            return nil
        case .unproven(let request):
            unsafe RequestProofs.submit(request, of: exchange, bytes, &events)
            return nil
        case .rejected(let rejection):
            return unsafe respond(exchange, rejection, bytes, on: route, browser, isCookie: isCookie, &events)
        }
    }

    /// Responds to a rejected request: a navigation without a session is redirected to the sign-in page, or passes
    /// without an identity where the route allows that.
    private static func respond(
        _ exchange: Handle<Exchange>, _ rejection: Rejection, _ bytes: UnsafeBufferPointer<UInt8>, on route: Int,
        _ browser: BrowserRules, isCookie: Bool, _ events: inout EventLoop
    ) -> AuthorizedRequest? {
        let isUnknown =
            switch rejection.cause {
            case .verification: isCookie && rejection.failure.status == 401
            case .request, .policy: !isCookie && rejection.failure.reason == Failure.credentialMissing.reason
            }
        let isNavigation = unsafe NavigationRule.isNavigation(
            bytes.span, events.router.head.fields, method: events.router.head.method)
        guard isUnknown, isNavigation else {
            if isNavigation, isCookie, case .policy = rejection.cause {
                unsafe deny(exchange, rejection, bytes, browser, &events)
            } else {
                unsafe events.reject(exchange, rejection, bytes)
            }
            return nil
        }
        if isCookie, events.loop.context.snapshot.authentication.routes[route].mode == .optional {
            return unsafe passAnonymously(exchange, bytes, on: route, browser, &events)
        }
        let check = events.loop.exchanges[exchange].request.check
        let response = unsafe browser.response(
            toNavigation: Array(bytes[events.router.head.path]) + Array(bytes[events.router.head.query]), on: route,
            rejection.failure, clearsCookie: isCookie,
            redirects: check.isEmpty ? nil : check.contains(.redirectsBrowsers))
        unsafe events.reject(exchange, Rejection(response, rejection.cause), bytes)
        return nil
    }

    /// Responds to a user who is signed in and may not see the page with one that says who they are, and how to leave.
    private static func deny(
        _ exchange: Handle<Exchange>, _ rejection: Rejection, _ bytes: UnsafeBufferPointer<UInt8>,
        _ browser: BrowserRules, _ events: inout EventLoop
    ) {
        let isPlain = events.loop.exchanges[exchange].request.check.isEmpty
        guard let pages = browser.errors, isPlain, events.loop.exchanges[exchange].body.isComplete else {
            return unsafe events.reject(exchange, rejection, bytes)
        }
        let failure = rejection.failure
        unsafe events.router.noteHead(exchange, bytes, &events.loop)
        unsafe events.loop.exchanges[exchange].record.texts.add(names: rejection.names)
        events.loop.exchanges[exchange].record.reason = events.loop.context.counters.reason(failure)
        events.loop.exchanges[exchange].forwarding.head.removeAll()
        unsafe events.loop.exchanges[exchange].forwarding.head.append(bytes)
        RequestForwarder.beginLocal(exchange, { await pages.denial(failure, $0) }, &events.loop)
    }

    /// Authorizes a request without its session cookie, which the response deletes.
    private static func passAnonymously(
        _ exchange: Handle<Exchange>, _ bytes: UnsafeBufferPointer<UInt8>, on route: Int, _ browser: BrowserRules,
        _ events: inout EventLoop
    ) -> AuthorizedRequest? {
        guard let routed = RoutedRequest(exchange: ExchangeID(exchange), route: route, mount: -1) else { return nil }
        events.loop.setCookie(browser.cookies.session.deletion, of: exchange)
        events.loop.exchanges[exchange].credential.isCookie = false
        let lent = unsafe events.loop.exchanges.all.address(of: exchange)
        let outcome = unsafe events.authenticator.authorize(
            routed, bytes, authorization: nil, result: nil, at: events.loop.time, &lent.pointee.credential)
        return unsafe finish(outcome, exchange, bytes, on: route, browser, isCookie: false, &events)
    }
}
