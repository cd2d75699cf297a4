internal import MartletCore
private import MartletCrypto
internal import MartletProvider

/// Calls Apple's API with client secrets; sends nothing twice.
struct AppleClient: Sendable {
    /// With less time left, no call is made.
    private static let minimumTime = Duration.milliseconds(100)

    private var http: any HTTPCalling
    private let clock: Clock
    private let logger: Logger
    private let timeout: Duration
    private let endpoints: AppleEndpoints
    private let secrets: ClientSecrets

    init(_ context: ProviderContext, endpoints: AppleEndpoints, timeout: Duration, secrets: ClientSecrets) {
        http = context.http
        clock = context.clock
        logger = context.logger
        self.timeout = timeout
        self.endpoints = endpoints
        self.secrets = secrets
    }

    /// Waits for capacity and returns a client that can make its call immediately.
    /// - Throws: `apple.api_overloaded` when too many calls are in progress.
    func reserved(until deadline: MonotonicTime) async throws(AppleError) -> AppleClient {
        let left = deadline.since(clock.monotonicTime)
        var client = self
        do throws(HTTPCallError) {
            // The wait must leave enough time for a call.
            client.http = try await http.reserve(within: max(left - timeout, left / 2))
        } catch {
            throw .apiOverloaded("no capacity for a call to Apple [\(error.code)]")
        }
        return client
    }

    /// Requests tokens for a grant.
    /// - Parameters:
    ///   - client: the client id that the grant belongs to.
    ///   - grant: the parameters of the grant.
    /// - Throws: `apple.api_unreachable` when there is no response.
    func requestToken(
        _ grant: [(name: String, value: String)], for client: String, until deadline: MonotonicTime
    ) async throws(AppleError) -> TokenResponse {
        let response = try await send(grant, to: endpoints.token, for: client, until: deadline)
        let parsed = TokenResponse(status: response.status, body: response.body)
        report(parsed, of: "token", client)
        return parsed
    }

    /// Revokes a refresh token.
    /// - Throws: `apple.api_unreachable` when there is no response.
    func revoke(
        _ token: Secret, for client: String, until deadline: MonotonicTime
    ) async throws(AppleError) -> RevocationResponse {
        let fields = [(name: "token", value: token.text), (name: "token_type_hint", value: "refresh_token")]
        let response = try await send(fields, to: endpoints.revocation, for: client, until: deadline)
        guard response.status != 200 else { return .revoked }
        let parsed = TokenResponse(status: response.status, body: response.body)
        report(parsed, of: "revoke", client)
        return .failed(parsed)
    }

    /// Requests an access token for the migration of users.
    /// - Throws: `apple.api_unreachable` when there is no response.
    func requestMigrationToken(
        for client: String, until deadline: MonotonicTime
    ) async throws(AppleError) -> MigrationTokenResponse {
        let grant = [(name: "grant_type", value: "client_credentials"), (name: "scope", value: "user.migration")]
        let response = try await send(grant, to: endpoints.token, for: client, until: deadline)
        return MigrationTokenResponse(response)
    }

    /// Asks for another identifier of a user who moves between teams.
    /// - Parameters:
    ///   - fields: `sub` and `target`, or `transfer_sub`.
    ///   - member: the member of the response with the identifier.
    /// - Throws: `apple.api_unreachable` when there is no response.
    func requestMigration(
        _ fields: [(name: String, value: String)], returning member: String, with token: Secret, for client: String,
        until deadline: MonotonicTime
    ) async throws(AppleError) -> MigrationResponse {
        let response = try await send(
            fields, to: endpoints.migration, for: client, until: deadline,
            headers: [("Authorization", "Bearer \(token.text)")])
        return MigrationResponse(response, member: member)
    }

    /// The result of a revocation.
    enum RevocationResponse: Sendable {
        /// Also for a token that was invalid already.
        case revoked
        case failed(TokenResponse)
    }

    private func send(
        _ fields: [(name: String, value: String)], to url: String, for client: String, until deadline: MonotonicTime,
        headers: [(name: String, value: String)] = []
    ) async throws(AppleError) -> HTTPCallResponse {
        let left = min(timeout, deadline.since(clock.monotonicTime))
        guard left >= Self.minimumTime else { throw .apiUnreachable("no time left for a call") }
        let secret: String
        do throws(CryptoError) {
            secret = try secrets.secret(for: client, at: clock.unixTime)
        } catch {
            throw .apiUnreachable("the client secret cannot be signed [\(error.code)]")
        }
        let credentials = [(name: "client_id", value: client), (name: "client_secret", value: secret)]
        do throws(HTTPCallError) {
            return try await http.send(
                HTTPCall(
                    url, content: .form(credentials + fields),
                    headers: [("Accept", "application/json"), ("User-Agent", "Martlet")] + headers, timeout: left,
                    maximumBytes: TokenResponse.maximumBytes, isRepeatable: false))
        } catch {
            logger.warning("apple unreachable", ("code", error.code.rawValue), ("client_id", client))
            throw .apiUnreachable("no response from Apple [\(error.code)]")
        }
    }

    /// Logs a response that an operator has to know about.
    private func report(_ response: TokenResponse, of call: String, _ client: String) {
        let line = logger.with(("call", call), ("client_id", client))
        switch response {
        case .granted, .refused(.invalidGrant): break
        case .refused(let error): line.error("apple refused a call", ("error", error.rawValue))
        case .throttled: line.warning("apple limits the rate of calls")
        case .unknown(let what): line.warning("apple's response is invalid", ("reason", what))
        }
    }
}

/// The URLs of Apple's API below a base URL.
struct AppleEndpoints: Sendable {
    /// For browsers.
    let authorization: String
    let token: String
    let revocation: String
    let migration: String

    init(base: String) {
        let base = base.hasSuffix("/") ? String(base.dropLast()) : base
        authorization = base + "/auth/authorize"
        token = base + "/auth/token"
        revocation = base + "/auth/revoke"
        migration = base + "/auth/usermigrationinfo"
    }
}

extension Secret {
    /// The secret as text, for a form; the copy is not wiped.
    var text: String { withBytes { String(decoding: $0, as: UTF8.self) } }
}
