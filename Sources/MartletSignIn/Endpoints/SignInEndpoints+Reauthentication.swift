internal import MartletAccounts
internal import MartletCore
internal import MartletIdentities
internal import MartletJSON
internal import MartletProvider
internal import MartletResponder
internal import MartletSession

/// Another proof of a session's owner (RFC 9470): `POST /reauthenticate`, and endpoints that require a fresh proof.
extension SignInEndpoints {
    /// The member of the body that names the provider of the credential.
    static let providerMember = "provider"

    /// `POST /reauthenticate`: the body is that of a login, with the name of its provider.
    func reauthenticate(_ request: LocalRequest) async throws(Failure) -> LocalResponse {
        let first = try await caller(of: request)
        let proof = try await authenticateAgain(try SignInBody.form(of: request), first, request)
        // Authentication takes time: a session that was ended meanwhile must not be renewed.
        let caller = try await caller(of: request, isProven: true)
        guard caller.session == first.session else { throw .credentialInvalid(.signInSessionNeeded) }
        let renewed = try await renew(caller, with: proof, request)
        setup.logger.info("authenticated again", ("request_id", request.requestID))
        var body: JSONObject = [
            "session_id": .string(caller.session.id), "auth_time": .integer(renewed.authTime.seconds),
        ]
        body[SessionProof.levelClaim] = renewed.acr.map { .string($0) }
        return SignInResponse.json(body)
    }

    /// - Returns: the proof that the session has now.
    private func renew(
        _ caller: Caller, with proof: SessionProof, _ request: LocalRequest
    ) async throws(Failure) -> SessionProof {
        if caller.cookie != nil { return try await renewCookie(of: caller, with: proof, request) ?? proof }
        let token = try PresentedToken(of: request).bytes
        return try await fromSessions(await setup.sessions.renew(Credential(bearer: token), with: proof))
    }

    /// Requires a proof of the caller that is not older than `age`: that of the session, or a credential in the body.
    ///
    /// A credential in the body must be valid even if the session's own proof would do: a client that sends a wrong one
    /// is in the wrong hands, or confused.
    /// - Parameter form: the body; `nil` without one.
    /// - Throws: 401 with a challenge of RFC 9470 if the proof is too old, otherwise like
    ///   ``authenticateAgain(_:_:_:)``.
    func requireFreshProof(
        of caller: Caller, within age: Duration, form: SignInForm?, _ request: LocalRequest
    ) async throws(Failure) {
        var authTime = caller.principal.identity.authTime
        if let form, form.hasAny(of: BodyMembers.ofCredentials) {
            authTime = try await authenticateAgain(form, caller, request).authTime
        }
        guard setup.clock.unixTime < authTime.advanced(bySeconds: age.wholeSeconds) else {
            throw .stepUp(StepUpRequirement(maximumAge: age.wholeSeconds), .signInProofTooOld)
        }
    }

    /// Authenticates the caller again with a credential in the body, which has to belong to the caller's account.
    ///
    /// It counts against the budgets of logins; no account is created.
    /// - Throws: 400 without the name of a provider that accepts logins, 401 for a wrong credential and for one of
    ///   another account, and whatever a login throws.
    func authenticateAgain(
        _ form: SignInForm, _ caller: Caller, _ request: LocalRequest
    ) async throws(Failure) -> SessionProof {
        let provider = try provider(in: form)
        guard let signingIn = provider.signingIn else { throw Self.unknownProvider }
        let signIn = try await withBudget(budgets.logins(with: provider), request) { () async throws(Failure) in
            let (start, signIn) = try await logIn(
                form, with: provider, signingIn, request, for: .reauthentication(sessionID: caller.session.id)
            ) { (signIn) async throws(Failure) in try await self.checkOwner(of: signIn, provider, is: caller) }
            try await checkOwner(of: signIn, provider, is: caller)
            try await checkNotOvertaken(since: start, caller.session.subject, provider: provider.name)
            // A login's grant replaces the one that is stored; otherwise it could not be revoked.
            try await creation.confirm(signIn, by: provider)
            return signIn
        }
        let now = setup.clock.unixTime
        return SessionProof(
            authTime: min(signIn.identity.authTime, now), acr: signIn.identity.claims[SessionProof.levelClaim]?.string)
    }

    /// - Throws: 401 for an identity of another account.
    private func checkOwner(of signIn: SignIn, _ provider: ProviderHandle, is caller: Caller) async throws(Failure) {
        let subject = try await knownSubject(of: signIn, provider: provider.name)
        guard let subject, subject.hasSameBytes(as: caller.session.subject) else {
            throw .credentialInvalid(.signInOtherAccount)
        }
    }

    /// The provider that the body names.
    private func provider(in form: SignInForm) throws(Failure) -> ProviderHandle {
        let name = try read(form.requiredText(Self.providerMember))
        guard let provider = setup.provider(name), provider.signingIn != nil else { throw Self.unknownProvider }
        return provider
    }

    private static let unknownProvider = Failure.malformed(
        .signInUnknownProvider,
        [BodyError(providerMember, .invalid, detail: "`provider` must name a provider that accepts logins.")])

    /// The subject of an existing account; `nil` if there is none.
    private func knownSubject(of signIn: SignIn, provider: String) async throws(Failure) -> String? {
        guard let accounts = setup.accounts else {
            return Principal(identity: signIn.identity, provider: provider, sessionID: nil).subject
        }
        try await fromAccounts(await setup.transfers?.follow(signIn.identity, provider: provider))
        let account = try await fromAccounts(await accounts.find(signIn.accountIdentity(of: provider)))
        if account == nil, let error = signIn.unlessKnown { throw .authentication(error) }
        guard account?.isDisabled != true else { throw .notAllowed(.accountDisabled) }
        return account?.subject
    }

    /// Rejects a proof whose identity was unlinked, or whose password was changed, in the meantime.
    private func checkNotOvertaken(
        since start: LoginFence.Start, _ subject: String, provider: String
    ) async throws(Failure) {
        guard try await !fromStore(await fence.wasOvertaken(start, subject, provider: provider)) else {
            throw .credentialInvalid(.signInOvertaken)
        }
    }
}
