package import MartletCore
package import MartletProvider
package import MartletTracing

extension Verifier {
    /// What verifies a credential.
    package enum Target: Sendable {
        case provider(ProviderHandle)
        case sessions(any SessionVerifying)
        /// The credential is verified; its proof is not.
        case proof(any ProofVerifying, PresentedProof, VerifiedPrincipal)
    }

    /// One credential to verify, and where the result goes.
    package final class Job: Sendable {
        let credential: Credential
        let target: Target
        /// Whether the credential is that of an exchange in progress.
        let isRevalidation: Bool
        /// Finds the account of a verified identity; `nil` without accounts.
        let subjects: (any SubjectResolving)?
        let context: AuthenticationContext
        let sink: any VerificationResultSink
        package let exchange: ExchangeID
        /// The configuration and cache state that the result belongs to.
        package let epoch: Int
        /// Measures how long it takes.
        let clock: Clock
        let startedAt: MonotonicTime
        /// The span of the verification; `nil` if the request is not sampled.
        let trace: TraceParent?

        package init(
            credential: Credential, target: Target, subjects: (any SubjectResolving)?, context: AuthenticationContext,
            sink: any VerificationResultSink, exchange: ExchangeID, epoch: Int, isRevalidation: Bool = false,
            clock: Clock = .system, trace: TraceParent? = nil
        ) {
            self.clock = clock
            startedAt = clock.monotonicTime
            self.trace = trace
            self.isRevalidation = isRevalidation
            self.credential = credential
            self.target = target
            self.subjects = subjects
            self.context = context
            self.sink = sink
            self.exchange = exchange
            self.epoch = epoch
        }

        /// The network whose share of the queue it counts against.
        var owner: WorkOwner { context.owner }
    }
}

extension Verifier.Job {
    /// Verifies the credential with the session store or the provider.
    func principal(_ verified: Identity?) async throws(AuthenticationError) -> VerifiedPrincipal {
        switch target {
        case .sessions(let sessions):
            // The browser may have a newer cookie by now, so that of an exchange in progress is neither replaced nor
            // taken for a stolen one.
            let session =
                isRevalidation && credential.scheme == .cookie
                ? try await sessions.inspect(credential, in: context)
                : try await sessions.verify(credential, in: context)
            return VerifiedPrincipal(session, in: context)
        case .proof(let verifier, let proof, let verified):
            guard let thumbprint = verified.principal.identity.binding?.keyThumbprint else { return verified }
            try await verifier.verify(
                proof, boundTo: thumbprint, of: verified.principal.subject, in: context)
            return verified
        case .provider(let handle):
            guard let authenticating = handle.authenticating else {
                throw .rejected("auth.provider_takes_no_credential")
            }
            let identity: Identity
            if let verified {
                identity = verified
            } else {
                let (credential, context) = (credential, context)
                identity = try await handle.run(in: context) { () async throws(AuthenticationError) in
                    try await authenticating.authenticate(credential, in: context)
                }
            }
            guard let subjects else { return handle.principal(of: identity) }
            let subject = try await subjects.subject(of: identity, provider: handle.name)
            return VerifiedPrincipal(Principal(identity: handle.scoped(identity), provider: handle.name, subject))
        }
    }

    /// Verifies the credential, in its request's trace.
    func result(_ verified: Identity?) async -> VerificationResult {
        await TraceScope.within(trace) {
            do throws(AuthenticationError) {
                return .success(try await principal(verified))
            } catch {
                return .failure(await named(error))
            }
        }
    }

    /// The error of an attempt with the account of its user, for logs.
    private func named(_ error: AuthenticationError) async -> AuthenticationError {
        guard case .provider(let handle) = target else { return error }
        if let caller = error.caller {
            return error.of(
                RejectedCaller(
                    subject: caller.subject, sessionID: caller.sessionID, provider: caller.provider ?? handle.name))
        }
        guard let user = error.user else { return error }
        let subject =
            if let subjects { await subjects.subject(of: user, provider: handle.name) } else {
                user.subject(provider: handle.name)
            }
        return subject.map { error.of(RejectedCaller(subject: $0, provider: handle.name)) } ?? error
    }

    /// Whether the account store has to be asked for the subject of an identity.
    func needsAccount(of identity: Identity) -> Bool { subjects != nil && identity.subjectSource != .provider }

    /// Delivers the result.
    func complete(_ result: VerificationResult) { sink.receive([finished(with: result)]) }

    func finished(with result: VerificationResult) -> FinishedVerification {
        count(result)
        return FinishedVerification(exchange: exchange, epoch: epoch, result: result)
    }

    /// Counts the result at the provider.
    func count(_ result: VerificationResult) {
        guard case .provider(let handle) = target else { return }
        let isFailure = if case .failure = result { true } else { false }
        handle.verifications.count(clock.monotonicTime.since(startedAt), failed: isFailure)
    }
}

extension Verifier.Target {
    /// What a verification without a thread waits for.
    var waitingKind: WaitingKind {
        switch self {
        case .sessions: .sessions
        case .provider(let handle): .provider(handle.name)
        case .proof: .proofs
        }
    }
}

extension LocallyVerifying {
    /// The provider's immediate result; `nil` where it would have to wait.
    func decide(_ credential: Credential, in context: AuthenticationContext) -> Result<Identity, AuthenticationError>? {
        do throws(AuthenticationError) {
            switch try verify(credential, in: context) {
            case .authenticated(let identity): return .success(identity)
            case .undecided: return nil
            }
        } catch {
            return .failure(error)
        }
    }
}

extension ProviderHandle {
    /// The principal of a verified identity, where there are no accounts.
    /// - Parameter number: that of a subject.
    package func principal(
        of identity: Identity, _ number: (String) -> UInt64 = SubjectRevocationID.of
    ) -> VerifiedPrincipal {
        let principal = Principal(identity: scoped(identity), provider: name, sessionID: nil)
        return VerifiedPrincipal(principal, number: number(principal.subject))
    }
}

extension VerifiedPrincipal {
    /// The principal of a session, which a loop may cache for a while.
    package convenience init(_ session: VerifiedSession, in context: AuthenticationContext) {
        let copyEnd = context.now.advanced(bySeconds: session.cacheLifetime.wholeSeconds)
        self.init(
            principal: session.principal, revocationID: session.number,
            expires: min(session.principal.identity.expiresAt, copyEnd).seconds, end: session.end,
            replacement: session.replacement)
    }

    /// The principal of a credential other than a session.
    package convenience init(_ principal: Principal, number: UInt64? = nil) {
        self.init(
            principal: principal, number: number, expires: principal.identity.reusableUntil.seconds,
            end: principal.identity.expiresAt.milliseconds)
    }
}
