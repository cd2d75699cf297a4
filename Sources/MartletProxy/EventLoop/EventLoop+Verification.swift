internal import MartletAuthenticator
internal import MartletCore
internal import MartletDecisions
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
        let network = loop.exchanges[exchange].clientNetwork(&loop.downstreams)
        if let rejection = request.rejection(of: network) { return unsafe reject(exchange, rejection, bytes) }
        let client = loop.downstreams.clientSide(of: exchange, &loop.exchanges)
        let chain: [[UInt8]]
        do throws(Failure) {
            chain = request.form == .certificate ? unsafe try client.certificateChain(in: router.head, bytes) : []
        } catch {
            return unsafe reject(exchange, Rejection(error), bytes)
        }
        let deadline = loop.now &+ Authenticator.verificationTimeout
        let head =
            request.target.readsHead
            ? unsafe client.receivedHead(router.head, bytes, trusting: loop.context.snapshot.trustedProxies) : nil
        let job = Verifier.Job(
            credential: request.credential, target: request.target,
            subjects: loop.context.snapshot.authentication.subjects,
            context: AuthenticationContext(
                now: loop.time.unixTime, deadline: MonotonicTime(nanoseconds: deadline),
                client: network,
                address: request.form == .session || request.form == .cookie
                    ? loop.exchanges[exchange].clientAddress(&loop.downstreams) : [],
                request: request.target.facts(of: loop.exchanges[exchange].record.texts, head: head),
                requestID: request.target.requestID(in: loop.exchanges[exchange].record.texts),
                certificateChain: chain),
            sink: loop.mailbox, exchange: ExchangeID(exchange), epoch: authenticator.epoch,
            trace: loop.context.tracing.isOn
                ? RequestTracing.beginVerification(of: exchange, &loop.exchanges, &loop.context) : nil)
        loop.exchanges.suspend(
            exchange, for: request.isProof ? .proof : .verification, until: deadline, &loop.downstreams, &loop.context)
        if !authenticator.enqueue(job) { loop.verifier.submit(job) }
    }

    /// Checks the proof of a verified credential: that of a certificate here, that of a key with the store.
    @inline(never)
    mutating func submitProof(
        _ request: ProofRequest, of exchange: Handle<Exchange>, _ bytes: UnsafeBufferPointer<UInt8>
    ) {
        let client = loop.downstreams.clientSide(
            of: exchange, hasCertificate: request.binding.certificateThumbprint != nil, &loop.exchanges)
        if let expected = request.binding.certificateThumbprint,
            let failure = unsafe client.failure(expecting: expected, in: router.head, bytes)
        {
            return unsafe reject(exchange, Rejection(failure), bytes)
        }
        guard request.binding.keyThumbprint != nil else {
            loop.exchanges[exchange].credential.proof = .held
            return unsafe processRequest(
                exchange, bytes, verification: BoxedVerificationResult(.success(request.verified)))
        }
        guard let verifier = loop.context.snapshot.authentication.proofs else {
            return unsafe reject(exchange, Rejection(.proofInvalid("auth.proof_not_supported")), bytes)
        }
        // The URL as the client sees it.
        let url = unsafe ClientURL(
            router.head, bytes, from: client, trusting: loop.context.snapshot.trustedProxies)
        let proof = unsafe PresentedProof(
            proofs: router.head.values(of: "dpop", bytes),
            method: String(decoding: bytes[router.head.methodText], as: UTF8.self),
            scheme: url.scheme, authority: url.authority, path: url.path,
            token: request.location.form.credential(Array(bytes[request.location.range])))
        unsafe submitVerification(VerificationRequest(request, proof, by: verifier), of: exchange, bytes)
    }

    /// Verifies some of the inline jobs, after everything else of the iteration, and resumes their requests.
    @inline(never)
    mutating func verifyInline() {
        let verifier = loop.context.threads.verifier
        for (job, result) in authenticator.verifyInline(
            by: loop.context.clock.source, others: { verifier.submit($0, verified: $1) })
        {
            completeVerification(Handle(job.exchange), epoch: job.epoch, result)
        }
    }

    /// Resumes the request that waited for a verification.
    @inline(never)
    mutating func completeVerification(
        _ exchange: Handle<Exchange>, epoch resultEpoch: Int, _ result: VerificationResult
    ) {
        guard loop.exchanges.all.contains(exchange) else { return }
        if loop.context.tracing.isOn { RequestTracing.endVerification(of: exchange, result, &loop.context) }
        guard loop.exchanges[exchange].suspension.isVerification else {
            return credentialWatch.revalidated(
                exchange, epoch: resultEpoch, result, &loop.exchanges, &authenticator, &loop.context)
        }
        if case .success(let verified) = result, let replacement = verified.replacement {
            loop.exchanges.replaceCookie(of: exchange, by: replacement, &loop.context)
        }
        resume(exchange, .verified(result, epoch: resultEpoch))
    }

    /// Responds to a request that the authenticator rejected.
    @inline(never)
    mutating func reject(_ exchange: Handle<Exchange>, _ rejection: Rejection, _ bytes: UnsafeBufferPointer<UInt8>) {
        if case .verification(let error, let failed) = rejection.cause, loop.debug.isOn {
            let value = unsafe Array(bytes[failed.range])
            let target = authenticator.verificationTarget(failed.form, value, failed.route)
            unsafe router.logRejection(
                error, failed.form.credential(value), by: target, exchange, bytes, &loop.exchanges, &loop.downstreams,
                &loop.context)
        }
        unsafe router.noteHead(exchange, bytes, &loop.exchanges, &loop.downstreams, &loop.context)
        unsafe loop.exchanges[exchange].record.texts.add(names: rejection.names)
        if loop.exchanges[exchange].credential.offersBasic, let browser = loop.context.snapshot.browser {
            loop.exchanges[exchange].credential.offersBasic =
                unsafe !browser.hidesBasic(bytes.span, router.head.fields)
        }
        loop.reject(exchange, rejection.failure)
    }
}
