internal import MartletAccounts
internal import MartletCore
internal import MartletCrypto
internal import MartletEvents
internal import MartletIdentities
internal import MartletJSON
internal import MartletProvider
internal import MartletResponder
internal import MartletSession

/// The endpoints that issue tokens: login and refresh, and the nonce for a login.
extension SignInEndpoints {
    /// The claim that an account stores for its sessions.
    private static let keptClaim = "name"

    /// The owner of a new session.
    private struct SessionOwner {
        let subject: String
        let storedClaims: JSONObject
        /// Whether the account has claims of its own.
        var hasClaims = false
        /// `nil` without accounts.
        let isNew: Bool?
    }

    /// `POST /login/{provider}`.
    ///
    /// The account is created before the session, so that an outage in between leaves no session without an account. A
    /// single-use code is consumed by then: the client has to get another.
    func login(
        _ request: LocalRequest, with provider: ProviderHandle, _ signingIn: any SigningIn
    ) async throws(Failure) -> LocalResponse {
        let form = try SignInBody.form(of: request)
        let client = try SessionClient(form, request)
        let (start, signIn) = try await reportingFailure(of: provider, request) {
            () async throws(Failure) in
            let start: LoginFence.Start
            do throws(StoreError) { start = try await fence.start() } catch { throw .store(error) }
            return (start, try await authenticate(form, with: signingIn, request, for: .login))
        }
        guard let repetition = signIn.repetition else {
            return try await createSession(signIn, provider: provider, for: client, startedAt: start, request)
        }
        return try await repeating(LoginRepetition(repetition, provider: provider.name, setup: setup), request) {
            () async throws(Failure) in
            try await createSession(signIn, provider: provider, for: client, startedAt: start, request)
        }
    }

    /// Runs a login within the network's budget, and reports a rejection to the webhooks that ask for logins.
    private func reportingFailure<Value>(
        of provider: ProviderHandle, _ request: LocalRequest, _ body: () async throws(Failure) -> Value
    ) async throws(Failure) -> Value {
        do throws(Failure) {
            return try await withBudget(budgets.logins(with: provider), request, body)
        } catch {
            if [401, 403].contains(error.status) {
                let data: JSONObject = [
                    "provider": .string(provider.name), "reason": .string(error.reason.rawValue),
                ]
                try? await setup.life?.report(.loginFailed, of: provider.name, data: data)
            }
            throw error
        }
    }

    /// Handles the first of several identical requests, and gives the others its response.
    private func repeating(
        _ repetition: LoginRepetition, _ request: LocalRequest,
        _ body: () async throws(Failure) -> LocalResponse
    ) async throws(Failure) -> LocalResponse {
        do throws(StoreError) {
            if case .repeated(let body) = try await repetition.claim(until: context(of: request).deadline) {
                Self.note(body, request)
                return SignInResponse.tokens(body)
            }
        } catch {
            throw .store(error)
        }
        do throws(Failure) {
            let response = try await body()
            await repetition.complete(response.body)
            return response
        } catch {
            await repetition.release()
            throw error
        }
    }

    /// Notes the caller of a repeated response.
    private static func note(_ body: [UInt8], _ request: LocalRequest) {
        let limits = JSONLimits(maximumDepth: 2, maximumBytes: SignInBody.maximumBytes)
        guard let members = try? JSON.parse(body, limits: limits).object, let subject = members["subject"]?.string
        else { return }
        request.callerNote?.note(subject: subject, sessionID: members["session_id"]?.string)
    }

    /// Creates the session of an authenticated identity.
    private func createSession(
        _ signIn: SignIn, provider: ProviderHandle, for client: SessionClient, startedAt start: LoginFence.Start,
        _ request: LocalRequest
    ) async throws(Failure) -> LocalResponse {
        let owner = try await owner(of: signIn, provider: provider.name, request)
        let confirmation = try await confirm(signIn, by: provider)
        let identity = Self.identity(signIn.identity, keeping: owner.storedClaims)
        let tokens = try await ends.issueTokens(to: owner.subject) { evicting throws(SessionError) in
            try await setup.sessions.create(
                subject: owner.subject, provider: provider.name, identity: identity, client: client,
                evicting: evicting)
        }
        // The session exists: a later change finds it, an earlier one is read here.
        if owner.hasClaims || confirmation == .stateChanged { try await publishClaims(of: owner.subject) }
        request.callerNote?.note(subject: owner.subject, sessionID: tokens.session.id)
        try await endIfOvertaken(tokens, startedAt: start)
        let email = signIn.identity.claims["email"]?.string.flatMap(EmailAddress.init)
        await recordLogin(of: owner.subject, with: provider.name, email: email)
        return SignInResponse.tokens(tokens, isNew: owner.isNew)
    }

    /// Records the login for the list of the account's identities, and for webhooks; a failure is only logged.
    private func recordLogin(of subject: String, with provider: String, email: EmailAddress?) async {
        guard let accounts = setup.accounts else { return }
        do throws(AccountError) {
            try await accounts.noteLogin(of: subject, with: provider, email: email, at: setup.clock.unixTime)
            try await setup.life?.report(.loginSucceeded, of: subject, data: ["provider": .string(provider)])
        } catch {
            setup.logger.warning("recording a login failed", ("provider", provider), ("reason", "\(error.code)"))
        }
    }

    /// Authenticates a form with the provider.
    func authenticate(
        _ form: SignInForm, with signingIn: any SigningIn, _ request: LocalRequest,
        for purpose: AuthenticationContext.Purpose
    ) async throws(Failure) -> SignIn {
        do throws(AuthenticationError) {
            return try await signingIn.signIn(with: form, in: context(of: request, for: purpose))
        } catch {
            throw .authentication(error)
        }
    }

    private func owner(
        of signIn: SignIn, provider: String, _ request: LocalRequest
    ) async throws(Failure) -> SessionOwner {
        guard let accounts = setup.accounts else {
            let subject = Principal(identity: signIn.identity, provider: provider, sessionID: nil).subject
            return SessionOwner(subject: subject, storedClaims: signIn.storedClaims, isNew: nil)
        }
        let account: Account
        do throws(AccountError) {
            try await setup.transfers?.follow(signIn.identity, provider: provider)
            let identity = signIn.accountIdentity(of: provider)
            account = try await accounts.signIn(
                identity, keeping: signIn.storedClaims,
                setting: setup.claimRules.claims(for: identity, loggingInWith: signIn.identity.claims),
                at: setup.clock.unixTime)
        } catch {
            throw .account(error)
        }
        request.callerNote?.note(subject: account.subject, sessionID: nil)
        guard !account.isDisabled else { throw .notAllowed(.accountDisabled) }
        guard !account.isRevoked(issuedAt: signIn.identity.issuedAt) else {
            throw .credentialInvalid(.identityRevoked)
        }
        if account.isBeingDeleted { try await restore(account.subject) }
        var kept: JSONObject = [:]
        kept[Self.keptClaim] = account.storedClaims[Self.keptClaim]
        return SessionOwner(
            subject: account.subject, storedClaims: kept, hasClaims: account.hasClaims, isNew: account.isNew)
    }

    /// Publishes the claims of an account, unless that was done.
    private func publishClaims(of subject: String) async throws(Failure) {
        do throws(ClaimPublisher.PublicationError) {
            try await setup.claims?.publishIfNewer(subject)
        } catch {
            throw .publication(error)
        }
    }

    /// The same after a refresh, so that a change whose publication failed takes effect; without the account store
    /// sessions go on as they are.
    private func refreshClaims(of subject: String, _ request: LocalRequest) async {
        guard setup.accounts?.health.state == .ready else { return }
        do throws(ClaimPublisher.PublicationError) {
            try await setup.claims?.publishIfNewer(subject)
        } catch {
            setup.logger.warning(
                "claims of an account not read at a refresh", ("request_id", request.requestID),
                ("reason", "\(error.code)"))
        }
    }

    /// Takes the requested deletion of an account back.
    private func restore(_ subject: String) async throws(Failure) {
        do throws(AccountError) { try await setup.life?.restore(subject) } catch { throw .account(error) }
    }

    /// Records what the issuer granted with a login, and that it has confirmed the identity.
    /// - Throws: 401 if the identity was revoked while the login was in progress.
    @discardableResult
    func confirm(_ signIn: SignIn, by provider: ProviderHandle) async throws(Failure) -> LoginConfirmation {
        guard let life = setup.life else { return .unchanged }
        do throws(AccountError) {
            let identity = signIn.accountIdentity(of: provider.name)
            guard let confirmation = try await life.confirm(signIn, identity, by: provider) else {
                throw AccountError(.identityRevoked, .notFound, "revoked during the login")
            }
            return confirmation
        } catch {
            throw error.code == .identityRevoked ? .credentialInvalid(error.code) : .account(error)
        }
    }

    /// Adds stored claims where the identity has none of its own.
    private static func identity(_ identity: Identity, keeping kept: JSONObject) -> Identity {
        var claims = identity.claims
        for member in kept.members where claims[member.name] == nil || claims[member.name] == .null {
            claims[member.name] = member.value
        }
        return Identity(
            providerSubject: identity.providerSubject, issuer: identity.issuer, claims: claims,
            authTime: identity.authTime, issuedAt: identity.issuedAt, expiresAt: identity.expiresAt)
    }

    /// Ends a new session whose identity was unlinked, or whose password was changed, during the login.
    private func endIfOvertaken(_ tokens: IssuedTokens, startedAt start: LoginFence.Start) async throws(Failure) {
        let failure: Failure
        do throws(StoreError) {
            let subject = tokens.session.subject
            guard try await fence.wasOvertaken(start, subject, provider: tokens.provider) else { return }
            failure = .credentialInvalid(.signInOvertaken)
        } catch {
            failure = .store(error)
        }
        // The tokens were not sent, so a failure here leaves a session that cannot be used.
        _ = try? await setup.sessions.end(tokens.session)
        throw failure
    }

    /// `POST /nonce`.
    func nonce(_ request: LocalRequest) async throws(Failure) -> LocalResponse {
        let nonce = try await withBudget(budgets.nonces, request, countsSuccess: true) { () async throws(Failure) in
            do throws(StoreError) { return try await setup.nonces.make() } catch { throw .store(error) }
        }
        return SignInResponse.json([
            "nonce": .string(nonce), "expires_in": .integer(NonceIssuer.lifetime.wholeSeconds),
        ])
    }

    /// `POST /refresh`.
    func refresh(_ request: LocalRequest) async throws(Failure) -> LocalResponse {
        let form = try SignInBody.form(of: request)
        let token: Secret
        do throws(AuthenticationError) {
            token = try form.requiredSecret("refresh_token")
        } catch {
            throw .authentication(error)
        }
        return try await withBudget(budgets.refreshes, request) { () async throws(Failure) in
            do throws(SessionError) {
                let tokens = try await setup.sessions.refresh(
                    token, from: request.address, reportingReuse: ends.report(as: "refresh_reuse"))
                request.callerNote?.note(subject: tokens.session.subject, sessionID: tokens.session.id)
                await refreshClaims(of: tokens.session.subject, request)
                return SignInResponse.tokens(tokens, isNew: setup.accounts == nil ? nil : false)
            } catch {
                throw .session(error)
            }
        }
    }

    /// Runs an unauthenticated request within the network's budget; rejections count, outages do not.
    /// - Parameters:
    ///   - countsSuccess: whether a success counts too.
    ///   - rejections: the statuses that count.
    func withBudget<Value>(
        _ budget: AttemptBudget, _ request: LocalRequest, countsSuccess: Bool = false,
        rejections: Set<Int> = [401, 403],
        _ body: () async throws(Failure) -> Value
    ) async throws(Failure) -> Value {
        let clock = setup.clock
        let attempt: AttemptBudget.Attempt
        do throws(BudgetExceededError) {
            attempt = try budget.begin(from: request.network, at: clock.monotonicTime)
        } catch {
            throw .budget(error)
        }
        do throws(Failure) {
            let value = try await body()
            budget.end(attempt, failed: countsSuccess, at: clock.monotonicTime)
            return value
        } catch {
            budget.end(attempt, failed: rejections.contains(error.status), at: clock.monotonicTime)
            throw error
        }
    }
}

extension SignIn {
    /// The identity in the form of the account store.
    func accountIdentity(of provider: String) -> AccountIdentity {
        AccountIdentity(provider: provider, subjects: [identity.providerSubject] + aliases)
    }
}
