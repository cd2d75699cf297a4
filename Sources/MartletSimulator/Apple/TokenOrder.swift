private import MartletCore
internal import MartletCrypto
private import MartletJOSE
internal import MartletJSON

/// What somebody wants in a token, read strictly: unknown, repeated and mistyped members are mistakes.
///
/// `audience` is needed. `subject`, `lifetime` (seconds, negative for a token that has ended), `kid`, `email` (`null` for
/// none), `email_verified`, `nonce` and `claims` (put over all others) stand for what they say; with `forged` the token is
/// signed by a key that nobody has published, under whatever `kid` is given.
struct TokenOrder {
    /// What is wrong with an order, in one line for whoever sent it.
    struct Mistake: Error {
        let text: String
    }

    private static let limits = JSONLimits(maximumDepth: 8, maximumBytes: 64 * 1024)
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
    ///   - body: a JSON object.
    ///   - keys: those that may sign; the first does where no `kid` is given.
    init(_ body: [UInt8], keys: [SimulatedKey]) throws(Mistake) {
        let order = try Self.object(body)
        if let stranger = order.members.first(where: { !Self.names.contains($0.name) }) {
            throw Mistake(text: "unknown member '\(stranger.name)'; there is \(Self.names.joined(separator: ", "))")
        }
        guard let audience = try Self.text("audience", in: order), !audience.isEmpty else {
            throw Mistake(text: "'audience' is missing or empty")
        }
        self.audience = audience
        subject = try Self.text("subject", in: order) ?? Self.usualSubject
        lifetime = try Self.lifetime(in: order)
        let isForged = try Self.flag("forged", in: order) ?? false
        let name = try Self.text("kid", in: order)
        let named = name.flatMap { name in keys.first { $0.id.text.hasSameBytes(as: name) } }
        guard let key = named ?? (name == nil || isForged ? keys.first : nil) else {
            throw Mistake(text: "'kid' is none of \(keys.map(\.id.text).joined(separator: ", "))")
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

    // MARK: Members

    private static func object(_ body: [UInt8]) throws(Mistake) -> JSONObject {
        do throws(JSONError) {
            guard let object = try JSON.parse(body, limits: limits).object else {
                throw JSONError(.jsonUnexpectedByte, at: 0)
            }
            return object
        } catch {
            throw Mistake(text: "the order is no JSON object: \(error)")
        }
    }

    private static func text(_ name: String, in order: JSONObject) throws(Mistake) -> String? {
        guard let value = order[name] else { return nil }
        guard let text = value.string else { throw Mistake(text: "'\(name)' is not a text") }
        return text
    }

    private static func flag(_ name: String, in order: JSONObject) throws(Mistake) -> Bool? {
        guard let value = order[name] else { return nil }
        guard let flag = value.bool else { throw Mistake(text: "'\(name)' is neither true nor false") }
        return flag
    }

    private static func lifetime(in order: JSONObject) throws(Mistake) -> Int64 {
        guard let value = order["lifetime"] else { return usualLife }
        guard let seconds = value.int64, (-longestLife...longestLife).contains(seconds) else {
            throw Mistake(text: "'lifetime' is not a whole number of seconds from -\(longestLife) to \(longestLife)")
        }
        return seconds
    }

    /// The claims that differ from what the simulator makes by itself, and those that go.
    private static func changes(in order: JSONObject) throws(Mistake) -> (JSONObject, [String]) {
        var changes: JSONObject = [:]
        var absent: [String] = []
        if order["email"] == .null {
            absent = ["email", "email_verified", "is_private_email"]
        } else if let email = try text("email", in: order) {
            changes["email"] = .string(email)
            changes["is_private_email"] = .string("\(email.hasSuffix("@privaterelay.appleid.com"))")
        }
        // Apple has written its booleans as texts for years.
        if let isVerified = try flag("email_verified", in: order) {
            changes["email_verified"] = .string("\(isVerified)")
        }
        if let nonce = try text("nonce", in: order) { changes["nonce"] = .string(nonce) }
        guard let claims = order["claims"] else { return (changes, absent) }
        guard let object = claims.object else { throw Mistake(text: "'claims' is not an object") }
        for claim in object.members { changes[claim.name] = claim.value }
        return (changes, absent)
    }
}
