internal import MartletCore
private import MartletJSON
public import MartletProvider

extension OIDCProvider: SigningIn {
    /// Whether apps may log in with ID tokens.
    public var acceptsSignIn: Bool { configuration.login != nil }

    /// Authenticates a login by the ID token that an app has got from the issuer, to which the nonce must be bound.
    ///
    /// The nonce is consumed after the checks, and after the gateway has approved the identity, so that only the holder
    /// of a valid token can consume it, and a link that is rejected leaves it for the next attempt.
    public func signIn(
        with form: SignInForm, in context: AuthenticationContext
    ) async throws(AuthenticationError) -> SignIn {
        guard let login = configuration.login else {
            throw OIDCError(.notFound, "login_not_configured", "logins are off").authenticationError
        }
        // A copy, because both owners wipe what they hold.
        let token = try form.requiredSecret("id_token").withBytes { Credential(bearer: $0.map(\.self)) }
        let nonce = try form.text("nonce")
        let signIn: SignIn
        let used: String?
        do throws(OIDCError) {
            var log = CheckLog(recorded: false)
            let verified = try await verifyFetchingKey(token, for: .login, at: context.now, log: &log)
            used = try Self.nonce(nonce?.isEmpty == true ? nil : nonce, of: verified, under: login.nonce)
            signIn = SignIn(identity: verified.identity)
        } catch { throw error.authenticationError }
        try await context.approve(signIn)
        guard let used else { return signIn }
        try await OIDCError.result(await consume(used, under: login.nonce, in: context))
        return signIn
    }

    /// Body and token must agree on the nonce.
    /// - Returns: the nonce to consume, if there is one.
    private static func nonce(
        _ sent: String?, of verified: VerifiedClaims, under policy: LoginBlock.NoncePolicy
    ) throws(OIDCError) -> String? {
        if policy == .off { return nil }
        // Accepting a nonce in only one of them would let the holder of a stolen token leave its nonce out.
        if policy == .optional, sent == nil, verified.payload.present("nonce") == nil { return nil }
        guard let sent else { throw OIDCError(.incomplete("nonce"), "nonce_missing", "nonce missing from the body") }
        try IdentityTokenBinding(payload: verified.payload).checkNonce(sent)
        return sent
    }

    /// Consumes a nonce; under `optional` it may also be the app's own, which the store does not know.
    private func consume(
        _ nonce: String, under policy: LoginBlock.NoncePolicy, in login: AuthenticationContext
    ) async throws(OIDCError) {
        switch await context.consumeNonce(nonce, in: login) {
        case .found: break
        case .miss:
            guard policy == .optional, !context.isIssued(nonce) else {
                throw .rejected("nonce_reused", "the nonce was used, has expired or was not issued here")
            }
        case .unavailable(let error): throw OIDCError(error, "nonce lookup failed")
        }
    }
}
