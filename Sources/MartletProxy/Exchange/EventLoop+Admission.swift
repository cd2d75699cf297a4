internal import MartletAuthenticator
internal import MartletConfig
internal import MartletCore
internal import MartletHTTP
internal import MartletProvider
internal import MartletResponder
internal import MartletRouter

/// Router and authenticator: from a parsed head to a request that may be forwarded.
///
/// ``EventLoop/forward(_:_:)`` takes an ``AuthorizedRequest``, which only the ``Authenticator`` can make. What the
/// authenticator returns is carried out here and in `EventLoop+Verification`.
extension EventLoop {
    /// Processes a request whose head is in `bytes` (and parsed in `head`): forwards it, rejects it, or waits for the
    /// verification of its credential.
    mutating func admit(
        _ exchange: Handle<Exchange>, _ bytes: UnsafeBufferPointer<UInt8>, verification: BoxedVerificationResult?
    ) {
        if downstreams[exchanges[exchange].downstream].origin.handler != nil,
            unsafe handToListenerHandler(exchange, bytes)
        {
            return
        }
        if downstreams[exchanges[exchange].downstream].origin.rules.redirectPort > 0 {
            return unsafe redirectToHTTPS(exchange, bytes)
        }
        guard let routed = unsafe route(exchange, bytes) else { return }
        guard let authorized = unsafe authorize(exchange, routed, bytes, verification) else { return }
        unsafe forward(authorized, bytes)
    }

    /// Redirects the client to the same target on https, with the same method (RFC 9110 §15.4.9).
    private mutating func redirectToHTTPS(_ exchange: Handle<Exchange>, _ bytes: UnsafeBufferPointer<UInt8>) {
        guard head.method != .connect, !head.isAsteriskForm else { return reject(exchange, .noRoute) }
        guard unsafe normalizePath(exchange, bytes) else { return }
        let port = downstreams[exchanges[exchange].downstream].origin.rules.redirectPort
        var location = "https://"
        var authority = unsafe String(decoding: bytes[head.authority], as: UTF8.self)[...]
        if authority.last != "]", let colon = authority.lastIndex(of: ":") { authority = authority[..<colon] }
        location += authority
        if port != 443 { location += ":\(port)" }
        unsafe location += String(decoding: exchanges[exchange].record.texts.path, as: UTF8.self)
        unsafe location += String(decoding: bytes[head.query], as: UTF8.self)
        reject(exchange, .movedToHTTPS(location))
    }

    // MARK: Router

    @inline(__always)
    private mutating func route(_ exchange: Handle<Exchange>, _ bytes: UnsafeBufferPointer<UInt8>) -> RoutedRequest? {
        // Common methods come first.
        if head.method.rawValue >= Method.trace.rawValue || head.isAsteriskForm,
            let failure = unsafe rejection(ofUnusual: bytes)
        {
            unsafe reject(exchange, failure, target: bytes)
            return nil
        }
        guard unsafe normalizePath(exchange, bytes) else { return nil }
        let path = unsafe exchanges[exchange].record.texts.path
        // The snapshot retains the table: no need to retain it again for the call.
        let found = unsafe Unmanaged.passUnretained(snapshot.routes)._withUnsafeGuaranteedRef {
            unsafe $0.match(
                method: bytes[head.methodText].span, authority: bytes[head.authority].span, path: path.span)
        }
        switch found {
        case .route(let index):
            exchanges[exchange].record.routeSlot = counters.routes.configured[index]
            guard unsafe applyLimits(exchange, route: index, bytes) else { return nil }
            let mount = snapshot.compiledRoutes[index].mount
            if let routed = RoutedRequest(exchange: ExchangeID(exchange), route: index, mount: mount) { return routed }
            unsafe respondAtMount(exchange, bytes, at: mount)
        case .methodNotAllowed(let allowed):
            reject(exchange, .methodNotAllowed(snapshot.routes.allowValue(allowed)))
        case .none: reject(exchange, .noRoute)
        case .failed: reject(exchange, .matchFailed)
        }
        return nil
    }

    /// Why a request with an uncommon method or target form is rejected, if it is.
    @inline(never)
    private func rejection(ofUnusual bytes: UnsafeBufferPointer<UInt8>) -> Failure? {
        if head.method == .connect || head.method == .trace { return .methodNeverAllowed }
        if head.isAsteriskForm { return .noRoute }
        let isMisspelled =
            unsafe head.method == .other && snapshot.routes.hasMethodInOtherCase(bytes[head.methodText].span)
        return isMisspelled ? .head(.methodCase) : nil
    }

    /// Rejects a request whose path was not normalized, logging it as received.
    @inline(never)
    private mutating func reject(
        _ exchange: Handle<Exchange>, _ failure: Failure, target bytes: UnsafeBufferPointer<UInt8>
    ) {
        unsafe exchanges[exchange].record.texts.set(rejected: bytes[head.target])
        reject(exchange, failure)
    }

    /// Sets the exchange's normalized path: the one spelling that is matched, forwarded and logged.
    @inline(__always)
    private mutating func normalizePath(_ exchange: Handle<Exchange>, _ bytes: UnsafeBufferPointer<UInt8>) -> Bool {
        scratch.normalizedPath.removeAll()
        let received = unsafe bytes[head.path]
        switch unsafe PathNormalizer.normalize(
            received.span, keepsEncodedSlash: snapshot.paths.keepsEncodedSlash,
            keepsEncodedPercent: snapshot.paths.keepsEncodedPercent, mergesSlashes: snapshot.paths.mergesSlashes,
            into: &scratch.normalizedPath)
        {
        case .unchanged: unsafe exchanges[exchange].record.texts.set(path: received)
        case .rewritten: unsafe exchanges[exchange].record.texts.set(path: unsafe scratch.normalizedPath.bytes)
        case .failure(let failure):
            unsafe reject(exchange, .head(failure), target: bytes)
            return false
        }
        return true
    }

    /// Applies the route's limits before any of the body is read.
    @inline(__always)
    private mutating func applyLimits(
        _ exchange: Handle<Exchange>, route: Int, _ bytes: UnsafeBufferPointer<UInt8>
    ) -> Bool {
        let limit =
            exchanges[exchange].request.isGRPC
            ? snapshot.compiledRoutes[route].streamLimit
            : snapshot.compiledRoutes[route].bodyLimit
        guard exchanges[exchange].body.restrict(to: limit) else {
            reject(exchange, .bodyTooLarge)
            return false
        }
        return unsafe head.upgrade.isEmpty || checkUpgrade(exchange, route: route, bytes)
    }

    // MARK: Authenticator

    @inline(__always)
    private mutating func authorize(
        _ exchange: Handle<Exchange>, _ routed: consuming RoutedRequest, _ bytes: UnsafeBufferPointer<UInt8>,
        _ verification: BoxedVerificationResult?
    ) -> AuthorizedRequest? {
        let authorization = head.authorization >= 0 ? head.fields[head.authorization].value : nil
        let lent = unsafe exchanges.address(of: exchange)
        switch unsafe authenticator.authorize(
            routed, bytes, authorization: authorization, result: verification, at: time, &lent.pointee.credential)
        {
        case .authorized(let request): return request
        case .rejected(let rejection): unsafe reject(exchange, rejection, bytes)
        case .pending(let request): submitVerification(request, of: exchange)
        }
        return nil
    }
}
