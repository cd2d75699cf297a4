internal import MartletConfig
internal import MartletCore
private import MartletCrypto
internal import MartletProvider

/// Exchanges the code of a login for a refresh token: each code once, over all instances.
///
/// A code is claimed in the store before it is sent, so it is never sent again, whatever became of the first attempt.
struct CodeExchange: Sendable {
    /// Longer than any code is valid: Apple's expire after five minutes.
    static let claimLifetime = Duration.seconds(900)

    let provider: AppleProvider
    /// With capacity for the call.
    let client: AppleClient

    /// - Parameters:
    ///   - login: the verified token that came with the code.
    ///   - now: when the login arrived.
    /// - Returns: the grant; `nil` if Apple issued no refresh token.
    /// - Throws: `rejected` for a code that was used or does not belong to the token, `unavailable` if Apple's
    ///   response proves nothing.
    func run(
        _ code: Secret, of login: VerifiedToken, at now: UnixTime, until deadline: MonotonicTime
    ) async throws(AppleError) -> ProviderGrant? {
        let audience = try login.claims.audience(among: provider.configuration.audiences)
        try await claim(code)
        // No redirect_uri: Apple refuses it for codes of native apps.
        let grant = [(name: "grant_type", value: "authorization_code"), (name: "code", value: code.text)]
        let granted: TokenResponse.Granted
        switch try await client.requestToken(grant, for: audience, until: deadline) {
        case .granted(let tokens): granted = tokens
        case .refused(.invalidGrant): throw .codeRejected
        case .refused(let error): throw .apiRefused(error)
        case .throttled: throw .apiThrottled
        case .unknown(let what): throw .apiBadResponse(what)
        }
        let checks = ExchangeChecks(login: login, audience: audience, accessToken: granted.accessToken)
        try checks.check(try await verified(granted.identityToken, at: now), among: provider.configuration.audiences)
        return granted.refreshToken.map { ProviderGrant(client: audience, token: $0) }
    }

    private func claim(_ code: Secret) async throws(AppleError) {
        let digest = Base64URL.encode(code.withBytes { SHA256.digest($0) })
        let context = provider.context
        let isFirst: Bool
        do throws(StoreError) {
            isFirst = try await context.store.partition(.codes).setIfAbsent(
                [1], for: context.storeKey(sharedBy: AppleProvider.kind, "code:\(digest)"),
                lifetime: Self.claimLifetime)
        } catch {
            throw .storeUnavailable("claiming a code failed [\(error.code)]")
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
    let login: VerifiedToken
    let audience: String
    let accessToken: Secret

    /// - Throws: `rejected` if the tokens are of different users, clients or requests.
    func check(
        _ exchanged: VerifiedToken, among audiences: NonEmpty<Located<String>>
    ) throws(AppleError) {
        guard exchanged.identity.providerSubject.hasSameBytes(as: login.identity.providerSubject) else {
            throw .exchangeMismatch("the exchanged code belongs to another user")
        }
        guard try exchanged.claims.audience(among: audiences).hasSameBytes(as: audience) else {
            throw .exchangeMismatch("the exchanged code belongs to another client")
        }
        try checkNonce(of: exchanged)
        guard let expected = try exchanged.claims.binding(.accessTokenHash) else { return }
        guard LoginChecks.areEqual(LoginChecks.halfHash(of: accessToken), expected) else {
            throw .exchangeMismatch("the access token does not match at_hash")
        }
    }

    /// A token that says that it supports nonces must have the login's; from another one it may be missing.
    private func checkNonce(of exchanged: VerifiedToken) throws(AppleError) {
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
