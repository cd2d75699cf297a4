internal import MartletConfig
internal import MartletCore
internal import MartletHTTP
internal import MartletProvider
internal import MartletRouter

/// Router, authenticator and policy: from a parsed head to a request that may be forwarded.
///
/// Each phase consumes the value of the previous one and is the only code that can make the next, so a request that was
/// not authenticated or not authorized cannot reach ``EventLoop/forward(_:_:)``: it does not type-check.
struct RoutedRequest: ~Copyable {
    let exchange: Int32
    let route: Int
    fileprivate init(exchange: Int32, route: Int) {
        self.exchange = exchange
        self.route = route
    }
}

/// A request whose caller is allowed on its route.
///
/// The identity headers to inject are attached to its cached decision, or in the loop's `identityBlock` where it has
/// none.
struct AuthorizedRequest: ~Copyable {
    let exchange: Int32
    let route: Int
    /// Whether the gateway consumed a credential of the request.
    let consumedCredential: Bool
    /// Index of its cached decision, or −1.
    let decision: Int32
    fileprivate init(_ routed: consuming RoutedRequest, consumedCredential: Bool, decision: Int32 = -1) {
        exchange = routed.exchange
        route = routed.route
        self.consumedCredential = consumedCredential
        self.decision = decision
    }
}

extension EventLoop {
    /// Processes a request whose head is in `bytes` (and parsed in `head`): forwards it, rejects it, or waits for the
    /// verification of its credential.
    mutating func admit(
        _ exchange: Int32, _ bytes: UnsafeBufferPointer<UInt8>, verification: BoxedVerificationResult?
    ) {
        if downstreams[exchanges[exchange].downstream].handler != nil, unsafe handToListenerHandler(exchange, bytes) {
            return
        }
        if downstreams[exchanges[exchange].downstream].rules.redirectPort > 0 {
            return unsafe redirectToHTTPS(exchange, bytes)
        }
        guard let routed = unsafe route(exchange, bytes) else { return }
        guard let authorized = unsafe authorize(routed, bytes, verification) else { return }
        unsafe forward(authorized, bytes)
    }

    /// Redirects the client to the same target on https, with the same method (RFC 9110 §15.4.9).
    private mutating func redirectToHTTPS(_ exchange: Int32, _ bytes: UnsafeBufferPointer<UInt8>) {
        guard head.method != .connect, !head.isAsteriskForm else { return reject(exchange, .noRoute) }
        guard unsafe normalizePath(exchange, bytes) else { return }
        let port = downstreams[exchanges[exchange].downstream].rules.redirectPort
        var location = "https://"
        var authority = unsafe String(decoding: bytes[head.authority], as: UTF8.self)[...]
        if authority.last != "]", let colon = authority.lastIndex(of: ":") { authority = authority[..<colon] }
        location += authority
        if port != 443 { location += ":\(port)" }
        unsafe location += String(decoding: exchanges[exchange].texts.path, as: UTF8.self)
        unsafe location += String(decoding: bytes[head.query], as: UTF8.self)
        reject(exchange, .movedToHTTPS(location))
    }

    // MARK: Router

    @inline(__always)
    private mutating func route(_ exchange: Int32, _ bytes: UnsafeBufferPointer<UInt8>) -> RoutedRequest? {
        // Common methods come first.
        if head.method.rawValue >= Method.trace.rawValue || head.isAsteriskForm,
            let failure = unsafe rejection(ofUnusual: bytes)
        {
            unsafe reject(exchange, failure, target: bytes)
            return nil
        }
        guard unsafe normalizePath(exchange, bytes) else { return nil }
        let path = unsafe exchanges[exchange].texts.path
        // The snapshot retains the table: no need to retain it again for the call.
        let found = unsafe Unmanaged.passUnretained(snapshot.routes)._withUnsafeGuaranteedRef {
            unsafe $0.match(
                method: bytes[head.methodText].span, authority: bytes[head.authority].span, path: path.span)
        }
        switch found {
        case .route(let index):
            exchanges[exchange].routeSlot = routeSlots[index]
            guard unsafe applyLimits(exchange, route: index, bytes) else { return nil }
            let mount = snapshot.compiledRoutes[index].mount
            if mount < 0 { return RoutedRequest(exchange: exchange, route: index) }
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
    private mutating func reject(_ exchange: Int32, _ failure: Failure, target bytes: UnsafeBufferPointer<UInt8>) {
        unsafe exchanges[exchange].texts.set(rejected: bytes[head.target])
        reject(exchange, failure)
    }

    /// Sets the exchange's normalized path: the one spelling that is matched, forwarded and logged.
    @inline(__always)
    private mutating func normalizePath(_ exchange: Int32, _ bytes: UnsafeBufferPointer<UInt8>) -> Bool {
        normalizedPath.removeAll()
        let received = unsafe bytes[head.path]
        switch unsafe PathNormalizer.normalize(
            received.span, keepsEncodedSlash: snapshot.paths.keepsEncodedSlash,
            keepsEncodedPercent: snapshot.paths.keepsEncodedPercent, mergesSlashes: snapshot.paths.mergesSlashes,
            into: &normalizedPath)
        {
        case .unchanged: unsafe exchanges[exchange].texts.set(path: received)
        case .rewritten: unsafe exchanges[exchange].texts.set(path: unsafe normalizedPath.bytes)
        case .failure(let failure):
            unsafe reject(exchange, .head(failure), target: bytes)
            return false
        }
        return true
    }

    /// Applies the route's limits before any of the body is read.
    @inline(__always)
    private mutating func applyLimits(_ exchange: Int32, route: Int, _ bytes: UnsafeBufferPointer<UInt8>) -> Bool {
        let limit =
            exchanges[exchange].isGRPC
            ? snapshot.compiledRoutes[route].streamLimit
            : snapshot.compiledRoutes[route].bodyLimit
        exchanges[exchange].bodyLimit = limit
        if exchanges[exchange].remaining > limit {
            reject(exchange, .bodyTooLarge)
            return false
        }
        return unsafe head.upgrade.isEmpty || checkUpgrade(exchange, route: route, bytes)
    }

    // MARK: Authenticator and policy

    @inline(__always)
    private mutating func authorize(
        _ routed: consuming RoutedRequest, _ bytes: UnsafeBufferPointer<UInt8>, _ verification: BoxedVerificationResult?
    ) -> AuthorizedRequest? {
        identityBlock.removeAll()
        let index = routed.route
        let mode = snapshot.compiledRoutes[index].mode
        guard mode != .none else { return AuthorizedRequest(routed, consumedCredential: false) }
        guard head.authorization >= 0 else {
            guard mode == .optional else {
                exchanges[routed.exchange].offersBasic = snapshot.compiledRoutes[index].acceptsBasic
                reject(routed.exchange, .credentialMissing)
                return nil
            }
            return authorizeAnonymous(routed)
        }
        // A cached token is looked up as it is; its syntax is checked on a miss only.
        let value = head.fields[head.authorization].value
        if let range = unsafe bearerCandidate(bytes.span, of: value),
            let found = unsafe decisions.find(bytes[range], scope: UInt32(index), now: unixTime)
        {
            return useCachedDecision(found, routed)
        }
        exchanges[routed.exchange].offersBasic = snapshot.compiledRoutes[index].acceptsBasic
        // A request that waited for verification was checked before.
        let resumedRange = verification == nil ? nil : unsafe bearerCandidate(bytes.span, of: value)
        switch unsafe resumedRange.map(AuthorizationValue.bearer) ?? AuthorizationValue(bytes.span, value) {
        case .bearer(let range):
            let form = unsafe OwnToken.matches(bytes[range]) ? CredentialForm.session : .direct
            return unsafe authorizeUncached(routed, form, value: bytes[range], key: bytes[range], verification)
        case .basic(let range):
            // Cached under a keyed digest, never as it is: the password may be used elsewhere, too.
            unsafe digestBasic(unsafe bytes[range])
            return unsafe authorizeUncached(routed, .basic, value: bytes[range], key: basicDigest.bytes, verification)
        case .other: reject(routed.exchange, .credentialInvalid("auth.scheme_not_accepted"))
        case .malformed: reject(routed.exchange, .credentialInvalid("auth.malformed_authorization"))
        }
        return nil
    }

    private mutating func authorizeAnonymous(_ routed: consuming RoutedRequest) -> AuthorizedRequest? {
        let now = MartletCore.UnixTime(seconds: unixTime)
        if case .denied = snapshot.routes.routes[routed.route].policy.evaluate(nil, now: now) {
            reject(routed.exchange, .credentialMissing)
            return nil
        }
        renderIdentity(nil, route: routed.route)
        return AuthorizedRequest(routed, consumedCredential: false)
    }

    /// A token with a cached decision of this route.
    private mutating func useCachedDecision(_ found: Int32, _ routed: consuming RoutedRequest) -> AuthorizedRequest? {
        guard let decision = decisions.payload(found) else { return nil }
        counters.tokenHits &+= 1
        exchanges[routed.exchange].provider = decision.provider
        guard decision.denial < 0 else {
            reject(routed.exchange, .notAllowed(counters.reasons[Int(decision.denial)]))
            return nil
        }
        bindCredential(
            routed.exchange, to: decision.revocationID, until: decision.end, decision: found, route: routed.route)
        return AuthorizedRequest(routed, consumedCredential: true, decision: found)
    }

    /// A credential without a cached decision of this route.
    private mutating func authorizeUncached(
        _ routed: consuming RoutedRequest, _ form: CredentialForm, value: UnsafeBufferPointer<UInt8>,
        key: UnsafeBufferPointer<UInt8>, _ verification: BoxedVerificationResult?
    ) -> AuthorizedRequest? {
        let (exchange, route) = (routed.exchange, routed.route)
        guard acceptsCredential(form, exchange, route) else { return nil }
        if form == .basic,
            let found = unsafe decisions.find(key, scope: form.scope(UInt32(route)), now: unixTime)
        {
            let authorized = useCachedDecision(found, routed)
            exchanges[exchange].decision = -1
            return authorized
        }
        guard
            let (verified, isCached) = unsafe principal(
                form, value: value, key: key, exchange, route, verification?.result)
        else { return nil }
        guard let provider = provider(of: verified.principal, route) else {
            if !isCached { unsafe cachePrincipal(verified, form, key: key, route: route, isDecisionCached: false) }
            reject(exchange, .credentialInvalid("auth.provider_not_on_route"))
            return nil
        }
        exchanges[exchange].provider = provider
        return unsafe decide(routed, verified, form, isCached: isCached, provider: provider, key: key)
    }

    /// Index of the provider that verified a principal, if the route accepts it.
    func provider(of principal: Principal, _ route: Int) -> Int32? {
        snapshot.plans[Int(snapshot.planOfRoute[route])].providers
            .first { snapshot.providers[Int($0)].name.hasSameBytes(as: principal.provider) }
    }

    /// Decides whether the principal is allowed on this route, and caches the decision as long as it is valid.
    private mutating func decide(
        _ routed: consuming RoutedRequest, _ verified: VerifiedPrincipal, _ form: CredentialForm, isCached: Bool,
        provider: Int32, key: UnsafeBufferPointer<UInt8>
    ) -> AuthorizedRequest? {
        let route = routed.route
        var expires = verified.expires
        var end = form == .basic ? Int64.max : verified.end
        var denial: Int32 = -1
        switch snapshot.routes.routes[route].policy.evaluate(
            verified.principal, now: MartletCore.UnixTime(seconds: unixTime))
        {
        case .allowed(let until): (expires, end) = (min(expires, until.seconds), min(end, until.milliseconds))
        case .denied(let code): denial = counters.reason(code)
        }
        if denial < 0 {
            renderIdentity(verified.principal, route: route)
            expires = min(expires, appendAssertion(verified.principal, route: route))
        }
        var entry: Int32 = -1
        if expires > unixTime {
            entry = unsafe decisions.insert(
                key, scope: form.scope(UInt32(route)), expires: expires, now: unixTime,
                attachment: unsafe identityBlock.bytes,
                payload: CachedDecision(
                    denial: denial, provider: provider, revocationID: verified.revocationID, end: end))
        }
        if !isCached {
            let isDecisionCached = entry >= 0 && expires >= verified.expires
            unsafe cachePrincipal(verified, form, key: key, route: route, isDecisionCached: isDecisionCached)
        }
        guard denial < 0 else {
            reject(routed.exchange, .notAllowed(counters.reasons[Int(denial)]))
            return nil
        }
        // A name and password is cached as a digest, which cannot be revalidated.
        let token = form == .basic ? -1 : entry
        bindCredential(routed.exchange, to: verified.revocationID, until: end, decision: token, route: route)
        return AuthorizedRequest(routed, consumedCredential: true)
    }
}
