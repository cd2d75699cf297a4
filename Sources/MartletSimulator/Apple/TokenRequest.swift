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
struct TokenRequest {
    private static let names = [
        "audience", "subject", "lifetime", "kid", "email", "email_verified", "nonce", "claims", "forged",
    ]
    /// Two days: Apple's tokens do not live longer.
    private static let maximumLifetime: Int64 = 48 * 3600
    private static let standardLifetime: Int64 = 24 * 3600
    private static let standardSubject = "001234.0123456789abcdef0123456789abcdef.0001"

    let key: SimulatedKey
    let lifetime: Int64
    private let audience: String
    private let subject: String
    private let changes: JSONObject
    /// The claims to leave out.
    private let absent: [String]
    private let forgedKeyID: String?

    /// Parses a request.
    /// - Parameters:
    ///   - request: a POST of a JSON object.
    ///   - keys: the available keys; the first is used if no `kid` is given.
    init(_ request: LocalRequest, keys: [SimulatedKey]) throws(SimulatorRequest.RequestError) {
        let input = try SimulatorRequest(request, members: Self.names)
        audience = try input.requiredText("audience")
        subject = try input.text("subject") ?? Self.standardSubject
        let range = -Self.maximumLifetime...Self.maximumLifetime
        lifetime = try input.number("lifetime", in: range, unit: " of seconds") ?? Self.standardLifetime
        let isForged = try input.flag("forged") ?? false
        let name = try input.text("kid")
        let named = name.flatMap { name in keys.first { $0.id.text.hasSameBytes(as: name) } }
        guard let key = named ?? (name == nil || isForged ? keys.first : nil) else {
            throw SimulatorRequest.RequestError("'kid' is not one of \(keys.map(\.id.text).joined(separator: ", "))")
        }
        self.key = key
        forgedKeyID = isForged ? name ?? key.id.text : nil
        (changes, absent) = try Self.changes(in: input)
    }

    /// The signed token.
    func makeToken(with simulator: AppleSimulator) throws(CryptoError) -> String {
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
        guard let forgedKeyID else { return try simulator.mint(token, by: key) }
        token.header["kid"] = .string(forgedKeyID)
        return try simulator.forge(token)
    }

    /// The claims to change and those to leave out.
    private static func changes(
        in input: SimulatorRequest
    ) throws(SimulatorRequest.RequestError) -> (JSONObject, [String]) {
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
