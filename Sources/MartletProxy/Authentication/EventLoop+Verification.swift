internal import MartletAuthenticator
internal import MartletCore
internal import MartletHTTP
internal import MartletProvider

/// Carries out what the authenticator returns for credentials that are not cached.
extension EventLoop {
    /// Submits a credential for verification, inline or on another thread; the head waits in the connection's input.
    @inline(never)
    mutating func submitVerification(_ request: VerificationRequest, of exchange: Handle<Exchange>) {
        let downstream = exchanges[exchange].downstream
        let deadline = now &+ Authenticator.verificationTimeout
        let job = Verifier.Job(
            credential: request.credential, target: request.target, subjects: snapshot.authentication.subjects,
            context: AuthenticationContext(
                now: time.unixTime, deadline: MonotonicTime(nanoseconds: deadline), client: network(of: exchange),
                address: request.form == .session ? address(of: exchange) : []),
            sink: mailbox, exchange: ExchangeID(exchange), epoch: authenticator.epoch)
        downstreams[downstream].phase = .authenticating
        arm(downstream: downstream, at: deadline)
        if !authenticator.enqueue(job) { verifier.submit(job) }
    }

    /// Verifies some of the inline jobs, after everything else of the iteration, and resumes their requests.
    mutating func verifyInline() {
        guard !authenticator.isIdle else { return }
        let verifier = threads.verifier
        for (job, result) in authenticator.verifyInline(by: clock.source, others: { verifier.submit($0) }) {
            completeVerification(Handle(job.exchange), epoch: job.epoch, result)
        }
    }

    /// Resumes the request that waited for a verification.
    mutating func completeVerification(
        _ exchange: Handle<Exchange>, epoch resultEpoch: Int, _ result: VerificationResult
    ) {
        guard exchanges.contains(exchange) else { return }
        let downstream = exchanges[exchange].downstream
        guard downstreams[downstream].phase == .authenticating else {
            return revalidated(exchange, epoch: resultEpoch, result)
        }
        // A result of the previous configuration's providers is void: the credential is verified again.
        resumeRequest(downstream, with: resultEpoch == authenticator.epoch ? result : nil)
    }

    /// Responds to a request that the authenticator rejected.
    @inline(never)
    mutating func reject(
        _ exchange: Handle<Exchange>, _ rejection: Rejection, _ bytes: UnsafeBufferPointer<UInt8>
    ) {
        if case .verification(let error, let failed) = rejection.cause, debug.isOn {
            unsafe logRejection(error, failed, exchange, Array(bytes[failed.range]))
        }
        reject(exchange, rejection.failure)
    }

    /// Logs why a credential was rejected.
    private func logRejection(
        _ error: AuthenticationError, _ failed: FailedCredential, _ exchange: Handle<Exchange>, _ value: [UInt8]
    ) {
        var provider: ProviderHandle?
        if case .provider(let handle) = authenticator.verificationTarget(failed.form, value, failed.route) {
            provider = handle
        }
        debug.credentialRejected(
            requestID: unsafe String(decoding: exchanges[exchange].record.texts.requestID, as: UTF8.self), error,
            provider: provider,
            credential: failed.form == .basic ? Credential(basic: value) : Credential(bearer: value),
            in: AuthenticationContext(
                now: time.unixTime,
                deadline: MonotonicTime(nanoseconds: now &+ Authenticator.verificationTimeout),
                client: network(of: exchange)))
    }

    /// The client's network, as throttles count it: that of the peer, or of the client that trusted proxies name.
    func network(of exchange: Handle<Exchange>) -> ClientNetwork? { ClientNetwork(address: address(of: exchange)) }

    /// The client's address: 16 bytes, or none for a Unix socket.
    func address(of exchange: Handle<Exchange>) -> [UInt8] {
        let forwarded = exchanges[exchange].record.forwardedNetwork
        let address = forwarded.isEmpty ? downstreams[exchanges[exchange].downstream].origin.address.bytes : forwarded
        return address.contains { $0 != 0 } ? address : []
    }

    /// Removes cache entries of what was revoked, and ends the exchanges that it admitted.
    mutating func sweepRevocations() {
        guard authenticator.hasUnsweptRevocations, let due = authenticator.sweepRevocations(at: time) else { return }
        markAllRevoked(due.revocationIDs)
        for acknowledgement in due.acknowledgements { acknowledgement.acknowledge() }
    }
}
