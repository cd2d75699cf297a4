internal import MartletConfig
internal import MartletCore
internal import MartletHTTP
internal import MartletProvider
internal import MartletRouter

/// Router, authenticator and policy: from a parsed head to a request that may be forwarded.
///
/// Each phase consumes the value of the one before and is the only code that can make the next, so a request that was not
/// authenticated or not authorised cannot reach ``Worker/forward(_:_:)``: it does not type-check.
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
/// The identity headers to inject stand with its grant, or in the worker's `block` where it has none.
struct AuthorizedRequest: ~Copyable {
    let exchange: Int32
    let route: Int
    /// Whether a credential of the request was used up by the gateway.
    let consumedCredential: Bool
    /// Where its grant stands, or −1.
    let grant: Int32
    fileprivate init(_ routed: consuming RoutedRequest, consumedCredential: Bool, grant: Int32 = -1) {
        exchange = routed.exchange
        route = routed.route
        self.consumedCredential = consumedCredential
        self.grant = grant
    }
}

extension Worker {
    /// Takes a request whose head stands in `bytes` (and parsed in `head`) as far as it goes now: to an upstream, to a
    /// refusal, or to a wait for the verdict on its credential.
    mutating func admit(_ exchange: Int32, _ bytes: UnsafeBufferPointer<UInt8>, judgement: Judgement?) {
        if clients[exchanges[exchange].client].handler != nil, unsafe handOver(exchange, bytes) { return }
        if clients[exchanges[exchange].client].rules.redirectPort > 0 { return unsafe redirect(exchange, bytes) }
        guard let routed = unsafe route(exchange, bytes) else { return }
        guard let authorized = unsafe authorize(routed, bytes, judgement) else { return }
        unsafe forward(authorized, bytes)
    }

    /// Hands a request to the handler of its listener, if that takes it.
    @inline(never)
    private mutating func handOver(_ exchange: Int32, _ bytes: UnsafeBufferPointer<UInt8>) -> Bool {
        guard let handler = clients[exchanges[exchange].client].handler, unsafe handler.takes(bytes[head.path]) else {
            return false
        }
        unsafe answerLocally(exchange, bytes, handler.answer)
        return true
    }

    /// Sends the client to the same target by https (RFC 9110 §15.4.9: with the same method).
    private mutating func redirect(_ exchange: Int32, _ bytes: UnsafeBufferPointer<UInt8>) {
        guard head.method != .connect, !head.isAsteriskForm else { return refuse(exchange, .noRoute) }
        guard unsafe normalizePath(exchange, bytes) else { return }
        let port = clients[exchanges[exchange].client].rules.redirectPort
        var location = "https://"
        var authority = unsafe String(decoding: bytes[head.authority], as: UTF8.self)[...]
        if authority.last != "]", let colon = authority.lastIndex(of: ":") { authority = authority[..<colon] }
        location += authority
        if port != 443 { location += ":\(port)" }
        unsafe location += String(decoding: exchanges[exchange].texts.path, as: UTF8.self)
        unsafe location += String(decoding: bytes[head.query], as: UTF8.self)
        refuse(exchange, .movedToHTTPS(location))
    }

    // MARK: Router

    @inline(__always)
    private mutating func route(_ exchange: Int32, _ bytes: UnsafeBufferPointer<UInt8>) -> RoutedRequest? {
        // The methods that are usual come first.
        if head.method.rawValue >= Method.trace.rawValue || head.isAsteriskForm,
            let failure = unsafe refusal(ofRare: bytes)
        {
            unsafe refuse(exchange, failure, target: bytes)
            return nil
        }
        guard unsafe normalizePath(exchange, bytes) else { return nil }
        let path = unsafe exchanges[exchange].texts.path
        // The snapshot keeps the table: counting one more reference for the call would be for nothing.
        let found = unsafe Unmanaged.passUnretained(snapshot.routes)._withUnsafeGuaranteedRef {
            unsafe $0.match(
                method: bytes[head.methodText].span, authority: bytes[head.authority].span, path: path.span)
        }
        switch found {
        case .route(let index):
            exchanges[exchange].routeSlot = slotOfRoute[index]
            guard unsafe limit(exchange, route: index, bytes) else { return nil }
            let mount = snapshot.facts[index].mount
            if mount < 0 { return RoutedRequest(exchange: exchange, route: index) }
            unsafe answer(exchange, bytes, at: mount)
        case .methodNotAllowed(let allowed):
            refuse(exchange, .methodNotAllowed(snapshot.routes.allowValue(allowed)))
        case .none: refuse(exchange, .noRoute)
        case .failed: refuse(exchange, .matchFailed)
        }
        return nil
    }

    /// Why a request of a method or form that is not usual goes no further, if so.
    @inline(never)
    private func refusal(ofRare bytes: UnsafeBufferPointer<UInt8>) -> Failure? {
        if head.method == .connect || head.method == .trace { return .methodNeverAllowed }
        if head.isAsteriskForm { return .noRoute }
        let isMisspelled =
            unsafe head.method == .other && snapshot.routes.hasMethodInOtherCase(bytes[head.methodText].span)
        return isMisspelled ? .head(.methodCase) : nil
    }

    /// Refuses a request whose path has no spelling to log but its own.
    @inline(never)
    private mutating func refuse(_ exchange: Int32, _ failure: Failure, target bytes: UnsafeBufferPointer<UInt8>) {
        unsafe exchanges[exchange].texts.set(refused: bytes[head.target])
        refuse(exchange, failure)
    }

    /// Puts the normalised path into the exchange: the one spelling that is matched, forwarded and logged.
    @inline(__always)
    private mutating func normalizePath(_ exchange: Int32, _ bytes: UnsafeBufferPointer<UInt8>) -> Bool {
        path.removeAll()
        let received = unsafe bytes[head.path]
        switch unsafe PathNormalizer.normalize(
            received.span, keepsEncodedSlash: snapshot.paths.keepsEncodedSlash,
            keepsEncodedPercent: snapshot.paths.keepsEncodedPercent, mergesSlashes: snapshot.paths.mergesSlashes,
            into: &path)
        {
        case .unchanged: unsafe exchanges[exchange].texts.set(path: received)
        case .rewritten: unsafe exchanges[exchange].texts.set(path: unsafe path.bytes)
        case .failure(let failure):
            unsafe refuse(exchange, .head(failure), target: bytes)
            return false
        }
        return true
    }

    /// Applies the route's limits before anything of the body is read.
    @inline(__always)
    private mutating func limit(_ exchange: Int32, route: Int, _ bytes: UnsafeBufferPointer<UInt8>) -> Bool {
        let limit =
            exchanges[exchange].isGRPC ? snapshot.facts[route].streamLimit : snapshot.facts[route].bodyLimit
        exchanges[exchange].bodyLimit = limit
        if exchanges[exchange].remaining > limit {
            refuse(exchange, .bodyTooLarge)
            return false
        }
        return unsafe head.upgrade.isEmpty || admitsUpgrade(exchange, route: route, bytes)
    }

    // MARK: Authenticator and policy

    @inline(__always)
    private mutating func authorize(
        _ routed: consuming RoutedRequest, _ bytes: UnsafeBufferPointer<UInt8>, _ judgement: Judgement?
    ) -> AuthorizedRequest? {
        block.removeAll()
        let index = routed.route
        let mode = snapshot.facts[index].mode
        guard mode != .none else { return AuthorizedRequest(routed, consumedCredential: false) }
        guard head.authorization >= 0 else {
            guard mode == .optional else {
                exchanges[routed.exchange].offersBasic = snapshot.facts[index].takesBasic
                refuse(routed.exchange, .credentialMissing)
                return nil
            }
            return authorizeAnonymous(routed)
        }
        // A token that was judged before is known as it stands; what its value may look like is asked on a miss only.
        let value = head.fields[head.authorization].value
        if let range = unsafe bearerCandidate(bytes.span, of: value),
            let found = unsafe grants.find(bytes[range], scope: UInt32(index), now: unixTime)
        {
            return useGrant(found, routed)
        }
        exchanges[routed.exchange].offersBasic = snapshot.facts[index].takesBasic
        // What waited for its verdict was looked at when it came.
        let judged = judgement == nil ? nil : unsafe bearerCandidate(bytes.span, of: value)
        switch unsafe judged.map(AuthorizationValue.bearer) ?? AuthorizationValue(bytes.span, value) {
        case .bearer(let range):
            let form = unsafe OwnToken.isOne(bytes[range]) ? CredentialForm.session : .direct
            return unsafe authorize(routed, form, value: bytes[range], key: bytes[range], judgement)
        case .basic(let range):
            // Remembered by a keyed digest, never as it stands: its password is good for more than this gateway.
            unsafe digestPair(unsafe bytes[range])
            return unsafe authorize(routed, .basic, value: bytes[range], key: pairDigest.bytes, judgement)
        case .other: refuse(routed.exchange, .credentialInvalid("auth.scheme_not_accepted"))
        case .malformed: refuse(routed.exchange, .credentialInvalid("auth.malformed_authorization"))
        }
        return nil
    }

    private mutating func authorizeAnonymous(_ routed: consuming RoutedRequest) -> AuthorizedRequest? {
        let now = MartletCore.UnixTime(seconds: unixTime)
        if case .denied = snapshot.routes.routes[routed.route].policy.judge(nil, now: now) {
            refuse(routed.exchange, .credentialMissing)
            return nil
        }
        render(nil, route: routed.route)
        return AuthorizedRequest(routed, consumedCredential: false)
    }

    /// A token that this route has decided on before.
    private mutating func useGrant(_ found: Int32, _ routed: consuming RoutedRequest) -> AuthorizedRequest? {
        guard let grant = grants.payload(found) else { return nil }
        counters.tokenHits &+= 1
        exchanges[routed.exchange].provider = grant.provider
        guard grant.denial < 0 else {
            refuse(routed.exchange, .notAllowed(counters.reasons[Int(grant.denial)]))
            return nil
        }
        bind(routed.exchange, to: grant.number, until: grant.end, grant: found, route: routed.route)
        return AuthorizedRequest(routed, consumedCredential: true, grant: found)
    }

    /// A credential that this route has not decided on, or not lately.
    private mutating func authorize(
        _ routed: consuming RoutedRequest, _ form: CredentialForm, value: UnsafeBufferPointer<UInt8>,
        key: UnsafeBufferPointer<UInt8>, _ judgement: Judgement?
    ) -> AuthorizedRequest? {
        let (exchange, route) = (routed.exchange, routed.route)
        guard isAccepted(form, exchange, route) else { return nil }
        if form == .basic,
            let found = unsafe grants.find(key, scope: form.scope(UInt32(route)), now: unixTime)
        {
            let authorized = useGrant(found, routed)
            exchanges[exchange].grant = -1
            return authorized
        }
        guard
            let (proven, isKept) = unsafe principal(
                form, value: value, key: key, exchange, route, judgement?.verdict)
        else { return nil }
        guard let provider = provider(of: proven.principal, route) else {
            if !isKept { unsafe keep(proven, form, key: key, route: route, isGranted: false) }
            refuse(exchange, .credentialInvalid("auth.provider_not_on_route"))
            return nil
        }
        exchanges[exchange].provider = provider
        return unsafe decide(routed, proven, form, isKept: isKept, provider: provider, key: key)
    }

    /// The place of the provider that vouches for a principal, where the route asks it.
    func provider(of principal: Principal, _ route: Int) -> Int32? {
        snapshot.plans[Int(snapshot.planOfRoute[route])].providers
            .first { snapshot.providers[Int($0)].name.hasSameBytes(as: principal.provider) }
    }

    /// Decides whether the principal may pass this route, and remembers the decision as long as it can hold.
    private mutating func decide(
        _ routed: consuming RoutedRequest, _ proven: ProvenPrincipal, _ form: CredentialForm, isKept: Bool,
        provider: Int32, key: UnsafeBufferPointer<UInt8>
    ) -> AuthorizedRequest? {
        let route = routed.route
        var expires = proven.expires
        var end = form == .basic ? Int64.max : proven.end
        var denial: Int32 = -1
        switch snapshot.routes.routes[route].policy.judge(
            proven.principal, now: MartletCore.UnixTime(seconds: unixTime))
        {
        case .allowed(let until): (expires, end) = (min(expires, until.seconds), min(end, until.milliseconds))
        case .denied(let code): denial = counters.reason(code)
        }
        if denial < 0 {
            render(proven.principal, route: route)
            expires = min(expires, sign(proven.principal, route: route))
        }
        var place: Int32 = -1
        if expires > unixTime {
            place = unsafe grants.insert(
                key, scope: form.scope(UInt32(route)), expires: expires, now: unixTime, attachment: unsafe block.bytes,
                payload: Grant(denial: denial, provider: provider, number: proven.number, end: end))
        }
        if !isKept {
            let isGranted = place >= 0 && expires >= proven.expires
            unsafe keep(proven, form, key: key, route: route, isGranted: isGranted)
        }
        guard denial < 0 else {
            refuse(routed.exchange, .notAllowed(counters.reasons[Int(denial)]))
            return nil
        }
        // What is kept of a name and a password is a digest, which nobody could judge again.
        let token = form == .basic ? -1 : place
        bind(routed.exchange, to: proven.number, until: end, grant: token, route: route)
        return AuthorizedRequest(routed, consumedCredential: true)
    }

    private mutating func render(_ principal: Principal?, route: Int) {
        let injection = snapshot.routes.routes[route].injection
        for dropped in snapshot.routes.injections[injection].render(principal, into: &block) {
            _ = counters.reason(dropped.reason)
        }
    }

    /// Adds the signed statement of who is calling, where upstreams get one.
    /// - Returns: until when the block may be used again, in Unix seconds.
    private mutating func sign(_ principal: Principal, route: Int) -> Int64 {
        guard let assertion = snapshot.signIn.assertion else { return .max }
        let (place, group) = (snapshot.routes.routes[route], snapshot.facts[route].upstream)
        let dropped = assertion.append(
            for: principal, injection: snapshot.routes.injections[place.injection],
            upstream: snapshot.upstreams[group].name, now: MartletCore.UnixTime(seconds: unixTime), into: &block)
        if let dropped { _ = counters.reason(dropped.reason) }
        return unixTime &+ assertion.lifetime.wholeSeconds
    }
}
