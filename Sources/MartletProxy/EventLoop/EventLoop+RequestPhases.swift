internal import MartletAuthenticator
internal import MartletBrowser
internal import MartletDecisions
internal import MartletHTTP
internal import MartletProvider
internal import MartletResponder
internal import MartletRouter

/// From a parsed head to a request that may be forwarded, or to its rejection.
///
/// ``RequestRouter/forward(_:_:_:)`` takes an ``AuthorizedRequest``, which only the ``Authenticator`` can make. What
/// the authenticator returns is carried out here and in `EventLoop+Verification`.
extension EventLoop {
    /// Processes a request, also one that has waited: forwards it, rejects it, or waits for the verification of its
    /// credential.
    mutating func processRequest(
        _ exchange: Handle<Exchange>, _ bytes: UnsafeBufferPointer<UInt8>, verification: BoxedVerificationResult?
    ) {
        if loop.context.snapshot.hasBrowser {
            unsafe router.markNavigation(exchange, bytes, &loop.exchanges, &loop.context)
        }
        if loop.downstreams[loop.exchanges[exchange].downstream].origin.rules.redirectPort > 0 {
            return unsafe loop.reject(
                exchange,
                router.redirectToHTTPS(exchange, bytes, &loop.exchanges, &loop.downstreams, &loop.context))
        }
        guard let routed = unsafe router.route(exchange, bytes, &loop) else { return }
        let route = routed.route
        let lent = unsafe loop.exchanges.all.address(of: exchange)
        let outcome =
            loop.context.snapshot.hasOtherCredentials
            ? unsafe decide(exchange, routed, bytes, verification)
            : unsafe authenticator.authorize(
                routed, bytes, authorization: router.head.authorizationValue, result: verification, at: loop.time,
                &lent.pointee.credential)
        guard let authorized = unsafe carryOut(outcome, of: exchange, on: route, bytes) else { return }
        if loop.context.snapshot.routeLimits.needCaller {
            do throws(Failure) {
                guard
                    unsafe try router.admitCaller(
                        exchange, route: route, bytes, &loop.exchanges, &loop.downstreams, &loop.context)
                else { return loop.exchanges[exchange].keep(verification?.result, epoch: authenticator.epoch) }
            } catch {
                return loop.reject(exchange, error)
            }
        }
        guard loop.exchanges[exchange].request.check.isEmpty else {
            unsafe router.noteHead(exchange, bytes, &loop.exchanges, &loop.downstreams, &loop.context)
            return unsafe router.respondToCheck(authorized, bytes, &loop)
        }
        unsafe router.forward(authorized, bytes, &loop)
    }

    // MARK: Authenticator

    /// Decides about a request by the one credential that it presents.
    @inline(never)
    private mutating func decide(
        _ exchange: Handle<Exchange>, _ routed: consuming RoutedRequest, _ bytes: UnsafeBufferPointer<UInt8>,
        _ verification: BoxedVerificationResult?
    ) -> AuthorizationOutcome {
        var reader = CredentialReader(route: routed.route)
        let client = loop.downstreams.clientSide(
            of: exchange,
            hasCertificate: loop.context.snapshot.authentication.routes[routed.route].acceptsCertificates,
            &loop.exchanges)
        let lent = unsafe loop.exchanges.all.address(of: exchange)
        let outcome: AuthorizationOutcome
        do throws(Failure) {
            let presented = unsafe try reader.read(&router.head, bytes, from: client, loop.context.snapshot)
            unsafe lent.pointee.credential.hasForeignKey = reader.hasForeignKey
            outcome = unsafe authenticator.authorize(
                routed, bytes, presenting: presented, for: RequestFacts(lent.pointee.record.texts),
                result: verification, at: loop.time, &lent.pointee.credential)
        } catch {
            outcome = .rejected(because: error)
        }
        unsafe lent.pointee.credential.hasCookie = reader.hasCookie
        if reader.hasUnusableCookie { unsafe router.deleteCookies(of: exchange, bytes, &loop.exchanges, &loop.context) }
        return outcome
    }

    /// Carries out what the authenticator decided.
    /// - Returns: the request, if it passes.
    @inline(__always)
    private mutating func carryOut(
        _ outcome: consuming AuthorizationOutcome, of exchange: Handle<Exchange>, on route: Int,
        _ bytes: UnsafeBufferPointer<UInt8>
    ) -> AuthorizedRequest? {
        switch consume outcome {
        case .authorized(let request):
            unsafe loop.exchanges[exchange].record.texts.add(names: request.names)
            return request
        case .rejected(let rejection):
            return unsafe respond(to: rejection, of: exchange, on: route, bytes)
        case .pending(let request): unsafe submitVerification(request, of: exchange, bytes)
        case .unproven(let request): unsafe submitProof(request, of: exchange, bytes)
        }
        return nil
    }

    /// Responds to a rejected request, which a browser may have sent.
    /// - Returns: the request, if it passes without its session cookie.
    @inline(never)
    private mutating func respond(
        to rejection: Rejection, of exchange: Handle<Exchange>, on route: Int, _ bytes: UnsafeBufferPointer<UInt8>
    ) -> AuthorizedRequest? {
        guard let browser = loop.context.snapshot.browser,
            unsafe NavigationRule.isNavigation(bytes.span, router.head.fields, method: router.head.method)
        else {
            unsafe reject(exchange, rejection, bytes)
            return nil
        }
        let response = unsafe browser.response(
            to: rejection, isCookie: loop.exchanges[exchange].credential.isCookie,
            isOptional: loop.context.snapshot.authentication.routes[route].mode == .optional, on: route,
            target: Array(bytes[router.head.path]) + Array(bytes[router.head.query]),
            check: loop.exchanges[exchange].request.check)
        switch response {
        case .rejection: unsafe reject(exchange, rejection, bytes)
        case .failure(let failure): unsafe reject(exchange, Rejection(failure, rejection.cause), bytes)
        case .denial:
            guard let pages = browser.errors, loop.exchanges[exchange].body.isComplete else {
                unsafe reject(exchange, rejection, bytes)
                break
            }
            unsafe router.deny(exchange, rejection, bytes, pages, &loop)
        case .anonymous:
            guard let routed = RoutedRequest(exchange: ExchangeID(exchange), route: route, mount: -1) else { break }
            loop.exchanges.setCookie(browser.cookies.session.deletion, of: exchange)
            loop.exchanges[exchange].credential.isCookie = false
            let lent = unsafe loop.exchanges.all.address(of: exchange)
            let outcome = unsafe authenticator.authorize(
                routed, bytes, authorization: nil, result: nil, at: loop.time, &lent.pointee.credential)
            return unsafe carryOut(outcome, of: exchange, on: route, bytes)
        }
        return nil
    }
}

/// Where requests begin.
enum RequestAdmission {
    /// Begins with a request whose head is in `bytes` (and parsed in the router): those of the listener's own handler
    /// are served in an overload, too.
    @inline(__always)
    static func begin(
        _ exchange: Handle<Exchange>, _ bytes: UnsafeBufferPointer<UInt8>, _ events: inout EventLoop
    ) {
        if events.loop.downstreams[events.loop.exchanges[exchange].downstream].origin.handler != nil,
            events.loop.exchanges[exchange].request.check.isEmpty,
            unsafe events.router.handToListenerHandler(exchange, bytes, &events.loop)
        {
            return
        }
        if events.loop.context.overload.isActive, !events.loop.context.overload.admits() {
            return events.loop.reject(exchange, .overloaded)
        }
        unsafe events.processRequest(exchange, bytes, verification: nil)
    }
}
