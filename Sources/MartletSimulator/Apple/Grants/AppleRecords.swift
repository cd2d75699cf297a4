internal import MartletCore
internal import MartletCrypto

/// The books of the simulated Apple: developers' keys, users, codes and tokens, in memory and bounded. Thread-safe.
final class AppleRecords: Sendable {
    /// How many users, codes, access tokens and refresh tokens are kept, of each.
    static let capacity = 10_000

    struct Books {
        var keys = DeveloperKeys()
        var redirectURIs = RedirectURIs()
        var users = AppleUsers(capacity: AppleRecords.capacity)
        var codes = AuthorizationCodes(capacity: AppleRecords.capacity)
        var accessTokens = AccessTokens(capacity: AppleRecords.capacity)
        var refreshTokens: RefreshTokens
    }

    private let clock: Clock
    private let books: Lock<Books>

    init(clock: Clock, refreshesPerDay: Int?) {
        self.clock = clock
        let refreshTokens = RefreshTokens(capacity: Self.capacity, dailyLimit: refreshesPerDay)
        books = Lock(Books(refreshTokens: refreshTokens))
    }

    /// A client that has proven its identity by a client secret.
    struct Client {
        let teamID: String
        let clientID: String
    }

    /// Tokens issued in one call.
    struct Tokens {
        let accessToken: String
        /// `nil` in the response to a refresh.
        let refreshToken: String?
        let token: ExchangedToken
    }

    func withBooks<Result: Sendable>(_ body: (inout Books) -> Result) -> Result { books.withLock { body(&$0) } }

    /// Changes a user as an event of a type says; other types change nothing.
    func apply(_ type: String, to subject: String) {
        books.withLock { books in
            switch type {
            case "consent-revoked": books.users.set(subject, to: .revoked)
            case "account-delete", "account-deleted": books.users.set(subject, to: .deleted)
            case "email-disabled": books.users.change(subject) { $0.forwardsEmail = false }
            case "email-enabled": books.users.change(subject) { $0.forwardsEmail = true }
            default: break
            }
        }
    }

    // MARK: Codes and tokens

    func issue(_ code: AuthorizationCode) throws(CryptoError) -> String {
        let name = try OpaqueToken.make(.code)
        books.withLock { $0.codes.insert(code, as: name) }
        return name
    }

    func redeem(_ redemption: AuthorizationCodes.Redemption, by client: Client) throws(AppleAPIError) -> Tokens {
        let (accessName, refreshName) = (try Self.makeName(.accessToken), try Self.makeName(.refreshToken))
        let now = clock.unixTime
        return try attempt { books throws(AppleAPIError) in
            let code = try books.codes.redeem(redemption, at: now)
            guard books.users.isValid(code.subject, generation: code.generation) else {
                throw .invalidGrant("The code has expired or has been revoked.")
            }
            books.accessTokens.insert(
                Self.accessToken(
                    client, .login(subject: code.subject, generation: code.generation), issuedAt: now), as: accessName)
            books.refreshTokens.insert(
                RefreshToken(
                    teamID: client.teamID, clientID: client.clientID, subject: code.subject,
                    generation: code.generation, token: code.token), as: refreshName)
            return Tokens(accessToken: accessName, refreshToken: refreshName, token: code.token)
        }
    }

    func refresh(_ name: String, by client: Client) throws(AppleAPIError) -> Tokens {
        let accessName = try Self.makeName(.accessToken)
        let now = clock.unixTime
        return try attempt { books throws(AppleAPIError) in
            let token = try books.refreshTokens.verify(
                name, teamID: client.teamID, clientID: client.clientID, at: now)
            guard books.users.isValid(token.subject, generation: token.generation) else {
                throw .invalidGrant("The token has expired or has been revoked.")
            }
            books.accessTokens.insert(
                Self.accessToken(
                    client, .login(subject: token.subject, generation: token.generation), issuedAt: now),
                as: accessName)
            return Tokens(accessToken: accessName, refreshToken: nil, token: token.token)
        }
    }

    func issueMigrationToken(to client: Client) throws(AppleAPIError) -> String {
        let name = try Self.makeName(.accessToken)
        let token = Self.accessToken(client, .migration, issuedAt: clock.unixTime)
        books.withLock { $0.accessTokens.insert(token, as: name) }
        return name
    }

    /// Whether it is a valid access token of this client for moving users.
    func isMigrationToken(_ name: String, of client: Client) -> Bool {
        let now = clock.unixTime
        let token = books.withLock { $0.accessTokens.token(name, at: now) }
        guard let token, case .migration = token.purpose else { return false }
        return token.teamID.hasSameBytes(as: client.teamID) && token.clientID.hasSameBytes(as: client.clientID)
    }

    /// Ends the authorization that a token belongs to; no error for a token that is unknown or already invalid.
    /// - Throws: `invalid_grant` for a token of another client.
    func revoke(_ name: String, by client: Client) throws(AppleAPIError) {
        let now = clock.unixTime
        try attempt { books throws(AppleAPIError) in
            let owner: (clientID: String, teamID: String, subject: String, generation: Int)
            if let token = books.refreshTokens[name] {
                owner = (token.clientID, token.teamID, token.subject, token.generation)
            } else if let token = books.accessTokens.token(name, at: now),
                case .login(let subject, let generation) = token.purpose
            {
                owner = (token.clientID, token.teamID, subject, generation)
            } else {
                return
            }
            guard owner.clientID.hasSameBytes(as: client.clientID), owner.teamID.hasSameBytes(as: client.teamID) else {
                throw .invalidGrant("client_id mismatch. The token was not issued to \(client.clientID.prefix(255)).")
            }
            guard books.users.isValid(owner.subject, generation: owner.generation) else { return }
            books.users.set(owner.subject, to: .revoked)
        }
    }

    private static func accessToken(
        _ client: Client, _ purpose: AccessToken.Purpose, issuedAt now: UnixTime
    ) -> AccessToken {
        AccessToken(
            teamID: client.teamID, clientID: client.clientID, purpose: purpose,
            expiresAt: now.advanced(bySeconds: AccessToken.lifetime))
    }

    private static func makeName(_ kind: OpaqueToken.Kind) throws(AppleAPIError) -> String {
        do throws(CryptoError) { return try OpaqueToken.make(kind) } catch { throw .unavailable }
    }

    /// Changes the state, or throws; the mutex of the standard library rethrows only untyped errors here.
    private func attempt<Success: Sendable>(
        _ body: (inout Books) throws(AppleAPIError) -> Success
    ) throws(AppleAPIError) -> Success {
        let outcome: Result<Success, AppleAPIError> = books.withLock { books in
            do throws(AppleAPIError) { return .success(try body(&books)) } catch { return .failure(error) }
        }
        return try outcome.get()
    }
}
