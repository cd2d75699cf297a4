private import MartletCore
private import MartletJSON
public import MartletProvider

extension AppleProvider: SigningIn {
    /// Proves who logs in: by the identity token, to which the other members must be bound.
    ///
    /// The nonce is used up last, so that nobody can spend another's without a token that holds. A code is only checked
    /// against the token: nothing is exchanged.
    public func signIn(
        with form: SignInForm, in context: AuthenticationContext
    ) async throws(AuthenticationError) -> SignIn {
        let post = try LoginPost(form)
        var trail = CheckTrail(recorded: false)
        do throws(Refusal) {
            let token = try await settle(post.identityToken, for: .login, at: context.now, trail: &trail)
            let checks = LoginChecks(post: post, configuration: configuration, token: token)
            try checks.checkUser()
            try checks.checkCode()
            if let nonce = try checks.checkNonce() { try await consume(nonce) }
            return SignIn(identity: token.identity, keptClaims: post.name.map { ["name": .string($0)] } ?? [:])
        } catch {
            throw Self.error(error)
        }
    }

    /// Uses up a nonce; under `optional` it may as well be the app's own, which nobody has to know.
    ///
    /// One of ours works once under either policy: gone from the store, it does not turn into an app's own.
    private func consume(_ nonce: String) async throws(Refusal) {
        switch await context.consumeNonce(nonce) {
        case .answer: break
        case .miss: if configuration.nonce == .required || context.isIssued(nonce) { throw .nonceReused }
        case .unavailable(let error): throw .storeUnavailable("the nonce cannot be looked up [\(error.code)]")
        }
    }
}
