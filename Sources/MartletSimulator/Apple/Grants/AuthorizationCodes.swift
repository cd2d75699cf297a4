internal import MartletCore
private import MartletCrypto
internal import MartletJSON

/// What an authorization code stands for.
struct AuthorizationCode: Sendable {
    /// Five minutes.
    static let lifetime: Int64 = 300

    let clientID: String
    let subject: String
    /// `nil` for codes of native apps.
    let redirectURI: String?
    /// The `code_challenge` of S256 (RFC 7636 §4.2); `nil` if none was sent.
    let challenge: String?
    let token: ExchangedToken
    /// The user's authorization that the code belongs to.
    let generation: Int
    let expiresAt: UnixTime
}

/// The identity token that `/auth/token` returns.
struct ExchangedToken: Sendable {
    /// The claims of the login, without the times.
    let claims: JSONObject
    /// Claims that a test replaces; `null` leaves one out.
    var changes: JSONObject = [:]
    var isForged = false
}

/// The issued codes, each for one use.
struct AuthorizationCodes: Sendable {
    private static let verifierLength = 43...128

    /// What a client sends with a code.
    struct Redemption {
        let code: String
        let clientID: String
        let redirectURI: String?
        let verifier: String?
    }

    private struct Issued: Sendable {
        let code: AuthorizationCode
        var isUsed = false
    }

    private var codes: BoundedTable<Issued>

    init(capacity: Int) { codes = BoundedTable(capacity: capacity) }

    mutating func insert(_ code: AuthorizationCode, as name: String) { codes.insert(Issued(code: code), as: name) }

    /// Uses a code up: also when the redirect URI or the verifier turns out wrong, but not for another client.
    mutating func redeem(_ redemption: Redemption, at now: UnixTime) throws(AppleAPIError) -> AuthorizationCode {
        guard let issued = codes[redemption.code] else {
            throw .invalidGrant("The code has expired or has been revoked.")
        }
        let code = issued.code
        guard code.clientID.hasSameBytes(as: redemption.clientID) else {
            throw .invalidGrant("client_id mismatch. The code was not issued to \(redemption.clientID.prefix(255)).")
        }
        guard !issued.isUsed else { throw .invalidGrant("The code has already been used.") }
        codes.update(redemption.code) { $0.isUsed = true }
        guard code.expiresAt > now else { throw .invalidGrant("The code has expired or has been revoked.") }
        try Self.check(redirectURI: redemption.redirectURI, of: code)
        try Self.check(verifier: redemption.verifier, of: code)
        return code
    }

    private static func check(redirectURI: String?, of code: AuthorizationCode) throws(AppleAPIError) {
        switch (code.redirectURI, redirectURI) {
        case (nil, nil): return
        case (nil, _): throw .invalidClient("The code of a native app was issued without a redirect_uri.")
        case (let expected?, let sent?) where expected.hasSameBytes(as: sent): return
        case (_, nil): throw .invalidClient("The redirect_uri is missing.")
        default: throw .invalidClient("The redirect_uri is not the one of the authorization request.")
        }
    }

    private static func check(verifier: String?, of code: AuthorizationCode) throws(AppleAPIError) {
        switch (code.challenge, verifier) {
        case (nil, nil): return
        case (nil, _): throw .invalidGrant("There was no code_challenge.")
        case (_, nil): throw .invalidGrant("The code_verifier is missing.")
        case (let challenge?, let verifier?):
            guard verifierLength.contains(verifier.utf8.count),
                challenge.hasSameBytes(as: Base64URL.encode(SHA256.digest(Array(verifier.utf8))))
            else { throw .invalidGrant("The code_verifier does not match the code_challenge.") }
        }
    }
}
