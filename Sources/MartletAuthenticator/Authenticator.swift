internal import MartletCore
package import MartletHTTP
internal import MartletProvider
internal import MartletResponder
package import MartletRouter

/// Decides who may pass: authenticates the caller of a request, and authorizes it by its route's policy.
///
/// Owns a loop's caches of decisions and principals, the revocations and the tokens of long exchanges. It knows neither
/// connections nor sockets: its callers carry out what it returns.
package struct Authenticator: ~Copyable {
    private static let tableBytes = 64 * 1024 * 1024

    /// The rules of the configuration that its decisions belong to.
    private(set) var rules: AuthenticationRules
    /// Counts configurations and cache invalidations; verification results are valid within one epoch.
    package private(set) var epoch = 0
    /// The store is unavailable, and the configuration rejects sessions meanwhile.
    var rejectsSessions = false
    /// Header blocks are attached to decisions: no other file can read them.
    private var decisions: TokenTable<CachedDecision>
    package var decisionCount: Int { decisions.count }
    var principals: TokenTable<VerifiedPrincipal>
    /// The header block that was written last.
    var identityBlock = IdentityBlock()
    package var droppedHeaders: [DroppedHeader] { identityBlock.dropped }
    /// The reasons that cached denials refer to.
    var denials = DenialIndex()
    var digests = CredentialDigests()
    /// Cache hits: requests with a cached decision.
    package private(set) var hits = 0
    /// Cache misses: verifications that requests needed.
    package internal(set) var misses = 0
    /// Verifies credentials on the loop.
    var inlineVerifier = InlineVerifier()
    /// Whether no job is queued for it. Stored: the loop reads it in every iteration, without a call.
    package internal(set) var isIdle = true
    /// Recent revocations, and those whose cache entries are still to be removed.
    var revocations = RecentRevocations()
    var sweep = RevocationSweep()
    /// Whether such entries exist. Stored for the same reason.
    package internal(set) var hasUnsweptRevocations = false
    /// Tokens of long exchanges.
    var retainedTokens: [ExchangeID: RetainedToken] = [:]
    /// Some of them need revalidation.
    var needsRevalidation = false

    package init(_ rules: AuthenticationRules) {
        self.rules = rules
        decisions = TokenTable(byteLimit: Authenticator.tableBytes)
        principals = TokenTable(byteLimit: Authenticator.tableBytes)
    }

    // MARK: Deciding

    /// Decides about a request on routes where `Authorization` alone is a credential, and alone decides.
    ///
    /// The order of its checks is that of every request.
    ///
    /// - Parameters:
    ///   - bytes: its head.
    ///   - authorization: where the value of `Authorization` is in `bytes`; `nil` without the field.
    ///   - result: of the verification that an earlier outcome required; `nil` when it was void.
    ///   - credential: what its exchange records about the credential.
    package mutating func authorize(
        _ request: consuming RoutedRequest, _ bytes: UnsafeBufferPointer<UInt8>, authorization: ByteRange?,
        result: BoxedVerificationResult?, at time: LoopTime, _ credential: inout CredentialState
    ) -> AuthorizationOutcome {
        // Compared in place: the derived operator of another module is not inlined.
        if case .none = rules.routes[request.route].mode {
            if rules.routes[request.route].hasConstants { return authorizeAnonymous(request, at: time, &credential) }
            return unsafe .authorized(
                AuthorizedRequest(
                    request, consumedCredential: false, UnsafeBufferPointer(start: nil, count: 0), headerCount: 0))
        }
        guard let authorization else { return authorizeAnonymous(request, at: time, &credential) }
        // A cached token is looked up as it is; its syntax is checked on a miss only.
        if let range = unsafe bearerCandidate(bytes.span, of: authorization),
            let found = unsafe decisions.find(bytes[range], scope: UInt32(request.route), now: time.unix)
        {
            return useCachedDecision(found, request, &credential)
        }
        return unsafe authorizeUncached(request, bytes, authorization, result, time, &credential)
    }

    /// A request without a credential.
    @inline(never)
    private mutating func authorizeAnonymous(
        _ request: consuming RoutedRequest, at time: LoopTime, _ credential: inout CredentialState
    ) -> AuthorizationOutcome {
        let (route, mode) = (request.route, rules.routes[request.route].mode)
        guard mode != .required, mode == .none || !credential.hasForeignKey && acceptsAnonymous(route, at: time) else {
            if mode == .required { credential.offersBasic = rules.routes[route].acceptsBasic }
            return .rejected(Rejection(credential.anonymousFailure))
        }
        _ = identityBlock.writeHeaders(of: nil, route, rules, at: time)
        return unsafe .authorized(
            AuthorizedRequest(
                request, consumedCredential: false, identityBlock.bytes, headerCount: identityBlock.count))
    }

    /// A credential with a cached decision of this route.
    @inline(__always)
    private mutating func useCachedDecision(
        _ found: Int32, _ request: consuming RoutedRequest, _ credential: inout CredentialState
    ) -> AuthorizationOutcome {
        guard let decision = decisions.payload(found) else { return Authenticator.overtaken() }
        hits &+= 1
        credential.identify(provider: decision.provider, subject: decision.subject)
        guard decision.denial < 0 else {
            credential.offersBasic = !credential.isCookie && rules.routes[request.route].acceptsBasic
            return unsafe denied(decision.denial, decisions.attachment(found))
        }
        credential.bind(
            to: decision.revocationID, until: decision.end, decision: found,
            grace: rules.routes[request.route].expiryGrace)
        return unsafe .authorized(
            AuthorizedRequest(
                request, consumedCredential: true, decisions.attachment(found), headerCount: decision.headerCount))
    }

    /// A token without a cached decision of this route, or another value of `Authorization`.
    @inline(never)
    private mutating func authorizeUncached(
        _ request: consuming RoutedRequest, _ bytes: UnsafeBufferPointer<UInt8>, _ authorization: ByteRange,
        _ result: BoxedVerificationResult?, _ time: LoopTime, _ credential: inout CredentialState
    ) -> AuthorizationOutcome {
        do throws(Failure) {
            var presented = unsafe try present(
                .authorization(authorization), bytes, on: request.route,
                // No decision of the route depends on the request, else the other function is called.
                for: { RequestFacts(method: "", host: "", path: "") })
            presented.isSought = !presented.isDigest
            return authorize(request, presented, result, time, &credential)
        } catch {
            credential.offersBasic = rules.routes[request.route].acceptsBasic
            return .rejected(because: error)
        }
    }

    /// A credential that was read.
    mutating func authorize(
        _ request: consuming RoutedRequest, _ presented: PresentedCredential, _ result: BoxedVerificationResult?,
        _ time: LoopTime, _ credential: inout CredentialState
    ) -> AuthorizationOutcome {
        let (form, route) = (presented.form, request.route)
        credential.offersBasic = form != .cookie && rules.routes[route].acceptsBasic
        guard accepts(form, on: route) else { return .rejected(because: rejection(of: form, on: route)) }
        // What is bound has no cached decision: one that was found would be that of a bearer token.
        if credential.proof != .failed, !presented.isSought, !presented.isSingleUse, !presented.isDPoP,
            let found = unsafe decisions.find(presented.key, scope: form.scope(UInt32(route)), now: time.unix)
        {
            defer { if presented.isDigest { credential.decision = -1 } }
            return useCachedDecision(found, request, &credential)
        }
        return authorizeUndecided(request, presented, result, time, &credential)
    }

    /// A credential without a cached decision of this route. Not inlined: results have a size that is found at run time.
    @inline(never)
    private mutating func authorizeUndecided(
        _ request: consuming RoutedRequest, _ presented: PresentedCredential, _ result: BoxedVerificationResult?,
        _ time: LoopTime, _ credential: inout CredentialState
    ) -> AuthorizationOutcome {
        let (form, route) = (presented.form, request.route)
        if credential.proof == .failed, case .failure(let error) = result?.result {
            return proofFailed(error, presented.location(route), &credential)
        }
        if !presented.isSingleUse,
            let found = unsafe principals.find(presented.key, scope: principalScope(form, route), now: time.unix),
            let verified = principals.payload(found)
        {
            return decide(request, presented, verified, isCached: true, time, &credential)
        }
        switch result?.result {
        case .success(let verified)
        where !revocations.contains(verified.revocationID, since: credential.verificationStarted):
            return decide(request, presented, verified, isCached: false, time, &credential)
        case .failure(let error): return failed(error, presented.location(route), &credential)
        case nil, .success:
            return unsafe requestVerification(presented.location(route), Array(presented.value), at: time, &credential)
        }
    }

    /// Decides whether the principal is allowed on this route, and caches the decision as long as it is valid.
    private mutating func decide(
        _ request: consuming RoutedRequest, _ presented: PresentedCredential, _ verified: VerifiedPrincipal,
        isCached: Bool, _ time: LoopTime, _ credential: inout CredentialState
    ) -> AuthorizationOutcome {
        let (form, route, binding) = (presented.form, request.route, verified.principal.identity.binding)
        switch checkProof(presented, verified, binding, isCached: isCached, route, time, &credential) {
        case .held: break
        case .rejected(let failure): return .rejected(Rejection(failure))
        case .needed(let request): return .unproven(request)
        }
        guard let provider = provider(of: verified.principal, route) else {
            if !isCached { cachePrincipal(verified, presented, route: route, isDecisionCached: false, at: time) }
            identityBlock.removeAll()
            identityBlock.writeNames(of: verified.principal, rules)
            return unsafe .rejected(
                Rejection(.credentialInvalid("auth.provider_not_on_route"), names: identityBlock.bytes))
        }
        credential.identify(provider: provider, subject: verified.subject)
        var (expires, end) = (verified.expires, form == .basic ? Int64.max : verified.end)
        var denial: Int32 = -1
        identityBlock.removeAll()
        switch rules.table.routes[route].policy.evaluate(verified.principal, now: time.unixTime) {
        case .allowed(let until):
            (expires, end) = (min(expires, until.seconds), min(end, until.milliseconds))
            expires = min(expires, identityBlock.writeHeaders(of: verified.principal, route, rules, at: time))
        case .denied(let reason): denial = denials.index(of: reason)
        }
        let headerCount = identityBlock.count
        identityBlock.writeNames(of: verified.principal, rules)
        var entry: Int32 = -1
        // What is bound is decided each time: a cached decision would not ask for the proof.
        if expires > time.unix, binding == nil, !presented.isSingleUse {
            entry = unsafe decisions.insert(
                presented.key, scope: form.scope(UInt32(route)), expires: expires, now: time.unix,
                attachment: unsafe identityBlock.bytes,
                payload: CachedDecision(
                    denial: denial, provider: provider, subject: verified.subject, headerCount: headerCount,
                    revocationID: verified.revocationID, end: end))
        }
        if !isCached {
            let isDecisionCached = entry >= 0 && expires >= verified.expires
            cachePrincipal(verified, presented, route: route, isDecisionCached: isDecisionCached, at: time)
        }
        guard denial < 0 else { return unsafe denied(denial, identityBlock.bytes) }
        credential.bind(
            to: verified.revocationID, until: end, decision: presented.isDigest ? -1 : entry,
            grace: rules.routes[route].expiryGrace)
        if entry < 0, !presented.isDigest, binding == nil {
            unsafe retain(presented.value, form, of: request.exchange, &credential)
        }
        return unsafe .authorized(
            AuthorizedRequest(request, consumedCredential: true, identityBlock.bytes, headerCount: headerCount))
    }

    // MARK: Invalidation

    /// Adopts a new configuration: a decision belongs to the configuration that made it.
    package mutating func adopt(_ next: AuthenticationRules) {
        rules = next
        invalidate()
    }

    /// Drops every cached decision and principal, and makes results of verifications in progress void.
    package mutating func invalidate() {
        epoch += 1
        clearCaches()
    }

    /// Drops every cached decision and principal.
    mutating func clearCaches() {
        decisions.removeAll()
        principals.removeAll()
        denials.removeAll()
    }

    /// Removes the cached decisions about credentials that were revoked.
    mutating func removeDecisions(of revocationIDs: Set<UInt64>) {
        decisions.removeAll { revocationIDs.contains($0.revocationID) }
    }

    /// The token of a cached decision, if it is still that of the same credential; valid until the cache is changed.
    func token(ofDecision index: Int32, for revocationID: UInt64) -> UnsafeBufferPointer<UInt8>? {
        unsafe decisions.token(index, if: { $0.revocationID == revocationID })
    }
}

/// A request whose caller is allowed on its route, with the identity headers for its upstream.
///
/// Only the authenticator's decision, in this file, can make one, and only from it does the forwarder get identity
/// headers: code that forwards a request that was not authorized does not compile.
@usableFromInline
@safe package struct AuthorizedRequest: ~Copyable {
    package let exchange: ExchangeID
    // In 32 bits, beside the flag: the outcome then fits into the registers that return it.
    package let route: Int32
    /// Whether the gateway consumed a credential of the request.
    package let consumedCredential: Bool
    /// The identity headers, then the names. Borrowed from the authenticator: valid until that decides again.
    @usableFromInline let block: UnsafePointer<UInt8>?
    @usableFromInline let headerCount: Int32
    @usableFromInline let nameCount: Int32

    @inline(__always)
    fileprivate init(
        _ routed: consuming RoutedRequest, consumedCredential: Bool, _ block: UnsafeBufferPointer<UInt8>,
        headerCount: Int32
    ) {
        exchange = routed.exchange
        route = Int32(truncatingIfNeeded: routed.route)
        self.consumedCredential = consumedCredential
        unsafe self.block = block.baseAddress
        self.headerCount = headerCount
        nameCount = Int32(truncatingIfNeeded: block.count) &- headerCount
    }
}
