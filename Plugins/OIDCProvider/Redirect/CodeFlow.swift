internal import MartletConfig
internal import MartletCore
private import MartletCrypto
internal import MartletJOSE
internal import MartletJSON
internal import MartletProvider

/// Exchanges the code of a browser for tokens: each code once, over all instances.
struct CodeFlow {
    /// How long after `iat` an ID token is accepted: it was issued for the code a moment ago.
    static let maximumTokenAge = Duration.seconds(600)
    /// The maximum length of an ID token, which is never in a header.
    static let maximumTokenBytes = 64 * 1024
    /// Longer than any code is valid: ten minutes at most (RFC 6749 §4.1.2).
    private static let claimLifetime = Duration.seconds(900)

    let provider: OIDCProvider
    let web: OIDCWebBlock
    let endpoints: Endpoints

    /// - Throws: `rejected` for a code that was used or belongs to another attempt, `unavailable` if the issuer's
    ///   responses prove nothing.
    func run(
        _ code: Secret, of attempt: RedirectAttempt, in context: AuthenticationContext
    ) async throws(OIDCError) -> SignIn {
        // Before anything is consumed: without capacity for the calls the user can try again.
        let client = try await IssuerClient(provider.context, timeout: provider.configuration.timeout)
            .reserved(until: context.deadline)
        try await claim(code, in: context)
        let granted = try await exchange(code, of: attempt, by: client, until: context.deadline)
        var log = CheckLog(recorded: false)
        let credential = Credential(bearer: granted.identityToken.withBytes { $0.map(\.self) })
        let verified = try await provider.verifyFetchingKey(credential, for: .web, at: context.now, log: &log)
        try IdentityTokenBinding(payload: verified.payload).checkNonce(attempt.nonce)
        try IdentityTokenBinding(payload: verified.payload)
            .checkAccessToken(granted.accessToken, algorithm: verified.algorithm)
        guard web.fetchesUserInfo else { return SignIn(identity: verified.identity, isFresh: true) }
        let claims = try await userInfo(granted.accessToken, of: verified, by: client, in: context)
        return SignIn(identity: verified.identity.withClaims(claims), isFresh: true)
    }

    private func claim(_ code: Secret, in login: AuthenticationContext) async throws(OIDCError) {
        let issuer = Array(provider.configuration.issuer.value.utf8)
        let digest = Base64URL.encode(code.withBytes { SHA256.digest(issuer + [0] + $0) })
        let context = provider.context
        let isFirst: Bool
        do throws(StoreError) {
            isFirst = try await context.store.partition(.codes, for: login.owner).setIfAbsent(
                [1], for: context.storeKey(sharedBy: OIDCProvider.kind, "code:\(digest)"),
                lifetime: Self.claimLifetime)
        } catch {
            throw OIDCError(error, "claiming a code failed")
        }
        guard isFirst else { throw .rejected("code_reused", "the code was used before") }
    }

    private func exchange(
        _ code: Secret, of attempt: RedirectAttempt, by client: IssuerClient, until deadline: MonotonicTime
    ) async throws(OIDCError) -> TokenResponse.Granted {
        var fields = [
            (name: "grant_type", value: "authorization_code"), (name: "code", value: code.text),
            (name: "redirect_uri", value: attempt.redirectURI),
        ]
        if web.usesCodeChallenge { fields.append((name: "code_verifier", value: attempt.codeVerifier.text)) }
        let response = try await client.send(
            .form(fields + web.client.fields), to: endpoints.token, headers: web.client.headers, until: deadline)
        switch TokenResponse(response) {
        case .granted(let granted): return granted
        case .refused(let rejection) where rejection.error.hasSameBytes(as: "invalid_grant"):
            rejection.log("issuer did not accept a code", of: web.client.id, to: provider.context.logger)
            throw .rejected("code_rejected", "the issuer did not accept the code")
        case .refused(let rejection):
            rejection.log("issuer refused a code exchange", of: web.client.id, to: provider.context.logger)
            throw .unavailable(
                "exchange_refused", "the issuer refused a code exchange: \(ShownText.make(rejection.error))")
        case .throttled:
            throw OIDCError(.throttled(response.retryAfter), "api_throttled", "the issuer limits the rate of calls")
        case .unknown(let what):
            provider.context.logger.warning("issuer's response is invalid", ("reason", what))
            throw .unavailable("api_bad_response", what)
        }
    }

    /// The claims of the token, and those that only the userinfo endpoint has (OIDC Core §5.3).
    private func userInfo(
        _ accessToken: Secret, of verified: VerifiedClaims, by client: IssuerClient, in context: AuthenticationContext
    ) async throws(OIDCError) -> JSONObject {
        guard let url = endpoints.userInfo else {
            throw .unavailable("discovery_unavailable", "the issuer has no userinfo endpoint")
        }
        let response = try await client.send(
            .none, to: url, headers: [(name: "Authorization", value: "Bearer \(accessToken.text)")],
            until: context.deadline)
        let object = try await UserInfoResponse(provider: provider, client: web.client.id).read(
            response, at: context.now)
        // Otherwise the claims could be those of the owner of another access token.
        guard let subject = object["sub"]?.string, let own = verified.payload["sub"]?.string,
            subject.hasSameBytes(as: own)
        else { throw .rejected("userinfo_mismatch", "sub of userinfo is not that of the ID token") }
        var all = verified.payload
        for member in object.members where all.present(member.name) == nil && !Self.isOfTokens(member.name) {
            all[member.name] = member.value
        }
        return try ClaimNormalizer(renames: provider.configuration.renames).normalize(all)
    }

    /// Claims that say how the user authenticated, which an unsigned response cannot add.
    private static func isOfTokens(_ name: String) -> Bool {
        ["iss", "aud", "exp", "iat", "nbf", "azp", "cnf", "auth_time", "acr", "amr", "sid"]
            .contains { $0.hasSameBytes(as: name) }
    }
}

extension Identity {
    /// The identity with other claims.
    fileprivate func withClaims(_ claims: JSONObject) -> Identity {
        Identity(
            providerSubject: providerSubject, issuer: issuer, claims: claims, authTime: authTime, issuedAt: issuedAt,
            expiresAt: expiresAt, reusableUntil: reusableUntil)
    }
}

/// Checks that an ID token belongs to a login.
struct IdentityTokenBinding {
    let payload: JSONObject

    /// The token must have the nonce of the request.
    func checkNonce(_ nonce: String) throws(OIDCError) {
        guard let claim = payload["nonce"]?.string else {
            throw .rejected("nonce_missing", "nonce missing from the token")
        }
        guard ConstantTime.areEqual(Array(claim.utf8), Array(nonce.utf8)) else {
            throw .rejected("nonce_mismatch", "the nonce of the token is another")
        }
    }

    /// The access token must be the one that was issued with the ID token, where that says (OIDC Core §3.1.3.6).
    func checkAccessToken(_ token: Secret, algorithm: SignatureAlgorithm?) throws(OIDCError) {
        // No hash is defined for EdDSA.
        guard let expected = payload.present("at_hash"), let hash = algorithm.flatMap(Self.hash) else { return }
        let digest = token.withBytes { hash.digest($0) }
        let half = Base64URL.encode(Array(digest.prefix(hash.length / 2)))
        guard let text = expected.string, ConstantTime.areEqual(Array(text.utf8), Array(half.utf8)) else {
            throw .rejected("exchange_mismatch", "the access token does not match at_hash")
        }
    }

    private static func hash(of algorithm: SignatureAlgorithm) -> HashFunction? {
        switch algorithm {
        case .rs256, .ps256, .es256, .hs256: .sha256
        case .rs384, .ps384, .es384, .hs384: .sha384
        case .rs512, .ps512, .es512, .hs512: .sha512
        case .edDSA: nil
        }
    }
}
