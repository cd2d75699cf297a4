internal import MartletAuthenticator
internal import MartletHTTP

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
        if loop.context.snapshot.hasBrowser { unsafe router.markNavigation(exchange, bytes, &loop) }
        if loop.downstreams[loop.exchanges[exchange].downstream].origin.rules.redirectPort > 0 {
            return unsafe router.redirectToHTTPS(exchange, bytes, &loop)
        }
        guard let routed = unsafe router.route(exchange, bytes, &loop) else { return }
        guard let authorized = unsafe authorize(exchange, routed, bytes, verification) else { return }
        guard loop.exchanges[exchange].request.check.isEmpty else {
            unsafe router.noteHead(exchange, bytes, &loop)
            return unsafe router.respondToCheck(authorized, bytes, &loop)
        }
        unsafe router.forward(authorized, bytes, &loop)
    }

    // MARK: Authenticator

    @inline(__always)
    private mutating func authorize(
        _ exchange: Handle<Exchange>, _ routed: consuming RoutedRequest, _ bytes: UnsafeBufferPointer<UInt8>,
        _ verification: BoxedVerificationResult?
    ) -> AuthorizedRequest? {
        let authorization = router.head.authorization >= 0 ? router.head.fields[router.head.authorization].value : nil
        if loop.context.snapshot.hasOtherCredentials {
            guard
                let request = unsafe RequestCredentials.authorize(
                    exchange, routed, bytes, authorization, verification, &self),
                unsafe router.admitCaller(exchange, route: Int(request.route), bytes, &loop)
            else {
                WaitingRequests.hold(verification, of: exchange, &self)
                return nil
            }
            return request
        }
        let lent = unsafe loop.exchanges.all.address(of: exchange)
        switch unsafe authenticator.authorize(
            routed, bytes, authorization: authorization, result: verification, at: loop.time, &lent.pointee.credential)
        {
        case .authorized(let request):
            unsafe lent.pointee.record.texts.add(names: request.names)
            return request
        case .rejected(let rejection): unsafe reject(exchange, rejection, bytes)
        case .pending(let request): unsafe submitVerification(request, of: exchange, bytes)
        case .unproven(let request): unsafe RequestProofs.submit(request, of: exchange, bytes, &self)
        }
        return nil
    }
}
