internal import MartletAuthenticator
internal import MartletBrowser
internal import MartletCore
internal import MartletHTTP
internal import MartletProvider
internal import MartletResponder
internal import MartletTracing

/// Carries out what the authenticator returns for credentials that are not cached.
extension EventLoop {
    /// Submits a credential for verification, inline or on another thread; the head waits in the connection's input.
    ///
    /// A throttled client is rejected instead, whatever its credential.
    @inline(never)
    mutating func submitVerification(
        _ request: VerificationRequest, of exchange: Handle<Exchange>, _ bytes: UnsafeBufferPointer<UInt8>
    ) {
        let client = loop.exchanges.clientNetwork(of: exchange, &loop.downstreams)
        if let rejection = request.rejection(of: client) { return unsafe reject(exchange, rejection, bytes) }
        let chain: [[UInt8]]
        do throws(Failure) {
            chain =
                request.form == .certificate
                ? unsafe try RequestProofs.certificateChain(of: exchange, bytes, &self) : []
        } catch {
            return unsafe reject(exchange, Rejection(error), bytes)
        }
        let downstream = loop.exchanges[exchange].downstream
        let deadline = loop.now &+ Authenticator.verificationTimeout
        let head = request.target.readsHead ? unsafe RequestProofs.receivedHead(of: exchange, bytes, &self) : nil
        let job = Verifier.Job(
            credential: request.credential, target: request.target,
            subjects: loop.context.snapshot.authentication.subjects,
            context: AuthenticationContext(
                now: loop.time.unixTime, deadline: MonotonicTime(nanoseconds: deadline),
                client: client,
                address: request.form == .session || request.form == .cookie
                    ? loop.exchanges.clientAddress(of: exchange, &loop.downstreams) : [],
                request: request.target.facts(of: loop.exchanges[exchange].record.texts, head: head),
                certificateChain: chain),
            sink: loop.mailbox, exchange: ExchangeID(exchange), epoch: authenticator.epoch,
            trace: loop.context.tracing.isOn ? RequestTracing.beginVerification(of: exchange, &loop) : nil)
        loop.downstreams[downstream].phase = .authenticating
        loop.downstreams.arm(downstream, at: deadline, &loop.context)
        if !authenticator.enqueue(job) { loop.verifier.submit(job) }
    }

    /// Verifies some of the inline jobs, after everything else of the iteration, and resumes their requests.
    mutating func verifyInline() {
        guard !authenticator.isIdle else { return }
        let verifier = loop.context.threads.verifier
        for (job, result) in authenticator.verifyInline(
            by: loop.context.clock.source, others: { verifier.submit($0, verified: $1) })
        {
            completeVerification(Handle(job.exchange), epoch: job.epoch, result)
        }
    }

    /// Resumes the request that waited for a verification.
    mutating func completeVerification(
        _ exchange: Handle<Exchange>, epoch resultEpoch: Int, _ result: VerificationResult
    ) {
        guard loop.exchanges.all.contains(exchange) else { return }
        if loop.context.tracing.isOn { RequestTracing.endVerification(of: exchange, result, &loop) }
        let downstream = loop.exchanges[exchange].downstream
        guard loop.downstreams[downstream].phase == .authenticating,
            loop.exchanges[exchange].record.limits.waiting == nil
        else {
            return revalidated(exchange, epoch: resultEpoch, result)
        }
        if case .success(let verified) = result, let replacement = verified.replacement {
            loop.replaceCookie(of: exchange, by: replacement)
        }
        // A result of the previous configuration's providers is void: the credential is verified again.
        var result = resultEpoch == authenticator.epoch ? result : nil
        let hasBody = !loop.exchanges[exchange].body.framing.isEmpty
        if !loop.exchanges[exchange].request.check.isEmpty {
            loop.exchanges[exchange].request.check.remove(.isDescribed)
            // The body that the credential vouches for stays with the proxy.
            if case .success(let verified) = result, verified.principal.identity.bodyDigest != nil {
                result = .failure(.malformed("check.body_not_read"))
            }
        } else if let error = loop.exchanges[exchange].bodyWatch.begin(result, hasBody: hasBody) {
            result = .failure(error)
        }
        if loop.exchanges[exchange].credential.proof == .pending {
            loop.exchanges[exchange].credential.concludeProof(result)
        }
        resumeRequest(downstream, with: result)
    }

    /// Responds to a request that the authenticator rejected.
    @inline(never)
    mutating func reject(_ exchange: Handle<Exchange>, _ rejection: Rejection, _ bytes: UnsafeBufferPointer<UInt8>) {
        if case .verification(let error, let failed) = rejection.cause, loop.debug.isOn {
            unsafe logRejection(error, failed, exchange, bytes)
        }
        unsafe router.noteHead(exchange, bytes, &loop)
        unsafe loop.exchanges[exchange].record.texts.add(names: rejection.names)
        if loop.exchanges[exchange].credential.offersBasic, loop.context.snapshot.browser != nil {
            // A browser would ask for the password in a window of its own, and send it with every request from then on.
            loop.exchanges[exchange].credential.offersBasic =
                unsafe !NavigationRule.hasMode(bytes.span, router.head.fields)
        }
        loop.reject(exchange, rejection.failure)
    }

    /// Logs why a credential was rejected.
    private mutating func logRejection(
        _ error: AuthenticationError, _ failed: CredentialLocation, _ exchange: Handle<Exchange>,
        _ bytes: UnsafeBufferPointer<UInt8>
    ) {
        let value = unsafe Array(bytes[failed.range])
        var provider: ProviderHandle?
        if case .provider(let handle) = authenticator.verificationTarget(failed.form, value, failed.route) {
            provider = handle
        }
        let head = provider?.readsHead == true ? unsafe RequestProofs.receivedHead(of: exchange, bytes, &self) : nil
        loop.debug.credentialRejected(
            requestID: unsafe String(decoding: loop.exchanges[exchange].record.texts.requestID, as: UTF8.self), error,
            provider: provider,
            credential: failed.form.credential(value),
            in: AuthenticationContext(
                now: loop.time.unixTime,
                deadline: MonotonicTime(nanoseconds: loop.now &+ Authenticator.verificationTimeout),
                client: loop.exchanges.clientNetwork(of: exchange, &loop.downstreams),
                request: provider?.facts(of: loop.exchanges[exchange].record.texts, head: head)))
    }

    /// Removes cache entries of what was revoked, and ends the exchanges that it admitted.
    mutating func sweepRevocations() {
        guard authenticator.hasUnsweptRevocations else { return }
        revalidateExchanges(of: authenticator.unsweptChanges)
        guard let due = authenticator.sweepRevocations(at: loop.time) else { return }
        markAllRevoked(due.revocationIDs)
        for acknowledgement in due.acknowledgements { acknowledgement.acknowledge() }
    }
}
