internal import MartletCore

/// What an access token stands for.
struct AccessToken: Sendable {
    /// One hour.
    static let lifetime: Int64 = 3600

    enum Purpose: Sendable {
        /// A user's login, of this generation.
        case login(subject: String, generation: Int)
        /// Moving users between teams.
        case migration
    }

    let teamID: String
    let clientID: String
    let purpose: Purpose
    let expiresAt: UnixTime
}

struct AccessTokens: Sendable {
    private var tokens: BoundedTable<AccessToken>

    init(capacity: Int) { tokens = BoundedTable(capacity: capacity) }

    mutating func insert(_ token: AccessToken, as name: String) { tokens.insert(token, as: name) }

    /// The token of a name, unless it has expired.
    func token(_ name: String, at now: UnixTime) -> AccessToken? {
        tokens[name].flatMap { $0.expiresAt > now ? $0 : nil }
    }
}
