private import MartletCore
internal import MartletCrypto
private import MartletJOSE
internal import MartletJSON
internal import MartletResponder

/// A request for a token, parsed strictly: unknown, repeated and mistyped members are errors.
///
/// `audience` is required. `subject`, `lifetime` (seconds, negative for an expired token), `kid`, `email` (`null` for
/// none), `email_verified`, `nonce` and `claims` (which override all others) set the values of those names; with
/// `forged` the token is signed with an unpublished key, under any `kid`.
///
/// With `code` the user logs in: the response has an `authorization_code` for `/auth/token`, and the token its `c_hash`.
/// `redirect_uri`, `code_challenge` (S256) and `code_lifetime` (seconds) are those of the code; `exchange_claims`
/// override the claims of the identity token that the exchange returns (`null` leaves one out), and with
/// `exchange_forged` that token is signed with an unpublished key.
struct TokenRequest {
    private static let names = [
        "audience", "subject", "lifetime", "kid", "email", "email_verified", "nonce", "claims", "forged",
        "code", "redirect_uri", "code_challenge", "code_lifetime", "exchange_claims", "exchange_forged",
    ]
    /// Two days: Apple's tokens do not live longer.
    private static let maximumLifetime: Int64 = 48 * 3600
    private static let standardLifetime: Int64 = 24 * 3600
    static let standardSubject = "001234.0123456789abcdef0123456789abcdef.0001"

    let key: SimulatedKey
    let lifetime: Int64
    private let audience: String
    private let subject: String
    private let changes: JSONObject
    /// The claims to leave out.
    private let absent: [String]
    private let forgedKeyID: String?
    /// `nil` if no code is requested.
    private let code: AppleSimulator.CodeOptions?

    /// Parses a request.
    /// - Parameters:
    ///   - request: a POST of a JSON object.
    ///   - keys: the available keys; the first is used if no `kid` is given.
    init(_ request: LocalRequest, keys: [SimulatedKey]) throws(RequestError) {
        let input = try SimulatorRequest(request, members: Self.names)
        audience = try input.requiredText("audience")
        subject = try input.text("subject") ?? Self.standardSubject
        let range = -Self.maximumLifetime...Self.maximumLifetime
        lifetime = try input.number("lifetime", in: range, unit: " of seconds") ?? Self.standardLifetime
        let isForged = try input.flag("forged") ?? false
        let name = try input.text("kid")
        let named = name.flatMap { name in keys.first { $0.id.text.hasSameBytes(as: name) } }
        guard let key = named ?? (name == nil || isForged ? keys.first : nil) else {
            throw RequestError("'kid' is not one of \(keys.map(\.id.text).joined(separator: ", "))")
        }
        self.key = key
        forgedKeyID = isForged ? name ?? key.id.text : nil
        (changes, absent) = try Self.changes(in: input)
        code = try Self.code(in: input, audience: audience, subject: subject)
    }

    /// What the response contains: a signed token, and a code if one is requested.
    struct Login {
        let token: String
        let code: String?
    }

    func make(with simulator: AppleSimulator) throws(RequestError) -> Login {
        var token = makeToken(with: simulator)
        do throws(AppleSimulator.CodeError) {
            let name = if let code { try simulator.issueCode(with: &token, code) } else { nil as String? }
            // They override the hash of the code, too.
            for change in changes.members { token.claims[change.name] = change.value }
            guard let signed = try? sign(token, with: simulator) else { throw .failed }
            return Login(token: signed, code: name)
        } catch {
            throw error.requestError
        }
    }

    private func makeToken(with simulator: AppleSimulator) -> IdentityToken {
        var token = simulator.token(audience: audience, subject: subject)
        let now = token.claims["iat"]?.int64 ?? 0
        if lifetime < 0 {
            // Issued so that it had a lifetime of a day and expired that long ago.
            let start = now &+ lifetime &- Self.standardLifetime
            for claim in ["iat", "auth_time"] { token.claims[claim] = .integer(start) }
        }
        token.claims["exp"] = .integer(now &+ lifetime)
        for name in absent { token.claims[name] = nil }
        for change in changes.members { token.claims[change.name] = change.value }
        return token
    }

    private func sign(_ token: IdentityToken, with simulator: AppleSimulator) throws(CryptoError) -> String {
        guard let forgedKeyID else { return try simulator.mint(token, by: key) }
        var token = token
        token.header["kid"] = .string(forgedKeyID)
        return try simulator.forge(token)
    }

    /// What the code is for; `nil` unless one is requested.
    private static func code(
        in input: SimulatorRequest, audience: String, subject: String
    ) throws(RequestError) -> AppleSimulator.CodeOptions? {
        let lifetime = try input.number("code_lifetime", in: -600...600, unit: " of seconds")
        let code = AppleSimulator.CodeOptions(
            clientID: audience, subject: subject, redirectURI: try input.text("redirect_uri"),
            challenge: try input.text("code_challenge"), lifetime: lifetime ?? AuthorizationCode.lifetime,
            changes: try input.members("exchange_claims") ?? [:],
            isExchangeForged: try input.flag("exchange_forged") ?? false)
        if try input.flag("code") ?? false { return code }
        for name in names where name.hasPrefix("exchange_") || name.hasPrefix("code_") || name == "redirect_uri" {
            guard input.object[name] == nil else {
                throw RequestError("'\(name)' requires 'code': true")
            }
        }
        return nil
    }

    private static func changes(in input: SimulatorRequest) throws(RequestError) -> (JSONObject, [String]) {
        var changes: JSONObject = [:]
        var absent: [String] = []
        if input.object["email"] == .null {
            absent = ["email", "email_verified", "is_private_email"]
        } else if let email = try input.text("email") {
            changes["email"] = .string(email)
            changes["is_private_email"] = .string("\(email.hasSuffix("@privaterelay.appleid.com"))")
        }
        // Apple sent its booleans as strings for years.
        if let isVerified = try input.flag("email_verified") {
            changes["email_verified"] = .string("\(isVerified)")
        }
        if let nonce = try input.text("nonce") { changes["nonce"] = .string(nonce) }
        for claim in try input.members("claims")?.members ?? [] { changes[claim.name] = claim.value }
        return (changes, absent)
    }
}

extension AppleSimulator.CodeError {
    fileprivate var requestError: RequestError {
        switch self {
        case .accountDeleted: .init("the Apple Account of 'subject' is deleted")
        case .claimsTooLarge: .init("the claims are too large for a code")
        case .failed: .init("signing the token failed", .unavailable)
        }
    }
}
