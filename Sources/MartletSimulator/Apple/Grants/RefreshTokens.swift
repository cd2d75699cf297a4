internal import MartletCore

/// What a refresh token stands for.
struct RefreshToken: Sendable {
    let teamID: String
    let clientID: String
    let subject: String
    let generation: Int
    let token: ExchangedToken
}

/// The issued refresh tokens. They have no expiry.
struct RefreshTokens: Sendable {
    private static let day: Int64 = 86_400

    private struct Issued: Sendable {
        let token: RefreshToken
        var dayStart = UnixTime(seconds: .min)
        var verifications = 0
    }

    /// How often one may be verified within a day of its first verification; `nil`: any number of times.
    var dailyLimit: Int?
    private var tokens: BoundedTable<Issued>

    init(capacity: Int, dailyLimit: Int?) {
        tokens = BoundedTable(capacity: capacity)
        self.dailyLimit = dailyLimit
    }

    mutating func insert(_ token: RefreshToken, as name: String) { tokens.insert(Issued(token: token), as: name) }

    subscript(name: String) -> RefreshToken? { tokens[name]?.token }

    /// Counts a verification, whatever its outcome.
    /// - Throws: 429 for one too many.
    mutating func verify(
        _ name: String, teamID: String, clientID: String, at now: UnixTime
    ) throws(AppleAPIError) -> RefreshToken {
        guard var issued = tokens[name] else { throw .invalidGrant("The token has expired or has been revoked.") }
        guard issued.token.clientID.hasSameBytes(as: clientID), issued.token.teamID.hasSameBytes(as: teamID) else {
            throw .invalidGrant("client_id mismatch. The token was not issued to \(clientID.prefix(255)).")
        }
        if now >= issued.dayStart.advanced(bySeconds: Self.day) {
            issued.dayStart = now
            issued.verifications = 0
        }
        if let dailyLimit, issued.verifications >= dailyLimit { throw .throttled }
        issued.verifications += 1
        tokens.insert(issued, as: name)
        return issued.token
    }
}
