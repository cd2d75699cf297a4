internal import MartletCore
internal import MartletProvider

extension Verifier {
    /// One credential to judge, and where the verdict goes.
    final class Job: Sendable {
        let credential: Credential
        let judge: Judge
        /// Finds the subject of what a provider proved; `nil` without accounts.
        let subjects: (any SubjectResolving)?
        let context: AuthenticationContext
        let mailbox: Mailbox
        let exchange: Int32
        let generation: UInt32
        /// The configuration, and the state of what may be trusted, that the verdict belongs to.
        let epoch: Int

        init(
            credential: Credential, judge: Judge, subjects: (any SubjectResolving)?, context: AuthenticationContext,
            mailbox: Mailbox, exchange: Int32, generation: UInt32, epoch: Int
        ) {
            self.credential = credential
            self.judge = judge
            self.subjects = subjects
            self.context = context
            self.mailbox = mailbox
            self.exchange = exchange
            self.generation = generation
            self.epoch = epoch
        }

        /// Whose places it takes while it waits.
        var owner: WorkOwner { context.client?.workOwner ?? .anybody }
    }
}

extension Verifier.Job {
    /// Asks whoever has to be asked.
    func principal(_ proven: Identity?) async throws(AuthenticationError) -> ProvenPrincipal {
        switch judge {
        case .sessions(let sessions):
            let session = try await sessions.judge(credential, in: context)
            let copyEnd = context.now.advanced(bySeconds: session.copyLifetime.wholeSeconds)
            return ProvenPrincipal(
                principal: session.principal, number: session.number,
                expires: min(session.principal.identity.expiresAt, copyEnd).seconds, end: session.end)
        case .provider(let handle):
            guard let authenticating = handle.authenticating else {
                throw .rejected("auth.provider_takes_no_credential")
            }
            let identity: Identity
            if let proven {
                identity = proven
            } else {
                identity = try await authenticating.authenticate(credential, in: context)
            }
            guard let subjects else { return handle.principal(of: identity) }
            let subject = try await subjects.subject(of: identity, provider: handle.name)
            return ProvenPrincipal(
                Principal(identity: identity, provider: handle.name, subject: subject, sessionID: nil))
        }
    }

    /// Tells the loop.
    func settle(_ verdict: Verdict) { mailbox.post(message(of: verdict)) }

    func message(of verdict: Verdict) -> LoopMessage {
        .verdict(exchange: exchange, generation: generation, epoch: epoch, verdict)
    }
}

extension LocallyVerifying {
    /// What the provider says at once; `nil` where it would have to wait.
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
    /// The principal of what the provider proved, where there are no accounts.
    func principal(of identity: Identity) -> ProvenPrincipal {
        ProvenPrincipal(Principal(identity: identity, provider: name, sessionID: nil))
    }
}

extension ProvenPrincipal {
    /// Who was proved by something else than a session.
    fileprivate convenience init(_ principal: Principal) {
        self.init(
            principal: principal, number: SubjectNumber.of(principal.subject),
            expires: principal.identity.expiresAt.seconds, end: principal.identity.expiresAt.milliseconds)
    }
}
