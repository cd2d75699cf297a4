internal import MartletCore
internal import MartletCrypto

/// The books of the simulated Apple: developers' keys, users, codes and tokens, in memory and bounded. Thread-safe.
final class AppleRecords: Sendable {
    /// How many users, codes, access tokens and refresh tokens are kept, of each.
    private static let capacity = 10_000

    private struct State {
        var keys = DeveloperKeys()
        var redirectURIs = RedirectURIs()
        var users = AppleUsers(capacity: AppleRecords.capacity)
        var codes = AuthorizationCodes(capacity: AppleRecords.capacity)
        var accessTokens = AccessTokens(capacity: AppleRecords.capacity)
        var refreshTokens: RefreshTokens
    }

    private let clock: Clock
    private let state: Lock<State>

    init(clock: Clock, refreshesPerDay: Int?) {
        self.clock = clock
        let refreshTokens = RefreshTokens(capacity: Self.capacity, dailyLimit: refreshesPerDay)
        state = Lock(State(refreshTokens: refreshTokens))
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

    // MARK: Developers

    /// The registered keys.
    var keys: DeveloperKeys { state.withLock { $0.keys } }

    /// Registers a key.
    /// - Returns: whether there was room for it.
    func register(_ key: DeveloperKey) -> Bool { state.withLock { $0.keys.register(key) } }

    /// - Returns: whether there was a key with this id.
    func remove(keyID: String) -> Bool { state.withLock { $0.keys.remove(keyID) } }

    /// Registers the redirect URIs of a client, in exchange for its former ones.
    /// - Returns: whether there was room for them.
    func register(redirectURIs: [String], of clientID: String) -> Bool {
        state.withLock { $0.redirectURIs.register(redirectURIs, of: clientID) }
    }

    /// The redirect URIs of a client; `nil` if none were registered.
    func redirectURIs(of clientID: String) -> [String]? { state.withLock { $0.redirectURIs[clientID] } }

    // MARK: Users

    /// A user's state.
    func user(_ subject: String) -> AppleUser { state.withLock { $0.users[subject] } }

    /// Authorizes the apps; see ``AppleUsers/authorize(_:usesRelay:)``.
    func authorize(_ subject: String, usesRelay: Bool?) -> Int? {
        state.withLock { $0.users.authorize(subject, usesRelay: usesRelay) }
    }

    /// A consent on the web; see ``AppleUsers/consent(_:email:asksForData:)``.
    func consent(
        _ subject: String, email: String?, asksForData: Bool
    ) -> (email: AppleUser.Email, isFirst: Bool)? {
        state.withLock { $0.users.consent(subject, email: email, asksForData: asksForData) }
    }

    /// Sets a user's state.
    func set(_ subject: String, to newState: AppleUser.State) { state.withLock { $0.users.set(subject, to: newState) } }

    /// Changes a user as an event of a type says; other types change nothing.
    func apply(_ type: String, to subject: String) {
        switch type {
        case "consent-revoked": set(subject, to: .revoked)
        case "account-delete", "account-deleted": set(subject, to: .deleted)
        case "email-disabled": change(subject) { $0.forwardsEmail = false }
        case "email-enabled": change(subject) { $0.forwardsEmail = true }
        default: break
        }
    }

    /// Changes what is known of a user, but not the state.
    func change(_ subject: String, _ change: @Sendable (inout AppleUser) -> Void) {
        state.withLock { $0.users.change(subject, change) }
    }

    /// Limits how often a refresh token may be verified within a day; `nil`: not at all.
    func limitRefreshes(perDay limit: Int?) { state.withLock { $0.refreshTokens.dailyLimit = limit } }

    // MARK: Codes and tokens

    /// Issues a code.
    func issue(_ code: AuthorizationCode) throws(CryptoError) -> String {
        let name = try OpaqueToken.make(.code)
        state.withLock { $0.codes.insert(code, as: name) }
        return name
    }

    /// Exchanges a code for tokens.
    func redeem(_ redemption: AuthorizationCodes.Redemption, by client: Client) throws(AppleAPIError) -> Tokens {
        let (accessName, refreshName) = (try Self.makeName(.accessToken), try Self.makeName(.refreshToken))
        let now = clock.unixTime
        return try attempt { state throws(AppleAPIError) in
            let code = try state.codes.redeem(redemption, at: now)
            guard state.users.isValid(code.subject, generation: code.generation) else {
                throw .invalidGrant("The code has expired or has been revoked.")
            }
            state.accessTokens.insert(
                Self.accessToken(
                    client, .login(subject: code.subject, generation: code.generation), issuedAt: now), as: accessName)
            state.refreshTokens.insert(
                RefreshToken(
                    teamID: client.teamID, clientID: client.clientID, subject: code.subject,
                    generation: code.generation, token: code.token), as: refreshName)
            return Tokens(accessToken: accessName, refreshToken: refreshName, token: code.token)
        }
    }

    /// Verifies a refresh token.
    func refresh(_ name: String, by client: Client) throws(AppleAPIError) -> Tokens {
        let accessName = try Self.makeName(.accessToken)
        let now = clock.unixTime
        return try attempt { state throws(AppleAPIError) in
            let token = try state.refreshTokens.verify(
                name, teamID: client.teamID, clientID: client.clientID, at: now)
            guard state.users.isValid(token.subject, generation: token.generation) else {
                throw .invalidGrant("The token has expired or has been revoked.")
            }
            state.accessTokens.insert(
                Self.accessToken(
                    client, .login(subject: token.subject, generation: token.generation), issuedAt: now),
                as: accessName)
            return Tokens(accessToken: accessName, refreshToken: nil, token: token.token)
        }
    }

    /// Issues an access token for moving users.
    func issueMigrationToken(to client: Client) throws(AppleAPIError) -> String {
        let name = try Self.makeName(.accessToken)
        let token = Self.accessToken(client, .migration, issuedAt: clock.unixTime)
        state.withLock { $0.accessTokens.insert(token, as: name) }
        return name
    }

    /// Whether it is a valid access token of this client for moving users.
    func isMigrationToken(_ name: String, of client: Client) -> Bool {
        let now = clock.unixTime
        let token = state.withLock { $0.accessTokens.token(name, at: now) }
        guard let token, case .migration = token.purpose else { return false }
        return token.teamID.hasSameBytes(as: client.teamID) && token.clientID.hasSameBytes(as: client.clientID)
    }

    /// Ends the authorization that a token belongs to; no error for a token that is unknown or already invalid.
    /// - Throws: `invalid_grant` for a token of another client.
    func revoke(_ name: String, by client: Client) throws(AppleAPIError) {
        let now = clock.unixTime
        try attempt { state throws(AppleAPIError) in
            let owner: (clientID: String, teamID: String, subject: String, generation: Int)
            if let token = state.refreshTokens[name] {
                owner = (token.clientID, token.teamID, token.subject, token.generation)
            } else if let token = state.accessTokens.token(name, at: now),
                case .login(let subject, let generation) = token.purpose
            {
                owner = (token.clientID, token.teamID, subject, generation)
            } else {
                return
            }
            guard owner.clientID.hasSameBytes(as: client.clientID), owner.teamID.hasSameBytes(as: client.teamID) else {
                throw .invalidGrant("client_id mismatch. The token was not issued to \(client.clientID.prefix(255)).")
            }
            guard state.users.isValid(owner.subject, generation: owner.generation) else { return }
            state.users.set(owner.subject, to: .revoked)
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
        _ body: (inout State) throws(AppleAPIError) -> Success
    ) throws(AppleAPIError) -> Success {
        let outcome: Result<Success, AppleAPIError> = state.withLock { state in
            do throws(AppleAPIError) { return .success(try body(&state)) } catch { return .failure(error) }
        }
        return try outcome.get()
    }
}
