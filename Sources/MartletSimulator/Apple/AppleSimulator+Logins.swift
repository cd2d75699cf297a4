private import MartletCore
internal import MartletCrypto
internal import MartletJSON

extension AppleSimulator {
    /// Claims that belong to one token only.
    private static let ownClaims = ["iat", "exp", "c_hash", "at_hash", "real_user_status"]
    /// The limit on the claims that are kept with a code: a token of more bytes would be rejected anyway.
    private static let maximumClaims = 6 * 1024

    /// What to issue a code for.
    struct CodeOptions {
        let clientID: String
        let subject: String
        var redirectURI: String?
        var challenge: String?
        var lifetime = AuthorizationCode.lifetime
        /// Claims to replace in the identity token of the exchange; `null` leaves one out.
        var changes: JSONObject = [:]
        var isExchangeForged = false
    }

    enum CodeError: Error {
        case accountDeleted, claimsTooLarge
        case failed
    }

    /// Issues a code for a login, which authorizes the client for the user; the token gets its `c_hash`.
    func issueCode(with token: inout IdentityToken, _ options: CodeOptions) throws(CodeError) -> String {
        var claims = token.claims
        for name in Self.ownClaims { claims[name] = nil }
        guard JSON.write(claims).count <= Self.maximumClaims, JSON.write(options.changes).count <= Self.maximumClaims
        else { throw .claimsTooLarge }
        let usesRelay = Self.usesRelay(claims)
        let authorized = records.withBooks { $0.users.authorize(options.subject, usesRelay: usesRelay) }
        guard let generation = authorized else { throw .accountDeleted }
        let code = AuthorizationCode(
            clientID: options.clientID, subject: options.subject, redirectURI: options.redirectURI,
            challenge: options.challenge,
            token: ExchangedToken(claims: claims, changes: options.changes, isForged: options.isExchangeForged),
            generation: generation, expiresAt: clock.unixTime.advanced(bySeconds: options.lifetime))
        guard let name = try? records.issue(code) else { throw .failed }
        token.claims["c_hash"] = .string(OpaqueToken.halfHash(name))
        return name
    }

    /// Whether the address of a login is a relay address; `nil` if it has none.
    private static func usesRelay(_ claims: JSONObject) -> Bool? {
        guard claims["email"] != nil else { return nil }
        return claims["is_private_email"] == "true" || claims["is_private_email"] == true
    }

    func mint(_ exchanged: ExchangedToken, accessToken: String) throws(CryptoError) -> String {
        var token = token(audience: "", subject: "")
        let times = token.claims
        token.claims = exchanged.claims
        for name in ["iat", "exp"] { token.claims[name] = times[name] }
        token.claims["at_hash"] = .string(OpaqueToken.halfHash(accessToken))
        for change in exchanged.changes.members {
            // Not a `nil` literal, which would be the JSON value.
            token.claims[change.name] = change.value == .null ? JSONValue?.none : change.value
        }
        return try exchanged.isForged ? forge(token) : mint(token, by: key)
    }
}
