internal import MartletAccounts
internal import MartletAudit
internal import MartletCore
internal import MartletCrypto
internal import MartletEvents
internal import MartletIdentities
internal import MartletJSON
internal import MartletProvider
internal import MartletResponder
internal import MartletSession
internal import MartletTracing

/// The endpoints that issue tokens: login and refresh, and the nonce for a login.
extension SignInEndpoints {
    /// `POST /login/{provider}`.
    ///
    /// The account is created before the session, so that an outage in between leaves no session without an account. A
    /// single-use code is consumed by then: the client has to get another.
    func login(
        _ request: LocalRequest, with provider: ProviderHandle, _ signingIn: any SigningIn
    ) async throws(Failure) -> LocalResponse {
        let form = try SignInBody.form(of: request)
        let client = try SessionClient(form, request)
        let replaced = try read(form.secret(Self.replacedMember))
        let (key, start, signIn) = try await reportingFailure(of: provider, request) {
            () async throws(Failure) in
            let key = try await ClientKeys(endpoints: self).newKey(of: request)
            let (start, signIn) = try await logIn(form, with: provider, signingIn, request)
            return (key, start, signIn)
        }
        guard let repetition = signIn.repetition else {
            return try await issueTokens(
                for: signIn, of: provider, to: client, instead: replaced, boundTo: key, startedAt: start, request)
        }
        let posts = LoginRepetition(repetition, provider: provider.name, boundTo: key, for: request.owner, setup: setup)
        return try await repeating(posts, request) { () async throws(Failure) in
            try await issueTokens(
                for: signIn, of: provider, to: client, instead: replaced, boundTo: key, startedAt: start, request)
        }
    }

    /// The member of a login's body with the refresh token of the session that it replaces.
    static let replacedMember = "replaces"

    /// Runs a login within the network's budget, and reports a rejection to the webhooks that ask for logins.
    func reportingFailure<Value>(
        of provider: ProviderHandle, _ request: LocalRequest, as kind: AuditEvent.Kind = .login,
        _ body: () async throws(Failure) -> Value
    ) async throws(Failure) -> Value {
        request.callerNote?.note(provider: provider.name)
        do throws(Failure) {
            return try await withBudget(budgets.logins(with: provider), request, body)
        } catch {
            audit.recordRejection(kind, error, request, provider: provider.name)
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
        var isBoundOtherwise = false
        do throws(StoreError) {
            switch try await repetition.claim(until: context(of: request).deadline) {
            case .first: break
            case .repeated(let body):
                Self.note(body, request)
                return SignInResponse.tokens(body)
            case .boundOtherwise: isBoundOtherwise = true
            }
        } catch {
            throw .store(error)
        }
        guard !isBoundOtherwise else { throw .proofInvalid(.sessionWrongKey) }
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
    /// - Parameters:
    ///   - replaced: the refresh token of the session that ends first, so that it counts no longer.
    ///   - key: the thumbprint of the client's key; `nil` for a bearer's session.
    private func issueTokens(
        for signIn: SignIn, of provider: ProviderHandle, to client: SessionClient, instead replaced: Secret?,
        boundTo key: String?, startedAt start: LoginFence.Start, _ request: LocalRequest
    ) async throws(Failure) -> LocalResponse {
        let new = try await creation.prepare(signIn, by: provider, startedAt: start, request)
        if let replaced { await ends.endReplaced(replaced, request) }
        let tokens = try await creation.create(new, request) { evicting, mark throws(SessionError) in
            try await setup.sessions.create(
                subject: new.subject, provider: new.provider, identity: new.identity.bound(to: key), client: client,
                evicting: evicting, mark: mark)
        }
        return SignInResponse.tokens(tokens, isNew: new.isNewAccount)
    }

    /// Authenticates a form with the provider, for a login that a change during it overtakes.
    func logIn(
        _ form: SignInForm, with provider: ProviderHandle, _ signingIn: any SigningIn, _ request: LocalRequest,
        for purpose: AuthenticationContext.Purpose = .login, approvedBy approve: LoginApproval? = nil
    ) async throws(Failure) -> (LoginFence.Start, SignIn) {
        if let rejection = provider.rejection(ofLoginFrom: request.network) { throw .authentication(rejection) }
        let start = try await fromStore(await fence.start())
        return (
            start, try await authenticate(form, with: provider, signingIn, request, for: purpose, approvedBy: approve)
        )
    }

    /// Decides whether a login that is proved may go on, before the provider consumes what can be used once.
    typealias LoginApproval = @Sendable (SignIn) async throws(Failure) -> Void

    /// Authenticates a form with the provider.
    func authenticate(
        _ form: SignInForm, with provider: ProviderHandle, _ signingIn: any SigningIn, _ request: LocalRequest,
        for purpose: AuthenticationContext.Purpose, approvedBy approve: LoginApproval? = nil
    ) async throws(Failure) -> SignIn {
        let context = context(of: request, for: purpose, with: provider).approving(by: approve)
        do throws(AuthenticationError) {
            return try await traced(with: provider) { () async throws(AuthenticationError) in
                try await provider.logIn(in: context) { () async throws(AuthenticationError) in
                    try await signingIn.signIn(with: form, in: context)
                }
            }
        } catch {
            await note(error, of: provider, request)
            if let failure = error.cause as? Failure { throw failure }
            // Such as which audience a token has: the access line has the code alone.
            if let cause = error.cause as? any CodedError {
                setup.logger.debug(
                    "login rejected", ("provider", provider.name), ("code", error.code.rawValue),
                    ("reason", cause.message), ("request_id", request.requestID))
            }
            throw .authentication(error)
        }
    }

    /// Notes whose attempt it was that failed, for logs.
    private func note(_ error: AuthenticationError, of provider: ProviderHandle, _ request: LocalRequest) async {
        guard let user = error.user, let note = request.callerNote, note.caller == nil else { return }
        let subjects = AccountSubjects(
            accounts: setup.accounts, rules: setup.claimRules, transfers: nil, clock: setup.clock)
        guard let subject = await subjects.subject(of: user, provider: provider.name) else { return }
        note.note(subject: subject, sessionID: nil)
    }

    /// Records the verification of a login's credential in the trace of its request.
    func traced<Value>(
        with provider: ProviderHandle, _ work: () async throws(AuthenticationError) -> Value
    ) async throws(AuthenticationError) -> Value {
        try await TraceScope.span(
            "authenticate", .work, [SpanAttribute("martlet.provider", provider.name)],
            errorType: { $0.code.rawValue }, work)
    }

    /// Publishes the claims of an account after a refresh, so that a change whose publication failed takes effect;
    /// without the account store sessions go on as they are.
    private func refreshClaims(of tokens: IssuedTokens, _ request: LocalRequest) async {
        guard let state = setup.accounts?.health.state, state == .ready || state == .degraded else { return }
        do throws(ClaimPublisher.PublicationError) {
            try await setup.claims?.publish(tokens.session.subject, ifNewerThan: tokens.claimsVersion)
        } catch {
            setup.logger.warning(
                "claims of an account not read at a refresh", ("request_id", request.requestID),
                ("code", "\(error.code)"))
        }
    }

    /// `POST /nonce`.
    func nonce(_ request: LocalRequest) async throws(Failure) -> LocalResponse {
        let nonce = try await withBudget(budgets.nonces, request, countsSuccess: true) { () async throws(Failure) in
            try await fromStore(await setup.nonces.make())
        }
        return SignInResponse.json([
            "nonce": .string(nonce), "expires_in": .integer(NonceIssuer.lifetime.wholeSeconds),
        ])
    }

    /// `POST /refresh`.
    func refresh(_ request: LocalRequest) async throws(Failure) -> LocalResponse {
        let form = try SignInBody.form(of: request)
        let token = try read(form.requiredSecret("refresh_token"))
        return try await withBudget(budgets.refreshes, request) { () async throws(Failure) in
            let tokens = try await ClientKeys(endpoints: self).refresh(token, request)
            request.callerNote?.note(subject: tokens.session.subject, sessionID: tokens.session.id)
            request.callerNote?.note(provider: tokens.provider)
            await refreshClaims(of: tokens, request)
            return SignInResponse.tokens(tokens, isNew: setup.accounts == nil ? nil : false)
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

extension AuthenticationContext {
    fileprivate func approving(by approve: SignInEndpoints.LoginApproval?) -> AuthenticationContext {
        guard let approve else { return self }
        var copy = self
        copy.approval = { (signIn) async throws(AuthenticationError) in
            do throws(Failure) { try await approve(signIn) } catch {
                throw AuthenticationError(error.reason, .denied, cause: error)
            }
        }
        return copy
    }
}
