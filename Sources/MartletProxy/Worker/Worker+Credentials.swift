internal import MartletCore
internal import MartletCrypto
internal import MartletProvider
internal import MartletRouter

/// The authenticator's slow half: credentials that the loop does not know yet, and what makes it forget those it knows.
extension Worker {
    /// Whether the route takes credentials of that form; a refusal otherwise.
    mutating func isAccepted(_ form: CredentialForm, _ exchange: Int32, _ route: Int) -> Bool {
        let refusal: Failure? =
            switch form {
            case .session where !snapshot.facts[route].takesSessions || snapshot.signIn.sessions == nil:
                .credentialInvalid("auth.sessions_not_accepted")
            case .session where sessionsAreRefused: .authUnavailable("auth.store_down")
            case .direct where !snapshot.facts[route].takesDirect:
                .credentialInvalid("auth.direct_not_accepted")
            case .basic where !snapshot.facts[route].takesBasic: .credentialInvalid("auth.scheme_not_accepted")
            default: nil
            }
        guard let refusal else { return true }
        refuse(exchange, refusal)
        return false
    }

    /// The principal behind a credential that this route has not seen, and whether it is kept already; `nil` when the request
    /// waits or was refused.
    mutating func principal(
        _ form: CredentialForm, value: UnsafeBufferPointer<UInt8>, key: UnsafeBufferPointer<UInt8>,
        _ exchange: Int32, _ route: Int, _ verdict: Verdict?
    ) -> (proven: ProvenPrincipal, isKept: Bool)? {
        if let found = unsafe principals.find(key, scope: principalScope(form, route), now: unixTime) {
            return principals.payload(found).map { ($0, true) }
        }
        switch verdict {
        case .success(let proven) where !wasRevoked(proven.number, since: exchanges[exchange].askedAt):
            return (proven, false)
        case .failure(let error):
            if debug.isOn { unsafe tell(error, form, exchange, Array(value), route) }
            refuse(exchange, .authentication(error))
        case nil, .success:
            unsafe ask(form, exchange, Array(value), plan: snapshot.plans[Int(snapshot.planOfRoute[route])])
        }
        return nil
    }

    /// Logs why a credential was refused.
    @inline(never)
    private func tell(
        _ error: AuthenticationError, _ form: CredentialForm, _ exchange: Int32, _ value: [UInt8], _ route: Int
    ) {
        var provider: ProviderHandle?
        if case .provider(let handle) = judge(form, value, snapshot.plans[Int(snapshot.planOfRoute[route])]) {
            provider = handle
        }
        debug.refused(
            requestID: unsafe String(decoding: exchanges[exchange].texts.requestID, as: UTF8.self), error,
            provider: provider, credential: form == .basic ? Credential(basic: value) : Credential(bearer: value),
            in: AuthenticationContext(
                now: MartletCore.UnixTime(seconds: unixTime),
                deadline: MonotonicTime(nanoseconds: now &+ Worker.verdictPatience), client: network(of: exchange)))
    }

    /// Who a session is does not depend on the route; what a provider says depends on which one was asked.
    private func principalScope(_ form: CredentialForm, _ route: Int) -> UInt32 {
        form.scope(form == .session ? 0 : UInt32(snapshot.planOfRoute[route]))
    }

    /// Keeps who a credential has proved, for other routes and for when this one has to decide anew.
    ///
    /// - Parameter isGranted: the route's decision is kept, and holds as long as the credential does. Where no other route
    ///   asks the same providers, nobody would look for more.
    mutating func keep(
        _ proven: ProvenPrincipal, _ form: CredentialForm, key: UnsafeBufferPointer<UInt8>, route: Int,
        isGranted: Bool
    ) {
        let isWanted = form != .direct || !isGranted || snapshot.isShared[Int(snapshot.planOfRoute[route])]
        guard isWanted, proven.expires > unixTime else { return }
        unsafe principals.insert(
            key, scope: principalScope(form, route), expires: proven.expires, now: unixTime,
            attachment: unsafe UnsafeBufferPointer(start: nil, count: 0), payload: proven,
            weight: proven.principal.weight)
    }

    /// Hands a credential to whoever judges it, the loop itself or another thread; the head waits in the client's input.
    private mutating func ask(
        _ form: CredentialForm, _ exchange: Int32, _ value: [UInt8], plan: AuthenticationPlan
    ) {
        counters.tokenMisses &+= 1
        exchanges[exchange].judgements &+= 1
        guard exchanges[exchange].judgements <= Worker.judgementLimit else {
            return refuse(exchange, .authUnavailable("auth.verdict_overtaken"))
        }
        guard let judge = judge(form, value, plan) else {
            return refuse(exchange, .credentialInvalid("auth.no_provider_claims_it"))
        }
        let client = exchanges[exchange].client
        let deadline = now &+ Worker.verdictPatience
        let job = Verifier.Job(
            credential: form == .basic ? Credential(basic: value) : Credential(bearer: value), judge: judge,
            subjects: snapshot.signIn.subjects,
            context: AuthenticationContext(
                now: MartletCore.UnixTime(seconds: unixTime), deadline: MonotonicTime(nanoseconds: deadline),
                client: network(of: exchange), address: form == .session ? address(of: exchange) : []),
            mailbox: mailbox, exchange: exchange, generation: exchanges[exchange].generation, epoch: epoch)
        exchanges[exchange].askedAt = now
        clients[client].phase = .authenticating
        arm(client: client, at: deadline)
        if !ownJudge.take(job) { verifier.submit(job) }
    }

    /// Judges some of what waits for the loop itself, after everything else of the pass, and goes on with it.
    mutating func judgeWaiting() {
        guard !ownJudge.isIdle else { return }
        let threads = verifier
        for (job, verdict) in ownJudge.judge(by: clock, others: { threads.submit($0) }) {
            settle(job.exchange, job.generation, epoch: job.epoch, verdict)
        }
    }

    private func judge(_ form: CredentialForm, _ value: [UInt8], _ plan: AuthenticationPlan) -> Verifier.Judge? {
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

    /// Where a request comes from, as throttles count it: the peer, or whom trusted proxies tell of.
    func network(of exchange: Int32) -> ClientNetwork? { ClientNetwork(address: address(of: exchange)) }

    /// The same in full: 16 bytes, or none for a Unix socket.
    func address(of exchange: Int32) -> [UInt8] {
        let told = exchanges[exchange].forwardedNetwork
        let address = told.isEmpty ? clients[exchanges[exchange].client].address.bytes : told
        return address.contains { $0 != 0 } ? address : []
    }

    /// Puts the keyed digest of a name and a password into `pairDigest`.
    mutating func digestPair(_ pair: UnsafeBufferPointer<UInt8>) {
        pairDigest.removeAll()
        pairDigest.append(HMACSHA256.authenticate(unsafe Array(pair), key: pairKey))
    }

    // MARK: Forgetting

    /// Forgets every verdict.
    mutating func forgetTokens() {
        grants.removeAll()
        principals.removeAll()
    }

    /// Notes sessions that have ended, and subjects whose identities or passwords have changed; their copies go with the
    /// next sweep.
    ///
    /// Verdicts on their way may be older than the change they did not see: none that was asked for before it is believed.
    mutating func revoke(_ numbers: [UInt64], _ acknowledgement: LoopAcknowledgement?) {
        if revoked.count > Worker.revokedLimit, now &- prunedAt >= Worker.pruneInterval {
            prunedAt = now
            revoked = revoked.filter { now &- $0.value <= 2 &* Worker.verdictPatience }
        }
        for number in numbers { revoked[number] = now }
        sweep.add(numbers, acknowledgement)
    }

    private func wasRevoked(_ number: UInt64, since asked: Int64) -> Bool {
        guard !revoked.isEmpty, let moment = revoked[number] else { return false }
        return moment >= asked
    }

    /// Drops the copies of what was revoked: many ends in a row cost one pass over the tables.
    mutating func sweepRevoked() {
        guard let due = sweep.take(at: now) else { return }
        grants.removeAll { due.numbers.contains($0.number) }
        principals.removeAll { due.numbers.contains($0.number) }
        markRevoked(due.numbers)
        for acknowledgement in due.acknowledgements { acknowledgement.acknowledge() }
    }

    /// How often one request's credential is judged, where reloads and removed keys overtake the verdicts.
    private static let judgementLimit = 4
    /// How long a verdict may take.
    private static let verdictPatience: Int64 = 10_000_000_000
    /// Numbers remembered before those that no verdict can be late for are dropped.
    private static let revokedLimit = 4096
    /// How often the others are looked for.
    private static let pruneInterval: Int64 = 1_000_000_000
}

/// The gateway's own tokens, told apart by how they begin.
enum OwnToken {
    /// Whether a word of a field's value is one of them: behind another scheme, in quotes, or without any scheme.
    static func isHeld(in value: UnsafeBufferPointer<UInt8>) -> Bool {
        for index in value.indices {
            let before = index > 0 ? unsafe value[index - 1] : 0x20
            let isWithinWord = before == 0x5F || before == 0x2D || isAlphanumeric(before)
            if !isWithinWord, unsafe isOne(UnsafeBufferPointer(rebasing: value[index...])) { return true }
        }
        return false
    }

    private static func isAlphanumeric(_ byte: UInt8) -> Bool {
        (0x30...0x39).contains(byte) || (0x61...0x7A).contains(byte | 0x20)
    }

    /// Whether a bearer token is an access or a refresh token of ours, or pretends to be.
    static func isOne(_ token: UnsafeBufferPointer<UInt8>) -> Bool {
        guard token.count >= 4 else { return false }
        let isLettered =
            unsafe token[0] == UInt8(ascii: "m") && token[2] == UInt8(ascii: "t") && token[3] == UInt8(ascii: "_")
        return unsafe isLettered && (token[1] == UInt8(ascii: "a") || token[1] == UInt8(ascii: "r"))
    }
}

extension CredentialForm {
    /// Keeps what is remembered of one form apart from the others.
    func scope(_ number: UInt32) -> UInt32 {
        switch self {
        // A route's grants are found by the bare number for either kind of bearer token: see `authorize`.
        case .session, .direct: number
        case .basic: number | 0x8000_0000
        }
    }
}
