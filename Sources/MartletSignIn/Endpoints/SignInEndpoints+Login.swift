internal import MartletAccounts
internal import MartletCore
internal import MartletCrypto
internal import MartletJSON
internal import MartletProvider
internal import MartletProxy
internal import MartletSession

/// From a proof to tokens: login, the nonce before it, refresh after it.
extension SignInEndpoints {
    static let nonceLifetime = Duration.seconds(300)
    /// 256 bits.
    private static let nonceBytes = 32
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
        let start: LoginFence.Start
        do throws(StoreError) { start = try await fence.start() } catch { throw .store(error) }
        let proven = try await prove(form, with: signingIn, request)
        guard let repetition = proven.repetition else {
            return try await open(proven, provider: provider.name, startedAt: start)
        }
        return try await repeating(LoginRepetition(repetition, provider: provider.name, setup: setup), request) {
            () async throws(Failure) in
            try await open(proven, provider: provider.name, startedAt: start)
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
        _ proven: SignIn, provider: String, startedAt start: LoginFence.Start
    ) async throws(Failure) -> LocalResponse {
        let person = try await person(behind: proven, provider: provider)
        let identity = Self.identity(proven.identity, keeping: person.keptClaims)
        let tokens: IssuedTokens
        do throws(SessionError) {
            tokens = try await setup.sessions.create(
                subject: person.subject, provider: provider, identity: identity)
        } catch {
            throw .session(error)
        }
        try await keep(tokens, startedAt: start)
        return Answer.tokens(tokens, isNew: person.isNew)
    }

    /// Asks the provider for the identity behind a form.
    func prove(
        _ form: SignInForm, with signingIn: any SigningIn, _ request: LocalRequest
    ) async throws(Failure) -> SignIn {
        do throws(AuthenticationError) {
            return try await signingIn.signIn(with: form, in: context(of: request))
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
        if let wait = nonces.take(at: setup.clock.monotonicTime, for: request.network) {
            throw .throttled(.signInNonces, retryAfter: Int(clamping: wait.wholeSeconds) + 1)
        }
        guard let random = try? RandomBytes.make(Self.nonceBytes) else { throw .authUnavailable(.signInNoRandomness) }
        let nonce = NonceKey.mark + Base64URL.encode(random)
        let key = NonceKey.storeKey(of: nonce, prefix: setup.storeKeyPrefix)
        do throws(StoreError) {
            let isOurs = try await setup.store.setIfAbsent([1], for: key, lifetime: Self.nonceLifetime)
            guard isOurs else { throw StoreError(code: .signInNoRandomness, message: "a nonce was given out twice") }
        } catch {
            throw .store(error)
        }
        return Answer.json([
            "nonce": .string(nonce), "expires_in": .integer(Self.nonceLifetime.wholeSeconds),
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
        do throws(SessionError) {
            return Answer.tokens(try await setup.sessions.refresh(token), isNew: setup.accounts == nil ? nil : false)
        } catch {
            throw .session(error)
        }
    }
}

extension SignIn {
    /// The identity as accounts know it.
    func accountIdentity(of provider: String) -> AccountIdentity {
        AccountIdentity(provider: provider, subjects: [identity.providerSubject] + aliases)
    }
}
