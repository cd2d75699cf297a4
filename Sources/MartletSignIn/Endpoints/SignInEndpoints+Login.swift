internal import MartletAccounts
internal import MartletCore
internal import MartletCrypto
internal import MartletJSON
internal import MartletProvider
internal import MartletProxy
internal import MartletSession

/// From a proof to tokens: login, the nonce before it, refresh after it.
extension SignInEndpoints {
    /// The claim that an account keeps for its sessions.
    private static let keptClaim = "name"

    /// The person whom an identity belongs to.
    private struct Person {
        let subject: String
        let keptClaims: JSONObject
        /// `nil` without accounts.
        let isNew: Bool?
    }

    /// `POST /login/{provider}`.
    ///
    /// The account comes before the session, so that an outage between the two leaves no session without one. A code that
    /// works once is used up by then: the client has to get another.
    func login(
        _ request: LocalRequest, with provider: ProviderHandle, _ signingIn: any SigningIn
    ) async throws(Failure) -> LocalResponse {
        let form = try SignInBody.form(of: request)
        let client = try SessionClient(form, request)
        let (start, proven) = try await attempting(budgets.logins(with: provider), request) {
            () async throws(Failure) in
            let start: LoginFence.Start
            do throws(StoreError) { start = try await fence.start() } catch { throw .store(error) }
            return (start, try await prove(form, with: signingIn, request, for: .login))
        }
        guard let repetition = proven.repetition else {
            return try await open(proven, provider: provider.name, for: client, startedAt: start)
        }
        return try await repeating(LoginRepetition(repetition, provider: provider.name, setup: setup), request) {
            () async throws(Failure) in
            try await open(proven, provider: provider.name, for: client, startedAt: start)
        }
    }

    /// Answers the first of several equal posts, and the others as it.
    private func repeating(
        _ repetition: LoginRepetition, _ request: LocalRequest,
        _ body: () async throws(Failure) -> LocalResponse
    ) async throws(Failure) -> LocalResponse {
        do throws(StoreError) {
            if case .known(let answer) = try await repetition.claim(until: context(of: request).deadline) {
                return Answer.tokens(answer)
            }
        } catch {
            throw .store(error)
        }
        do throws(Failure) {
            let answer = try await body()
            await repetition.settle(answer.body)
            return answer
        } catch {
            await repetition.release()
            throw error
        }
    }

    /// Makes the session of a proven identity.
    private func open(
        _ proven: SignIn, provider: String, for client: SessionClient, startedAt start: LoginFence.Start
    ) async throws(Failure) -> LocalResponse {
        let person = try await person(behind: proven, provider: provider)
        let identity = Self.identity(proven.identity, keeping: person.keptClaims)
        let tokens: IssuedTokens
        do throws(SessionError) {
            tokens = try await setup.sessions.create(
                subject: person.subject, provider: provider, identity: identity, client: client)
        } catch {
            throw .session(error)
        }
        try await keep(tokens, startedAt: start)
        await noteLogin(of: person.subject, with: provider)
        return Answer.tokens(tokens, isNew: person.isNew)
    }

    /// Notes the login for the list of the account's identities; where that fails, the login is good all the same.
    private func noteLogin(of subject: String, with provider: String) async {
        guard let accounts = setup.accounts else { return }
        do throws(AccountError) {
            try await accounts.noteLogin(of: subject, with: provider, at: setup.clock.unixTime)
        } catch {
            setup.logger.warning("a login could not be noted", ("provider", provider), ("reason", "\(error.code)"))
        }
    }

    /// Asks the provider for the identity behind a form.
    func prove(
        _ form: SignInForm, with signingIn: any SigningIn, _ request: LocalRequest,
        for purpose: AuthenticationContext.Purpose
    ) async throws(Failure) -> SignIn {
        do throws(AuthenticationError) {
            return try await signingIn.signIn(with: form, in: context(of: request, for: purpose))
        } catch {
            throw .authentication(error)
        }
    }

    private func person(behind proven: SignIn, provider: String) async throws(Failure) -> Person {
        guard let accounts = setup.accounts else {
            let subject = Principal(identity: proven.identity, provider: provider, sessionID: nil).subject
            return Person(subject: subject, keptClaims: proven.keptClaims, isNew: nil)
        }
        do throws(AccountError) {
            let account = try await accounts.signIn(
                proven.accountIdentity(of: provider), keeping: proven.keptClaims, at: setup.clock.unixTime)
            var kept: JSONObject = [:]
            kept[Self.keptClaim] = account.keptClaims[Self.keptClaim]
            return Person(subject: account.subject, keptClaims: kept, isNew: account.isNew)
        } catch {
            throw .account(error)
        }
    }

    /// An identity with kept claims where it has none of its own.
    private static func identity(_ identity: Identity, keeping kept: JSONObject) -> Identity {
        var claims = identity.claims
        for member in kept.members where claims[member.name] == nil || claims[member.name] == .null {
            claims[member.name] = member.value
        }
        return Identity(
            providerSubject: identity.providerSubject, issuer: identity.issuer, claims: claims,
            authTime: identity.authTime, issuedAt: identity.issuedAt, expiresAt: identity.expiresAt)
    }

    /// Ends a session again whose proof was withdrawn while it was made.
    private func keep(_ tokens: IssuedTokens, startedAt start: LoginFence.Start) async throws(Failure) {
        let refusal: Failure
        do throws(StoreError) {
            let subject = tokens.session.subject
            guard try await fence.wasOvertaken(start, subject, provider: tokens.provider) else { return }
            refusal = .credentialInvalid(.signInOvertaken)
        } catch {
            refusal = .store(error)
        }
        // Nobody has its tokens, so a failure here leaves a session that nobody can use.
        _ = try? await setup.sessions.end(tokens.session)
        throw refusal
    }

    /// `POST /nonce`.
    func nonce(_ request: LocalRequest) async throws(Failure) -> LocalResponse {
        let nonce = try await attempting(budgets.nonces, request, countsSuccess: true) { () async throws(Failure) in
            do throws(StoreError) { return try await setup.nonces.make() } catch { throw .store(error) }
        }
        return Answer.json([
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
        return try await attempting(budgets.refreshes, request) { () async throws(Failure) in
            do throws(SessionError) {
                let tokens = try await setup.sessions.refresh(token, from: request.address)
                return Answer.tokens(tokens, isNew: setup.accounts == nil ? nil : false)
            } catch {
                throw .session(error)
            }
        }
    }

    /// Does what needs no proof, if the network may fail at it once more; a refusal (401, 403) counts, an outage does not.
    /// - Parameter countsSuccess: whether success counts as well, because there is nothing to fail at.
    func attempting<Value>(
        _ budget: AttemptBudget, _ request: LocalRequest, countsSuccess: Bool = false,
        _ body: () async throws(Failure) -> Value
    ) async throws(Failure) -> Value {
        let clock = setup.clock
        let attempt: AttemptBudget.Attempt
        do throws(BudgetExceeded) {
            attempt = try budget.begin(from: request.network, at: clock.monotonicTime)
        } catch {
            throw .budget(error)
        }
        do throws(Failure) {
            let value = try await body()
            budget.end(attempt, failed: countsSuccess, at: clock.monotonicTime)
            return value
        } catch {
            budget.end(attempt, failed: [401, 403].contains(error.status), at: clock.monotonicTime)
            throw error
        }
    }
}

extension SignIn {
    /// The identity as accounts know it.
    func accountIdentity(of provider: String) -> AccountIdentity {
        AccountIdentity(provider: provider, subjects: [identity.providerSubject] + aliases)
    }
}
