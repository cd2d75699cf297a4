internal import MartletCore
private import MartletCrypto
internal import MartletProvider
private import Synchronization

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
    /// Whether Apple accepts the key, as far as its last response shows.
    let keyState: DeveloperKeyState

    init(_ context: ProviderContext, endpoints: AppleEndpoints, timeout: Duration, secrets: ClientSecrets) {
        http = context.http
        clock = context.clock
        logger = context.logger
        self.timeout = timeout
        self.endpoints = endpoints
        self.secrets = secrets
        keyState = DeveloperKeyState()
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
        do throws(CryptoError) { secret = try secrets.secret(for: client, at: clock.unixTime) } catch {
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

    /// Logs a response that an operator has to know about; Apple's text is the only clue to what it does not like.
    private func report(_ response: TokenResponse, of call: String, _ client: String) {
        var line = logger.with(("call", call), ("client_id", client))
        switch response {
        case .granted: keyState.set(isAccepted: true)
        case .refused(let error, let description):
            keyState.set(isAccepted: error != .invalidClient)
            line = line.with(("key_id", secrets.key.id), ("error", error.rawValue))
            if let description { line = line.with(("error_description", IssuerText.make(description))) }
            switch error {
            case .invalidGrant where !Self.isMismatch(description): line.info("apple refused a grant")
            case .invalidGrant: line.warning("apple refused a grant")
            case .invalidClient: line.with(("key", secrets.key.origin)).error("apple refused a call")
            default: line.error("apple refused a call")
            }
        case .throttled: line.warning("apple limits the rate of calls")
        case .unknown(let what): line.warning("apple's response is invalid", ("reason", what))
        }
    }

    /// Whether a code is not accepted because of the configuration, or of the app, and not because of its user.
    private static func isMismatch(_ description: String?) -> Bool {
        let text = description?.lowercased() ?? ""
        return ["mismatch", "not issued to", "redirect_uri"].contains { text.contains($0) }
    }
}

extension AppleClient {
    /// Has the form of a code, but is none that Apple issued.
    private static let madeUpCode = "c0martletmadeupcode.0.none.martlet"

    /// Asks for the tokens of a made-up code: Apple checks the client secret first, and rejects the code last.
    ///
    /// No user's code is consumed.
    func probe(for client: String, until deadline: MonotonicTime) async -> CheckOutcome {
        let name = "key \(secrets.key.id)"
        let grant = [(name: "grant_type", value: "authorization_code"), (name: "code", value: Self.madeUpCode)]
        do throws(AppleError) {
            let response = try await reserved(until: deadline).send(
                grant, to: endpoints.token, for: client, until: deadline)
            let parsed = TokenResponse(status: response.status, body: response.body)
            if case .refused(.invalidGrant, _) = parsed {
                keyState.set(isAccepted: true)
                return CheckOutcome(
                    check: name, failure: nil, detail: "Apple accepts the key of team \(secrets.team) for \(client)")
            }
            report(parsed, of: "probe", client)
            return CheckOutcome(check: name, failure: Self.failure(parsed), detail: explanation(of: parsed, client))
        } catch {
            return CheckOutcome(check: name, failure: error.code, detail: error.message)
        }
    }

    private static func failure(_ parsed: TokenResponse) -> ErrorCode {
        switch parsed {
        case .refused(let error, _): AppleError.apiRefused(error).code
        case .throttled: AppleError.apiThrottled.code
        case .granted, .unknown: AppleError.apiBadResponse("").code
        }
    }

    private func explanation(of parsed: TokenResponse, _ client: String) -> String {
        switch parsed {
        case .refused(.invalidClient, let description):
            let text = description.map { ": \(IssuerText.make($0))" } ?? ""
            return "Apple does not accept \(secrets.key.origin) as key \(secrets.key.id) of team \(secrets.team) "
                + "for \(client)\(text)"
        case .refused(let error, let description):
            return "Apple says \(error.rawValue)\(description.map { ": \(IssuerText.make($0))" } ?? "")"
        case .throttled: return "Apple limits the rate of calls"
        case .granted: return "Apple accepted a made-up code: base_url is not Apple's"
        case .unknown(let what): return "Apple's response does not show whether it accepts the key: \(what)"
        }
    }

    /// What operators read while Apple does not accept the key; `nil` while it does.
    var keyProblem: String? {
        keyState.isAccepted ? nil : "Apple does not accept \(secrets.key.origin) as key \(secrets.key.id) of its team"
    }
}

/// Whether Apple accepts the key of the developer account, as far as its last response shows.
final class DeveloperKeyState: Sendable {
    private let accepted = Atomic(true)

    var isAccepted: Bool { accepted.load(ordering: .relaxed) }

    func set(isAccepted: Bool) { accepted.store(isAccepted, ordering: .relaxed) }
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
