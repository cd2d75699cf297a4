private import MartletCore
private import MartletJSON
public import MartletProvider

extension AppleProvider: SigningIn {
    /// Authenticates a login by its identity token, to which the other members must be bound.
    ///
    /// The nonce is consumed after the checks, so that only the holder of a valid token can consume it. A code is
    /// exchanged last, if a key is configured, because it can be sent only once.
    public func signIn(
        with form: SignInForm, in context: AuthenticationContext
    ) async throws(AuthenticationError) -> SignIn {
        let request = try LoginRequest(form)
        var log = CheckLog(recorded: false)
        do throws(AppleError) {
            let token = try await verifyFetchingKey(request.identityToken, for: .login, at: context.now, log: &log)
            let checks = LoginChecks(request: request, configuration: configuration, token: token)
            try checks.checkUser()
            try checks.checkCode()
            let nonce = try checks.checkNonce()
            // Before anything is consumed: without capacity for the call the app can repeat the login.
            let client = request.authorizationCode == nil ? nil : try await client?.reserved(until: context.deadline)
            if let nonce { try await consume(nonce, in: context) }
            var grant: ProviderGrant?
            var isExchanged = false
            if let client, let code = request.authorizationCode {
                // Of an app: Apple rejects a redirect_uri.
                let holder = CodeExchange.Holder(
                    clientID: token.audience, redirectURI: nil,
                    codeVerifier: nil)
                grant = try await CodeExchange(provider: self, client: client)
                    .run(code, of: holder, with: token, in: context).grant
                isExchanged = true
            }
            return SignIn(
                identity: token.identity, storedClaims: request.name.map { ["name": .string($0)] } ?? [:],
                grant: grant, isFresh: isExchanged)
        } catch {
            throw Self.authenticationError(error)
        }
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
