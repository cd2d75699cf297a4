private import MartletCore
private import MartletJSON
public import MartletProvider

extension AppleProvider: SigningIn {
    /// Authenticates a login by its identity token, to which the other members must be bound.
    ///
    /// Nonce and code are used up after the checks, so that only the holder of a valid token can do that, and only if
    /// the gateway approves the identity. A code is exchanged last, if a key is configured, because it can be sent only
    /// once.
    public func signIn(
        with form: SignInForm, in context: AuthenticationContext
    ) async throws(AuthenticationError) -> SignIn {
        let request = try LoginRequest(form)
        let (token, nonce) = try await Self.result(await verified(request, at: context.now))
        let proved = SignIn(identity: token.identity, storedClaims: request.name.map { ["name": .string($0)] } ?? [:])
        try await context.approve(proved)
        let code = request.authorizationCode
        let consume = { @Sendable () async throws(AuthenticationError) -> SignIn in
            try await Self.result(await use(nonce, code, of: token, proved, in: context))
        }
        let usesUp = nonce.map { configuration.nonce == .required || self.context.isIssued($0) } ?? false
        guard usesUp || (client != nil && code != nil),
            let ledger = LoginLedger(request, in: context, of: self.context)
        else { return try await consume() }
        return try await ledger.run(until: context.deadline, consume)
    }

    /// - Returns: the token, and the nonce to consume, if there is one.
    private func verified(
        _ request: LoginRequest, at now: UnixTime
    ) async throws(AppleError) -> (VerifiedToken, nonce: String?) {
        var log = CheckLog(recorded: false)
        let token = try await verifyFetchingKey(request.identityToken, for: .login, at: now, log: &log)
        let checks = LoginChecks(request: request, configuration: configuration, token: token)
        try checks.checkUser()
        try checks.checkCode()
        return (token, try checks.checkNonce())
    }

    /// Uses up what can be used once.
    private func use(
        _ nonce: String?, _ code: Secret?, of token: VerifiedToken, _ proved: SignIn, in context: AuthenticationContext
    ) async throws(AppleError) -> SignIn {
        // Before anything is consumed: without capacity for the call the app can repeat the login.
        let client = code == nil ? nil : try await client?.reserved(until: context.deadline)
        if let nonce { try await consume(nonce, in: context) }
        guard let client, let code else { return proved }
        // Of an app: Apple rejects a redirect_uri.
        let holder = CodeExchange.Holder(clientID: token.audience, redirectURI: nil, codeVerifier: nil)
        let exchanged = try await CodeExchange(provider: self, client: client)
            .run(code, of: holder, with: token, in: context)
        return SignIn(
            identity: proved.identity, storedClaims: proved.storedClaims, grant: exchanged.grant, isFresh: true)
    }

    /// Consumes a nonce; under `optional` it may also be the app's own, which the store does not know.
    ///
    /// A nonce that the gateway issued is accepted once under either policy: after its removal from the store it does
    /// not pass for an app's own.
    private func consume(_ nonce: String, in login: AuthenticationContext) async throws(AppleError) {
        switch await context.consumeNonce(nonce, in: login) {
        case .found: break
        case .miss: if configuration.nonce == .required || context.isIssued(nonce) { throw .nonceReused }
        case .unavailable(let error): throw AppleError(error, "nonce lookup failed")
        }
    }
}
