private import MartletConfig
internal import MartletCore
internal import MartletJOSE
internal import MartletJSON
internal import MartletProvider

/// What verified claims say.
struct VerifiedClaims {
    let identity: Identity
    /// All claims, including those that only serve to verify a token, such as `nonce`.
    let payload: JSONObject
    /// What the token was signed with; `nil` for a response of the issuer.
    let algorithm: SignatureAlgorithm?
}

/// The checks that a token, or what the issuer says about one, must pass: those of every token, then those of OpenID
/// Connect and of access tokens.
struct OIDCChecklist: Sendable {
    /// What a token is.
    enum Kind: Sendable {
        /// A bearer token; `demandsAccessToken`: one with all that RFC 9068 §2.2 requires.
        case bearer(demandsAccessToken: Bool)
        /// An ID token for one of these clients.
        case identity(clients: [String])
        /// What the issuer has just said about an opaque token.
        case response
    }

    private let checks: TokenChecks
    private let kind: Kind
    private let configuration: OIDCConfiguration

    /// - Parameters:
    ///   - maximumAge: `nil` for any.
    ///   - maximumTokenBytes: the maximum length of a token.
    ///   - headers: the parsed headers of the issuer's tokens.
    init(
        _ kind: Kind, _ configuration: OIDCConfiguration, maximumAge: Duration?, maximumTokenBytes: Int,
        headers: JWSHeaderCache
    ) {
        self.kind = kind
        self.configuration = configuration
        var audiences = configuration.audiences.map(\.value)
        if case .identity(let clients) = kind { audiences = clients }
        var checks = TokenChecks(
            prefix: OIDCProvider.kind.rawValue, owner: "the issuer's", algorithms: configuration.algorithms,
            issuers: configuration.issuers, audiences: audiences, maximumAge: maximumAge ?? .zero,
            headers: headers)
        checks.audienceForm = .anyOf
        checks.acceptsUnnamedKeys = true
        checks.leeway = configuration.leeway
        checks.acceptsAnyAge = maximumAge == nil
        checks.maximumTokenBytes = maximumTokenBytes
        switch kind {
        case .bearer(demandsAccessToken: true): checks.types = [.accessToken]
        case .bearer: checks.types = [.none, .jwt, .accessToken]
        // An access token is no proof of a login, not even to the client that has it.
        case .identity: checks.types = [.none, .jwt]
        case .response: checks.isOnline = true
        }
        // `aud` of an ID token is its client (OIDC Core §2).
        if case .identity = kind {} else { checks.audienceClaim = configuration.audienceClaim }
        self.checks = checks
    }

    /// Runs the checks of a token up to the first that fails.
    ///
    /// - Parameter lookup: finds a key: among the cached ones, or the result of a fetch.
    func run(
        _ token: [UInt8], at now: UnixTime, log: inout CheckLog, lookup: (KeyID?) -> IssuerKeys.Lookup
    ) throws(OIDCError) -> VerifiedClaims {
        let checked = try OIDCError.fromToken(try checks.check(token, at: now, log: &log, lookup: lookup))
        return try run(checked, log: &log, reusableFor: nil, at: now)
    }

    /// Runs the checks of what the issuer has said about a token.
    /// - Parameter span: how long it may be used again.
    func run(
        response: JSONObject, at now: UnixTime, log: inout CheckLog, reusableFor span: Duration
    ) throws(OIDCError) -> VerifiedClaims {
        let checked = try OIDCError.fromToken(try checks.check(TokenClaims(response), at: now, log: &log))
        return try run(checked, log: &log, reusableFor: span, at: now)
    }

    private func run(
        _ checked: TokenChecks.Checked, log: inout CheckLog, reusableFor span: Duration?, at now: UnixTime
    ) throws(OIDCError) -> VerifiedClaims {
        let payload = checked.claims.payload
        let subject = try OIDCError.fromToken(
            try checks.subject(of: checked.claims, in: configuration.subjectClaim?.value, log: &log))
        try log.check("token kind") { () throws(OIDCError) in try checkKind(payload) }
        let binding = try log.check("binding") { () throws(OIDCError) in
            try TokenBinding(configuration, kind).binding(of: payload)
        }
        try log.check("authorized party") { () throws(OIDCError) in try checkAuthorizedParty(payload) }
        let values = try log.check("claims") { () throws(OIDCError) in
            try ClaimNormalizer(renames: configuration.renames).normalize(payload)
        }
        let times = checked.times
        let identity = Identity(
            providerSubject: subject, issuer: checked.issuer, claims: values,
            authTime: times.authTime ?? times.issuedAt, issuedAt: times.issuedAt, expiresAt: times.end,
            reusableUntil: span.map { now.advanced(bySeconds: $0.wholeSeconds) }, binding: binding)
        return VerifiedClaims(identity: identity, payload: payload, algorithm: checked.algorithm)
    }
}

// MARK: - What the token is

extension OIDCChecklist {
    private func checkKind(_ payload: JSONObject) throws(OIDCError) {
        // Security events (RFC 8417) and logout tokens are signed with the same keys, often for the same audience.
        guard payload["events"]?.object == nil else {
            throw .rejected("wrong_token_kind", "the token is about an event, not about its bearer")
        }
        if case .bearer(demandsAccessToken: true) = kind {
            for name in ["client_id", "jti"] where payload[name]?.string?.isEmpty ?? true {
                throw .rejected("wrong_token_kind", "an access token has a claim \(name)")
            }
            guard let subject = payload["sub"]?.string, TokenClaims.isIdentifier(subject) else {
                throw .rejected("bad_subject", "sub is not a string of 1 to 255 bytes")
            }
        }
        guard case .response = kind else { return }
        if let use = payload["token_use"]?.string, use.hasSameBytes(as: "refresh_token") {
            throw .rejected("wrong_token_kind", "the token is a refresh token")
        }
        guard let type = payload.present("token_type") else { return }
        switch type.string?.lowercased() {
        case "bearer", "access_token": return
        // Its key is checked with the binding.
        case "dpop" where payload.has("cnf"): return
        case "dpop": throw TokenBinding.error
        default: throw .rejected("wrong_token_kind", "token_type is not Bearer")
        }
    }

    /// `azp`: of an ID token, the client that it was issued to (OIDC Core §3.1.3.7); of others, what the configuration
    /// demands.
    private func checkAuthorizedParty(_ payload: JSONObject) throws(OIDCError) {
        let accepted: [String]
        if case .identity(let clients) = kind {
            guard payload.present("azp") != nil || (payload["aud"]?.array?.count ?? 1) > 1 else { return }
            accepted = clients
        } else {
            guard let parties = configuration.authorizedParties else { return }
            accepted = parties
        }
        guard let party = payload["azp"]?.string else {
            throw .rejected(
                "bad_authorized_party", payload.present("azp") == nil ? "azp is missing" : "azp is not a string")
        }
        guard accepted.contains(where: { party.hasSameBytes(as: $0) }) else {
            throw .rejected(
                "bad_authorized_party",
                "azp is \(ShownText.make(party)), not \(accepted.prefix(4).joined(separator: " or "))")
        }
    }
}
