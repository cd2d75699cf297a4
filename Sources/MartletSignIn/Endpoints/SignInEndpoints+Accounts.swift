internal import MartletAccounts
internal import MartletCore
internal import MartletJSON
internal import MartletProvider
internal import MartletProxy
internal import MartletSession

/// What callers may do about the identities of their account, and about its password.
extension SignInEndpoints {
    /// `POST /link/{provider}`: a live session and a second proof, never an e-mail address.
    func link(_ request: LocalRequest, with provider: ProviderHandle?) async throws(Failure) -> LocalResponse {
        guard let accounts = setup.accounts else { throw .noRoute(.signInNoAccounts) }
        guard let provider, let signingIn = provider.signingIn else { throw .noRoute(.signInUnknownProvider) }
        let first = try await caller(of: request)
        let form = try SignInBody.form(of: request)
        let proven = try await attempting(budgets.logins(with: provider), request) { () async throws(Failure) in
            try await prove(form, with: signingIn, request, for: .link(sessionID: first.session.id))
        }
        // The proof may have taken its time: a session that was ended meanwhile must not bind anything any more.
        let caller = try await caller(of: request)
        do throws(AccountError) {
            try await accounts.link(
                proven.accountIdentity(of: provider.name), to: caller.session.subject, keeping: proven.keptClaims,
                at: setup.clock.unixTime)
        } catch {
            throw .account(error)
        }
        setup.logger.info("identity linked", ("provider", provider.name), ("request_id", request.requestID))
        return Answer.done
    }

    /// `DELETE /link/{provider}`.
    ///
    /// The account store decides, because it alone can do so for two requests at once. What follows is tried in full
    /// whatever fails, and once more when the client asks again: the identity is gone then, but its sessions still end.
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
            try await endSessions(of: subject, madeBy: name)
            throw .account(error)
        }
        do throws(AuthenticationError) {
            for subject in identity.subjects { try await provider?.unlinking?.unlink(subject) }
        } catch {
            await restore(identity, to: subject, in: accounts, request)
            throw .authentication(error)
        }
        setup.logger.info("identity unlinked", ("provider", name), ("request_id", request.requestID))
        try await endSessions(of: subject, madeBy: name)
        return Answer.done
    }

    /// Takes an unlinking back that the provider could not follow, so that it can be asked for again.
    private func restore(
        _ identity: AccountIdentity, to subject: String, in accounts: any AccountStoring, _ request: LocalRequest
    ) async {
        do throws(AccountError) {
            try await accounts.link(identity, to: subject, keeping: [:], at: setup.clock.unixTime)
        } catch {
            setup.logger.warning(
                "an identity is unlinked, but its provider still knows it", ("provider", identity.provider),
                ("reason", "\(error.code)"), ("request_id", request.requestID))
        }
    }

    /// Ends what an identity that is not linked any more has made, and what loops remember of it.
    private func endSessions(of subject: String, madeBy provider: String) async throws(Failure) {
        await setup.forgetVerdicts(subject)
        await mark(subject, provider)
        do throws(SessionError) {
            try await setup.sessions.endAll(subject: subject, provider: provider, except: nil)
        } catch {
            throw .session(error)
        }
    }

    /// `POST /password`: of the account, wherever the session comes from.
    func changePassword(_ request: LocalRequest) async throws(Failure) -> LocalResponse {
        let caller = try await caller(of: request)
        let form = try SignInBody.form(of: request)
        do throws(AuthenticationError) {
            let owner = try await changePassword(
                of: caller, from: try form.requiredSecret("current_password"),
                to: try form.requiredSecret("new_password"), in: context(of: request))
            setup.logger.info("password changed", ("provider", owner), ("request_id", request.requestID))
            await setup.forgetVerdicts(caller.session.subject)
            await mark(caller.session.subject, owner)
        } catch {
            throw .authentication(error)
        }
        do throws(SessionError) {
            try await setup.sessions.endAll(subject: caller.session.subject, provider: nil, except: caller.session)
        } catch {
            setup.logger.warning(
                "sessions outlive a changed password", ("reason", "\(error.code)"), ("request_id", request.requestID))
            throw .session(error)
        }
        return Answer.done
    }

    /// Asks the providers that have a password of the caller's, the session's own first, and tells which one had it.
    private func changePassword(
        of caller: Caller, from current: Secret, to new: Secret, in context: AuthenticationContext
    ) async throws(AuthenticationError) -> String {
        let subjects = try await subjects(of: caller)
        let own = setup.providers.filter { $0.name.hasSameBytes(as: caller.principal.provider) }
        let others = setup.providers.filter { !$0.name.hasSameBytes(as: caller.principal.provider) }
        for provider in own + others {
            guard let changing = provider.passwordChanging, let subject = subjects[provider.name] else { continue }
            do throws(AuthenticationError) {
                try await changing.changePassword(of: subject, from: current, to: new, in: context)
                return provider.name
            } catch {
                guard error.disposition == .notFound else { throw error }
            }
        }
        throw AuthenticationError(.signInNoPassword, .notFound)
    }

    /// The caller's subjects by provider: those of the account, or of the session where there are no accounts.
    private func subjects(of caller: Caller) async throws(AuthenticationError) -> [String: String] {
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

    /// Marks a change for logins that are on their way.
    ///
    /// The change is done: a store that cannot take the mark leaves such a login its session, and ending those that are
    /// there already matters more.
    private func mark(_ subject: String, _ provider: String) async {
        do throws(StoreError) {
            try await fence.mark(subject, provider: provider)
        } catch {
            setup.logger.warning("a change could not be marked", ("provider", provider), ("reason", "\(error.code)"))
        }
    }
}
