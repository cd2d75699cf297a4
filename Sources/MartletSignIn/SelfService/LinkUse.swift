internal import MartletAccounts
internal import MartletAudit
internal import MartletCore
internal import MartletEvents
internal import MartletIdentities
internal import MartletProvider
internal import MartletResponder
internal import MartletSession

/// What every use of a mailed link does, for endpoints and pages alike.
struct LinkUse: Sendable {
    let endpoints: SignInEndpoints

    /// Uses a link up, which proves the address of its user and sets the password; the sessions of the user end.
    ///
    /// The link is used after the new password was checked, so that a bad one can be corrected.
    /// - Parameter passwordMember: the member that has the password.
    func use(
        _ request: LocalRequest, for purpose: PasswordLinkPurpose, passwordMember: String
    ) async throws(Failure) {
        guard let links = endpoints.setup.links else { throw .noRoute(.signInNoAccounts) }
        let form = try SignInBody.form(of: request)
        try await endpoints.withBudget(endpoints.budgets.links, request) { () async throws(Failure) in
            let (digest, entry) = try await validLink(form, for: purpose, links)
            let hash = try await fromProvider(
                await entry.provider.hashNewPassword(
                    try form.requiredSecret(passwordMember), member: passwordMember,
                    in: endpoints.context(of: request)))
            let (now, names) = (endpoints.setup.clock.unixTime, endpoints.selfService.names)
            let proof =
                switch purpose {
                case .registration:
                    try await fromAccounts(await links.register(with: digest, password: hash, at: names, now: now))
                case .reset: try await fromAccounts(await links.reset(with: digest, to: hash, at: names, now: now))
                }
            guard let proof else { throw .credentialInvalid(.signInBadLink) }
            endpoints.setup.logger.info(
                purpose == .reset ? "password reset" : "user registered", ("provider", entry.name),
                ("request_id", request.requestID))
            try await follow(proof, request)
        }
    }

    /// The digest of the token in a body, and the provider of its link, which stays valid.
    /// - Throws: 401 for a link that is not valid, or whose provider no longer allows it.
    private func validLink(
        _ form: SignInForm, for purpose: PasswordLinkPurpose, _ links: AccountStore
    ) async throws(Failure) -> (digest: String, entry: SelfServiceProviders.Entry) {
        let entries = purpose == .reset ? endpoints.selfService.resetting : endpoints.selfService.registering
        let token = try read(form.requiredSecret("token"))
        guard let digest = LinkToken.digest(of: token) else { throw .credentialInvalid(.signInBadLink) }
        let name = try await fromAccounts(
            await links.linkProvider(of: digest, for: purpose, at: endpoints.setup.clock.unixTime))
        guard let name, let entry = entries.first(where: { $0.name.hasSameBytes(as: name) }) else {
            throw .credentialInvalid(.signInBadLink)
        }
        return (digest, entry)
    }

    /// Does what a proof leaves to be done: logins in progress and sessions end. All password providers share a user.
    private func follow(_ proof: AddressProof, _ request: LocalRequest) async throws(Failure) {
        for entry in endpoints.selfService.all {
            await entry.provider.passwordWasReset(of: proof.user, in: endpoints.context(of: request))
            // Also without an account: the first login may be in progress.
            await endpoints.ends.mark(user: proof.user, entry.name)
        }
        for account in proof.accounts where proof.isFirst {
            endpoints.setup.logger.info(
                "account reclaimed", ("subject", account.subject), ("identities", "\(account.identities.count)"),
                ("keys", "\(account.keys.count)"), ("request_id", request.requestID))
            endpoints.audit.record(
                .reclaim, request, detail: (account.identities + account.keys).joined(separator: " "),
                caller: NamedCaller(subject: account.subject, sessionID: nil))
        }
        guard try await end(proof) else { throw .authUnavailable(.signInEndPending) }
        for account in proof.accounts {
            endpoints.setup.logger.info(
                "sessions ended", ("subject", account.subject), ("reason", "password_changed"),
                ("request_id", request.requestID))
        }
    }

    /// - Returns: whether the sessions have ended; otherwise they end when the session store is available.
    private func end(_ proof: AddressProof) async throws(Failure) -> Bool {
        if let life = endpoints.setup.life { return await life.perform(proof.jobs) }
        for account in proof.accounts {
            try await endpoints.ends.end(SessionsEnd("password_changed"), of: account.subject)
        }
        return true
    }
}
