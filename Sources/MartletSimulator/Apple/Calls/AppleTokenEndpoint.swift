internal import MartletCore
internal import MartletCrypto
internal import MartletJSON
internal import MartletResponder

/// `/auth/token` and `/auth/revoke` of the simulated Apple.
struct AppleTokenEndpoint {
    private static let migrationScope = "user.migration"

    let simulator: AppleSimulator

    /// `POST /auth/token`: exchanges a code, verifies a refresh token, or issues an access token for a migration.
    func issue(_ form: AppleForm) throws(AppleAPIError) -> LocalResponse {
        switch try form.required("grant_type") {
        case "authorization_code":
            try form.allow(Self.common + ["grant_type", "code", "redirect_uri", "code_verifier"])
            return try exchange(form)
        case "refresh_token":
            try form.allow(Self.common + ["grant_type", "refresh_token"])
            return try refresh(form)
        case "client_credentials":
            try form.allow(Self.common + ["grant_type", "scope"])
            return try issueMigrationToken(form)
        default: throw .unsupportedGrantType
        }
    }

    /// `POST /auth/revoke`: an empty response, also for tokens that are already invalid.
    func revoke(_ form: AppleForm) throws(AppleAPIError) -> LocalResponse {
        try form.allow(Self.common + ["token", "token_type_hint"])
        let token = try form.required("token")
        guard ["refresh_token", "access_token", nil].contains(form["token_type_hint"]) else {
            throw .invalidRequest("token_type_hint is not supported.")
        }
        try simulator.records.revoke(token, by: try client(form))
        return LocalResponse(status: 200, fields: [], body: [])
    }

    private static let common = ["client_id", "client_secret"]

    /// The client of a call, by its client secret.
    func client(_ form: AppleForm) throws(AppleAPIError) -> AppleRecords.Client {
        let clientID = try form.required("client_id")
        let checks = ClientSecretChecks(
            audience: AppleSimulator.issuer, keys: simulator.records.withBooks { $0.keys },
            now: simulator.clock.unixTime)
        let key = try checks.check(try form.required("client_secret"), clientID: clientID)
        return AppleRecords.Client(teamID: key.teamID, clientID: clientID)
    }

    // MARK: Grants

    private func exchange(_ form: AppleForm) throws(AppleAPIError) -> LocalResponse {
        let code = try form.required("code")
        let client = try client(form)
        let tokens = try simulator.records.redeem(
            .init(
                code: code, clientID: client.clientID, redirectURI: form["redirect_uri"],
                verifier: form["code_verifier"]), by: client)
        return try response(tokens, claims: tokens.token.claims)
    }

    private func refresh(_ form: AppleForm) throws(AppleAPIError) -> LocalResponse {
        let refreshToken = try form.required("refresh_token")
        let tokens = try simulator.records.refresh(refreshToken, by: try client(form))
        // There was no login that the nonce could be of.
        var claims = tokens.token.claims
        claims["nonce"] = nil
        return try response(tokens, claims: claims)
    }

    private func issueMigrationToken(_ form: AppleForm) throws(AppleAPIError) -> LocalResponse {
        let scope = try form.required("scope")
        let client = try client(form)
        guard scope.hasSameBytes(as: Self.migrationScope) else { throw .invalidScope }
        return .json(200, JSON.write(Self.members(try simulator.records.issueMigrationToken(to: client))))
    }

    private static func members(_ accessToken: String) -> JSONObject {
        [
            "access_token": .string(accessToken), "token_type": "Bearer",
            "expires_in": .integer(AccessToken.lifetime),
        ]
    }

    private func response(_ tokens: AppleRecords.Tokens, claims: JSONObject) throws(AppleAPIError) -> LocalResponse {
        var object = Self.members(tokens.accessToken)
        if let refreshToken = tokens.refreshToken { object["refresh_token"] = .string(refreshToken) }
        do throws(CryptoError) {
            let token = ExchangedToken(
                claims: claims, changes: tokens.token.changes, isForged: tokens.token.isForged)
            object["id_token"] = .string(try simulator.mint(token, accessToken: tokens.accessToken))
        } catch {
            throw .unavailable
        }
        return .json(200, JSON.write(object))
    }
}
