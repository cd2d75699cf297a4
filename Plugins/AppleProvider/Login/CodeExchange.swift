internal import MartletCore
private import MartletCrypto
internal import MartletProvider

/// Exchanges the code of a login for a refresh token: each code once, over all instances.
///
/// A code is claimed in the store before it is sent, so it is never sent again, even if the first attempt failed.
struct CodeExchange: Sendable {
    /// Longer than any code is valid: Apple's expire after five minutes.
    static let claimLifetime = Duration.seconds(900)

    let provider: AppleProvider
    /// With capacity for the call.
    let client: AppleClient

    /// The client that a code was issued to, and what its request to Apple had.
    struct Holder {
        let clientID: String
        /// `nil` for codes of apps.
        let redirectURI: String?
        /// `nil` if the request had no `code_challenge`.
        let codeVerifier: Secret?
    }

    /// What Apple returned for a code.
    struct Exchanged {
        let token: VerifiedToken
        /// `nil` if Apple issued no refresh token.
        let grant: ProviderGrant?
    }

    /// - Parameters:
    ///   - login: the verified token that came with the code; `nil` if none did.
    ///   - context: of the login.
    /// - Throws: `rejected` for a code that was used or does not belong to the token, `unavailable` if Apple's
    ///   response proves nothing.
    func run(
        _ code: Secret, of holder: Holder, with login: VerifiedToken?, in context: AuthenticationContext
    ) async throws(AppleError) -> Exchanged {
        try await claim(code, in: context)
        var fields = [(name: "grant_type", value: "authorization_code"), (name: "code", value: code.text)]
        if let redirectURI = holder.redirectURI { fields.append((name: "redirect_uri", value: redirectURI)) }
        if let verifier = holder.codeVerifier { fields.append((name: "code_verifier", value: verifier.text)) }
        let granted: TokenResponse.Granted
        switch try await client.requestToken(fields, for: holder.clientID, until: context.deadline) {
        case .granted(let tokens): granted = tokens
        case .refused(.invalidGrant, _): throw .codeRejected
        case .refused(let error, _): throw .apiRefused(error)
        case .throttled: throw .apiThrottled
        case .unknown(let what): throw .apiBadResponse(what)
        }
        let token = try await verified(granted.identityToken, at: context.now)
        try ExchangeChecks(login: login, audience: holder.clientID, accessToken: granted.accessToken)
            .check(token)
        return Exchanged(
            token: token, grant: granted.refreshToken.map { ProviderGrant(client: holder.clientID, token: $0) })
    }

    private func claim(_ code: Secret, in login: AuthenticationContext) async throws(AppleError) {
        let digest = Base64URL.encode(code.withBytes { SHA256.digest($0) })
        let context = provider.context
        let isFirst: Bool
        do throws(StoreError) {
            isFirst = try await context.store.partition(.codes, for: login.owner).setIfAbsent(
                [1], for: context.storeKey(sharedBy: AppleProvider.kind, "code:\(digest)"),
                lifetime: Self.claimLifetime)
        } catch {
            throw AppleError(error, "claiming a code failed")
        }
        guard isFirst else { throw .codeReused }
    }

    private func verified(_ token: Secret, at now: UnixTime) async throws(AppleError) -> VerifiedToken {
        var log = CheckLog(recorded: false)
        let credential = Credential(bearer: token.withBytes { $0.map(\.self) })
        return try await provider.verifyFetchingKey(credential, for: .login, at: now, log: &log)
    }
}

/// Checks that the token of an exchange belongs to the login whose code was exchanged.
struct ExchangeChecks {
    /// `nil` if no token came with the code.
    let login: VerifiedToken?
    let audience: String
    let accessToken: Secret

    /// - Throws: `rejected` if the tokens are of different users, clients or requests.
    func check(_ exchanged: VerifiedToken) throws(AppleError) {
        guard exchanged.audience.hasSameBytes(as: audience) else {
            throw .exchangeMismatch("the exchanged code belongs to another client")
        }
        if let login { try check(exchanged, against: login) }
        guard let expected = try exchanged.claims.binding(.accessTokenHash) else { return }
        guard LoginChecks.areEqual(LoginChecks.halfHash(of: accessToken), expected) else {
            throw .exchangeMismatch("the access token does not match at_hash")
        }
    }

    private func check(_ exchanged: VerifiedToken, against login: VerifiedToken) throws(AppleError) {
        guard exchanged.identity.providerSubject.hasSameBytes(as: login.identity.providerSubject) else {
            throw .exchangeMismatch("the exchanged code belongs to another user")
        }
        try checkNonce(of: exchanged, against: login)
    }

    /// A token that says that it supports nonces must have the login's; from another one it may be missing.
    private func checkNonce(of exchanged: VerifiedToken, against login: VerifiedToken) throws(AppleError) {
        let (own, other) = (try login.claims.binding(.nonce), try exchanged.claims.binding(.nonce))
        switch (own, other) {
        case (nil, nil): return
        case (let own?, let other?): if LoginChecks.areEqual(own, other) { return }
        case (_?, nil): if !exchanged.claims.supportsNonce { return }
        case (nil, _?): break
        }
        throw .exchangeMismatch("the exchanged code belongs to a request with another nonce")
    }
}
