private import MartletCore
internal import MartletCrypto
private import MartletJOSE
internal import MartletJSON
internal import MartletProxy

/// What somebody wants in a token, read strictly: unknown, repeated and mistyped members are mistakes.
///
/// `audience` is needed. `subject`, `lifetime` (seconds, negative for a token that has ended), `kid`, `email` (`null` for
/// none), `email_verified`, `nonce` and `claims` (put over all others) stand for what they say; with `forged` the token is
/// signed by a key that nobody has published, under whatever `kid` is given.
struct TokenOrder {
    private static let names = [
        "audience", "subject", "lifetime", "kid", "email", "email_verified", "nonce", "claims", "forged",
    ]
    /// Two days: what lives longer is no identity token of Apple's.
    private static let longestLife: Int64 = 48 * 3600
    private static let usualLife: Int64 = 24 * 3600
    private static let usualSubject = "001234.0123456789abcdef0123456789abcdef.0001"

    let key: SimulatedKey
    let lifetime: Int64
    private let audience: String
    private let subject: String
    private let changes: JSONObject
    /// The claims that are left out.
    private let absent: [String]
    private let forgedKeyID: String?

    /// Reads an order.
    /// - Parameters:
    ///   - request: a POST of a JSON object.
    ///   - keys: those that may sign; the first does where no `kid` is given.
    init(_ request: LocalRequest, keys: [SimulatedKey]) throws(SimulatorOrder.Mistake) {
        let order = try SimulatorOrder(request, members: Self.names)
        audience = try order.requiredText("audience")
        subject = try order.text("subject") ?? Self.usualSubject
        let lives = -Self.longestLife...Self.longestLife
        lifetime = try order.number("lifetime", in: lives, unit: " of seconds") ?? Self.usualLife
        let isForged = try order.flag("forged") ?? false
        let name = try order.text("kid")
        let named = name.flatMap { name in keys.first { $0.id.text.hasSameBytes(as: name) } }
        guard let key = named ?? (name == nil || isForged ? keys.first : nil) else {
            throw SimulatorOrder.Mistake("'kid' is none of \(keys.map(\.id.text).joined(separator: ", "))")
        }
        self.key = key
        forgedKeyID = isForged ? name ?? key.id.text : nil
        (changes, absent) = try Self.changes(in: order)
    }

    /// The token that was ordered.
    func fill(by simulator: AppleSimulator) throws(CryptoError) -> String {
        var token = simulator.token(audience: audience, subject: subject)
        let now = token.claims["iat"]?.int64 ?? 0
        if lifetime < 0 {
            // It lived for a day and ended so long ago.
            let start = now &+ lifetime &- Self.usualLife
            for claim in ["iat", "auth_time"] { token.claims[claim] = .integer(start) }
        }
        token.claims["exp"] = .integer(now &+ lifetime)
        for name in absent { token.claims[name] = nil }
        for change in changes.members { token.claims[change.name] = change.value }
        guard let forgedKeyID else { return try simulator.mint(token, by: key) }
        token.header["kid"] = .string(forgedKeyID)
        return try simulator.forge(token)
    }

    /// The claims that differ from what the simulator makes by itself, and those that go.
    private static func changes(in order: SimulatorOrder) throws(SimulatorOrder.Mistake) -> (JSONObject, [String]) {
        var changes: JSONObject = [:]
        var absent: [String] = []
        if order.object["email"] == .null {
            absent = ["email", "email_verified", "is_private_email"]
        } else if let email = try order.text("email") {
            changes["email"] = .string(email)
            changes["is_private_email"] = .string("\(email.hasSuffix("@privaterelay.appleid.com"))")
        }
        // Apple has written its booleans as texts for years.
        if let isVerified = try order.flag("email_verified") {
            changes["email_verified"] = .string("\(isVerified)")
        }
        if let nonce = try order.text("nonce") { changes["nonce"] = .string(nonce) }
        for claim in try order.members("claims")?.members ?? [] { changes[claim.name] = claim.value }
        return (changes, absent)
    }
}
