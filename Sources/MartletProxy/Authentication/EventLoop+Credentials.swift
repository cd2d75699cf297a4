internal import MartletCore
internal import MartletCrypto
internal import MartletProvider
internal import MartletRouter

/// The slow half of the authenticator: credentials that are not cached, and what invalidates the caches.
extension EventLoop {
    /// Whether the route accepts credentials of that form; rejects the request otherwise.
    mutating func acceptsCredential(_ form: CredentialForm, _ exchange: Int32, _ route: Int) -> Bool {
        let rejection: Failure? =
            switch form {
            case .session where !snapshot.compiledRoutes[route].acceptsSessions || snapshot.signIn.sessions == nil:
                .credentialInvalid("auth.sessions_not_accepted")
            case .session where rejectsSessions: .authUnavailable("auth.store_down")
            case .direct where !snapshot.compiledRoutes[route].acceptsDirect:
                .credentialInvalid("auth.direct_not_accepted")
            case .basic where !snapshot.compiledRoutes[route].acceptsBasic:
                .credentialInvalid(
                    "auth.scheme_not_accepted")
            default: nil
            }
        guard let rejection else { return true }
        reject(exchange, rejection)
        return false
    }

    /// The principal behind a credential that this route has not seen, and whether it is cached already; `nil` when the
    /// request waits or was rejected.
    mutating func principal(
        _ form: CredentialForm, value: UnsafeBufferPointer<UInt8>, key: UnsafeBufferPointer<UInt8>,
        _ exchange: Int32, _ route: Int, _ result: VerificationResult?
    ) -> (verified: VerifiedPrincipal, isCached: Bool)? {
        if let found = unsafe principals.find(key, scope: principalScope(form, route), now: unixTime) {
            return principals.payload(found).map { ($0, true) }
        }
        switch result {
        case .success(let verified)
        where !wasRevoked(verified.revocationID, since: exchanges[exchange].verificationStarted):
            return (verified, false)
        case .failure(let error):
            if debug.isOn { unsafe logRejection(error, form, exchange, Array(value), route) }
            reject(exchange, .authentication(error))
        case nil, .success:
            unsafe requestVerification(
                form, exchange, Array(value), plan: snapshot.plans[Int(snapshot.planOfRoute[route])])
        }
        return nil
    }

    /// Logs why a credential was rejected.
    @inline(never)
    private func logRejection(
        _ error: AuthenticationError, _ form: CredentialForm, _ exchange: Int32, _ value: [UInt8], _ route: Int
    ) {
        var provider: ProviderHandle?
        let plan = snapshot.plans[Int(snapshot.planOfRoute[route])]
        if case .provider(let handle) = verificationTarget(form, value, plan) {
            provider = handle
        }
        debug.credentialRejected(
            requestID: unsafe String(decoding: exchanges[exchange].texts.requestID, as: UTF8.self), error,
            provider: provider, credential: form == .basic ? Credential(basic: value) : Credential(bearer: value),
            in: AuthenticationContext(
                now: MartletCore.UnixTime(seconds: unixTime),
                deadline: MonotonicTime(nanoseconds: now &+ EventLoop.verificationTimeout),
                client: network(of: exchange)))
    }

    /// A session's principal does not depend on the route; a provider's result depends on which provider was chosen.
    private func principalScope(_ form: CredentialForm, _ route: Int) -> UInt32 {
        form.scope(form == .session ? 0 : UInt32(snapshot.planOfRoute[route]))
    }

    /// Caches the principal of a credential, for other routes and for when this route has to decide again.
    ///
    /// - Parameter isDecisionCached: the route's decision is cached for as long as the credential is valid. Where no
    ///   other route uses the same providers, the principal would never be looked up.
    mutating func cachePrincipal(
        _ verified: VerifiedPrincipal, _ form: CredentialForm, key: UnsafeBufferPointer<UInt8>, route: Int,
        isDecisionCached: Bool
    ) {
        let isUseful = form != .direct || !isDecisionCached || snapshot.isShared[Int(snapshot.planOfRoute[route])]
        guard isUseful, verified.expires > unixTime else { return }
        unsafe principals.insert(
            key, scope: principalScope(form, route), expires: verified.expires, now: unixTime,
            attachment: unsafe UnsafeBufferPointer(start: nil, count: 0), payload: verified,
            weight: verified.principal.weight)
    }

    /// Submits a credential for verification, inline or on another thread; the head waits in the connection's input.
    private mutating func requestVerification(
        _ form: CredentialForm, _ exchange: Int32, _ value: [UInt8], plan: AuthenticationPlan
    ) {
        counters.tokenMisses &+= 1
        exchanges[exchange].verificationAttempts &+= 1
        guard exchanges[exchange].verificationAttempts <= EventLoop.verificationLimit else {
            return reject(exchange, .authUnavailable("auth.verdict_overtaken"))
        }
        guard let target = verificationTarget(form, value, plan) else {
            return reject(exchange, .credentialInvalid("auth.no_provider_claims_it"))
        }
        let downstream = exchanges[exchange].downstream
        let deadline = now &+ EventLoop.verificationTimeout
        let job = Verifier.Job(
            credential: form == .basic ? Credential(basic: value) : Credential(bearer: value), target: target,
            subjects: snapshot.signIn.subjects,
            context: AuthenticationContext(
                now: MartletCore.UnixTime(seconds: unixTime), deadline: MonotonicTime(nanoseconds: deadline),
                client: network(of: exchange), address: form == .session ? address(of: exchange) : []),
            mailbox: mailbox, exchange: exchange, generation: exchanges[exchange].generation, epoch: epoch)
        exchanges[exchange].verificationStarted = now
        downstreams[downstream].phase = .authenticating
        arm(downstream: downstream, at: deadline)
        if !inlineVerifier.enqueue(job) { verifier.submit(job) }
    }

    /// Verifies some of the inline jobs, after everything else of the iteration, and resumes their requests.
    mutating func verifyInline() {
        guard !inlineVerifier.isIdle else { return }
        let threads = verifier
        for (job, result) in inlineVerifier.run(by: clock, others: { threads.submit($0) }) {
            completeVerification(job.exchange, job.generation, epoch: job.epoch, result)
        }
    }

    private func verificationTarget(
        _ form: CredentialForm, _ value: [UInt8], _ plan: AuthenticationPlan
    ) -> Verifier.Target? {
        switch form {
        case .session: snapshot.signIn.sessions.map { .sessions($0) }
        case .direct:
            ProviderChoice.pick(value, among: plan.providers, of: snapshot.providers)
                .map { .provider(snapshot.providers[Int($0)]) }
        case .basic:
            plan.providers.first { snapshot.providers[Int($0)].accepts.contains(.basic) }
                .map { .provider(snapshot.providers[Int($0)]) }
        }
    }

    /// The client's network, as throttles count it: that of the peer, or of the client that trusted proxies name.
    func network(of exchange: Int32) -> ClientNetwork? { ClientNetwork(address: address(of: exchange)) }

    /// The client's address: 16 bytes, or none for a Unix socket.
    func address(of exchange: Int32) -> [UInt8] {
        let forwarded = exchanges[exchange].forwardedNetwork
        let address = forwarded.isEmpty ? downstreams[exchanges[exchange].downstream].address.bytes : forwarded
        return address.contains { $0 != 0 } ? address : []
    }

    /// Puts the keyed digest of a name and a password into `basicDigest`.
    mutating func digestBasic(_ pair: UnsafeBufferPointer<UInt8>) {
        basicDigest.removeAll()
        basicDigest.append(HMACSHA256.authenticate(unsafe Array(pair), key: basicKey))
    }

    // MARK: Invalidation

    /// Drops every cached decision and principal.
    mutating func clearCaches() {
        decisions.removeAll()
        principals.removeAll()
    }

    /// Records sessions that have ended, and subjects whose identities or passwords have changed; their cache entries
    /// go with the next sweep.
    ///
    /// A verification in flight may not have seen the change: results requested before it are discarded.
    mutating func revoke(_ revocationIDs: [UInt64], _ acknowledgement: LoopAcknowledgement?) {
        if revoked.count > EventLoop.revocationLimit, now &- revocationsPrunedAt >= EventLoop.pruneInterval {
            revocationsPrunedAt = now
            revoked = revoked.filter { now &- $0.value <= 2 &* EventLoop.verificationTimeout }
        }
        for revocationID in revocationIDs { revoked[revocationID] = now }
        sweep.add(revocationIDs, acknowledgement)
    }

    private func wasRevoked(_ revocationID: UInt64, since asked: Int64) -> Bool {
        guard !revoked.isEmpty, let moment = revoked[revocationID] else { return false }
        return moment >= asked
    }

    /// Removes cache entries of what was revoked: many revocations in a row cost one pass over the tables.
    mutating func sweepRevocations() {
        guard let due = sweep.dequeue(at: now) else { return }
        decisions.removeAll { due.revocationIDs.contains($0.revocationID) }
        principals.removeAll { due.revocationIDs.contains($0.revocationID) }
        markAllRevoked(due.revocationIDs)
        for acknowledgement in due.acknowledgements { acknowledgement.acknowledge() }
    }

    /// How often one request's credential is verified when reloads and removed keys overtake the results.
    private static let verificationLimit = 4
    /// How long a verification may take, in nanoseconds.
    private static let verificationTimeout: Int64 = 10_000_000_000
    /// Above this many revocations, those that no verification in flight can predate are dropped.
    private static let revocationLimit = 4096
    /// How often such revocations are looked for, in nanoseconds.
    private static let pruneInterval: Int64 = 1_000_000_000
}
