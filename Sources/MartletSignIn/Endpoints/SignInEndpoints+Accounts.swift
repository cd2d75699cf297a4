internal import MartletAccounts
internal import MartletAudit
internal import MartletCore
internal import MartletIdentities
internal import MartletJSON
internal import MartletProvider
internal import MartletResponder
internal import MartletSession

/// Endpoints for the identities and the password of the caller's account.
extension SignInEndpoints {
    /// `POST /link/{provider}`: requires a live session and a second login; email addresses are never matched.
    func link(_ request: LocalRequest, with provider: ProviderHandle?) async throws(Failure) -> LocalResponse {
        guard let accounts = setup.accounts else { throw .noRoute(.signInNoAccounts) }
        guard let provider, let signingIn = provider.signingIn else { throw .noRoute(.signInUnknownProvider) }
        let first = try await caller(of: request)
        let form = try SignInBody.form(of: request)
        let signIn: SignIn
        do throws(Failure) {
            signIn = try await withBudget(budgets.logins(with: provider), request) { () async throws(Failure) in
                try await authenticate(
                    form, with: provider, signingIn, request, for: .link(sessionID: first.session.id)
                ) { (signIn) async throws(Failure) in
                    try await self.checkLinkable(signIn, of: provider, to: first.session.subject, accounts)
                }
            }
        } catch {
            audit.recordRejection(.link, error, request, provider: provider.name)
            throw error
        }
        // Authentication takes time: a session that was ended meanwhile must not link anything.
        let caller = try await caller(of: request, isProven: true)
        let session = try await liveSession(caller.session)
        try await link(signIn, of: provider, to: caller.session.subject, for: session, accounts, request)
        try await renewCookie(of: caller, request)
        return SignInResponse.noContent
    }

    /// Whether an identity could be linked now: what is consumed for a link that fails is lost for the login that its
    /// user tries next.
    /// - Throws: 409, 503; the store decides later, when it is linked.
    private func checkLinkable(
        _ signIn: SignIn, of provider: ProviderHandle, to subject: String, _ accounts: any AccountStoring
    ) async throws(Failure) {
        try await fromAccounts(await setup.transfers?.follow(signIn.identity, provider: provider.name))
        if let owner = try await fromAccounts(await accounts.find(signIn.accountIdentity(of: provider.name))) {
            guard !owner.subject.hasSameBytes(as: subject) else { return }
            throw .identityTaken(.accountsBoundElsewhere)
        }
        let others = try await fromAccounts(await accounts.identities(of: subject))
        guard !others.contains(where: { $0.provider.hasSameBytes(as: provider.name) }) else {
            throw .providerAlreadyLinked(.accountsProviderTaken)
        }
    }

    /// The list entry of a session.
    /// - Throws: 401 if it has ended, 503.
    func liveSession(_ session: SessionReference) async throws(Failure) -> SessionSummary {
        guard let found = try await fromSessions(await setup.sessions.summary(of: session)) else {
            throw .credentialInvalid(.signInSessionNeeded)
        }
        return found
    }

    /// Links an authenticated identity to an account, for a session of it.
    /// - Throws: 409 if it belongs to another one, or the account has another identity of the provider; 401 if the
    ///   account was reclaimed since the session began; 503.
    func link(
        _ signIn: SignIn, of provider: ProviderHandle, to subject: String, for session: SessionSummary,
        _ accounts: any AccountStoring, _ request: LocalRequest
    ) async throws(Failure) {
        try await creation.requireKnown(signIn, provider.name, in: accounts)
        do throws(AccountError) {
            try await setup.transfers?.follow(signIn.identity, provider: provider.name)
            try await accounts.link(
                signIn.accountIdentity(of: provider.name), to: subject, askedBySessionOf: session.createdAt,
                keeping: signIn.storedClaims, at: setup.clock.unixTime)
        } catch {
            let failure = Failure.account(error)
            audit.recordRejection(.link, failure, request, provider: provider.name)
            throw failure
        }
        try await creation.confirm(signIn, by: provider)
        audit.record(
            .link, request, provider: provider.name,
            caller: NamedCaller(subject: subject, sessionID: request.callerNote?.caller?.sessionID))
        setup.logger.info("identity linked", ("provider", provider.name), ("request_id", request.requestID))
    }

    /// `DELETE /link/{provider}`.
    ///
    /// The account store decides, because only it can serialize concurrent requests. The steps after it are all
    /// attempted whatever fails, and again when the client retries: the identity is gone by then, but its sessions are
    /// still ended.
    func unlink(
        _ name: String, _ provider: ProviderHandle?, _ request: LocalRequest
    ) async throws(Failure) -> LocalResponse {
        guard let accounts = setup.accounts else { throw .noRoute(.signInNoAccounts) }
        let subject = try await caller(of: request).session.subject
        let identity: AccountIdentity
        do throws(AccountError) {
            identity = try await accounts.unlink(provider: name, from: subject)
        } catch {
            guard error.kind == .notFound else { throw .account(error) }
            guard provider != nil else { throw .noRoute(.signInUnknownProvider) }
            try await ends.end(SessionsEnd("unlinked", provider: name), of: subject)
            throw .account(error)
        }
        do throws(AuthenticationError) {
            for subject in identity.subjects { try await provider?.unlinking?.unlink(subject) }
        } catch {
            await restore(identity, to: subject, in: accounts, request)
            throw .authentication(error)
        }
        setup.logger.info("identity unlinked", ("provider", name), ("request_id", request.requestID))
        try await ends.end(SessionsEnd("unlinked", provider: name), of: subject)
        return SignInResponse.noContent
    }

    /// Reverts an unlinking that the provider failed to perform, so that the client can retry.
    private func restore(
        _ identity: AccountIdentity, to subject: String, in accounts: any AccountStoring, _ request: LocalRequest
    ) async {
        do throws(AccountError) {
            try await accounts.link(
                identity, to: subject, askedBySessionOf: nil, keeping: [:], at: setup.clock.unixTime)
        } catch {
            setup.logger.warning(
                "identity unlinked, but not deleted by its provider", ("provider", identity.provider),
                ("code", "\(error.code)"), ("request_id", request.requestID))
        }
    }

    /// `POST /password`: changes the password of the account, whichever provider created the session.
    func changePassword(_ request: LocalRequest) async throws(Failure) -> LocalResponse {
        let caller = try await caller(of: request)
        let form = try SignInBody.form(of: request)
        do throws(AuthenticationError) {
            let owner = try await changePassword(
                of: caller, from: try form.requiredSecret("current_password"),
                to: try form.requiredSecret("new_password"), in: context(of: request))
            setup.logger.info("password changed", ("provider", owner), ("request_id", request.requestID))
            await ends.mark(caller.session.subject, owner)
            await setup.invalidateDecisions(caller.session.subject)
        } catch {
            throw .authentication(error)
        }
        do throws(Failure) {
            try await ends.end(SessionsEnd("password_changed", except: caller.session.id), of: caller.session.subject)
        } catch {
            setup.logger.warning(
                "sessions not ended after password change", ("code", "\(error.reason)"),
                ("request_id", request.requestID))
            throw error
        }
        try await renewCookie(of: caller, request)
        return SignInResponse.noContent
    }

    /// Changes the password at the first provider that has one for the caller, starting with the session's own.
    /// - Returns: the provider's name.
    private func changePassword(
        of caller: Caller, from current: Secret, to new: Secret, in context: AuthenticationContext
    ) async throws(AuthenticationError) -> String {
        let subjects = try await subjects(of: caller)
        let own = setup.providers.filter { $0.name.hasSameBytes(as: caller.principal.provider) }
        let others = setup.providers.filter { !$0.name.hasSameBytes(as: caller.principal.provider) }
        for provider in own + others {
            guard let changing = provider.passwordChanging, let subject = subjects[provider.name] else { continue }
            do throws(AuthenticationError) {
                try await provider.run(in: context) { () async throws(AuthenticationError) in
                    try await changing.changePassword(of: subject, from: current, to: new, in: context)
                }
                return provider.name
            } catch {
                guard error.disposition == .notFound else { throw error }
            }
        }
        throw AuthenticationError(.signInNoPassword, .notFound)
    }

    /// The caller's subjects by provider: those of the account, or the session's without accounts.
    func subjects(of caller: Caller) async throws(AuthenticationError) -> [String: String] {
        guard let accounts = setup.accounts else {
            return [caller.principal.provider: caller.principal.identity.providerSubject]
        }
        do throws(AccountError) {
            var subjects: [String: String] = [:]
            for identity in try await accounts.identities(of: caller.session.subject) {
                subjects[identity.provider] = identity.subjects.first
            }
            return subjects
        } catch {
            guard error.kind == .notFound else { throw .unavailable(error.code, cause: error) }
            return [:]
        }
    }
}
