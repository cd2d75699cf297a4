internal import MartletCore
internal import MartletProvider

/// Calls `usermigrationinfo` with an access token, which is fetched once and renewed when it expires.
actor MigrationCaller {
    /// A token is renewed when less of its life is left.
    private static let reserve = Duration.seconds(60)

    private struct AccessToken {
        let secret: Secret
        let renewal: MonotonicTime
    }

    private let client: AppleClient
    private let clientID: String
    private let clock: Clock
    private var token: AccessToken?
    /// The request for a token that is in progress: callers share it.
    private var request: Task<Result<AccessToken, AuthenticationError>, Never>?

    /// - Parameter clientID: the client id of calls.
    init(_ client: AppleClient, clientID: String, _ clock: Clock) {
        self.client = client
        self.clientID = clientID
        self.clock = clock
    }

    /// Fetches the access token, unless there is one.
    func prepare(until deadline: MonotonicTime) async throws(AuthenticationError) {
        _ = try await currentToken(until: deadline)
    }

    /// Asks for another identifier of a user.
    func ask(
        _ fields: [(name: String, value: String)], for member: String, until deadline: MonotonicTime
    ) async throws(AuthenticationError) -> String {
        let first = try await currentToken(until: deadline)
        switch try await send(fields, member, first, until: deadline) {
        case .named(let name): return name
        case .failed(.refused(.invalidGrant)): break
        case .failed(let failure): throw Self.error(failure)
        }
        // The token has expired early, or was revoked.
        drop(first)
        let second = try await currentToken(until: deadline)
        switch try await send(fields, member, second, until: deadline) {
        case .named(let name): return name
        case .failed(let failure): throw Self.error(failure)
        }
    }

    private func send(
        _ fields: [(name: String, value: String)], _ member: String, _ token: AccessToken,
        until deadline: MonotonicTime
    ) async throws(AuthenticationError) -> MigrationResponse {
        do throws(AppleError) {
            let ready = try await client.reserved(until: deadline)
            return try await ready.requestMigration(
                fields, returning: member, with: token.secret, for: clientID, until: deadline)
        } catch {
            throw .unavailable(error.code, cause: error)
        }
    }

    // MARK: Access token

    private func currentToken(until deadline: MonotonicTime) async throws(AuthenticationError) -> AccessToken {
        if let token, clock.monotonicTime < token.renewal { return token }
        let running = request ?? Task { await self.fetch(until: deadline) }
        request = running
        let result = await running.value
        return try result.get()
    }

    private func fetch(until deadline: MonotonicTime) async -> Result<AccessToken, AuthenticationError> {
        let result: Result<AccessToken, AuthenticationError>
        do throws(AppleError) {
            let ready = try await client.reserved(until: deadline)
            switch try await ready.requestMigrationToken(for: clientID, until: deadline) {
            case .granted(let secret, let lifetime):
                let usable = max(lifetime - Self.reserve, lifetime / 2)
                result = .success(AccessToken(secret: secret, renewal: clock.monotonicTime + usable))
            case .failed(let failure): result = .failure(Self.error(failure, isOfToken: true))
            }
        } catch {
            result = .failure(.unavailable(error.code, cause: error))
        }
        token = try? result.get()
        request = nil
        return result
    }

    private func drop(_ rejected: AccessToken) {
        // Another call may have renewed it.
        if token?.renewal == rejected.renewal { token = nil }
    }

    // MARK: Failures

    /// - Parameter isOfToken: whether the call concerned no user.
    private static func error(_ failure: MigrationFailure, isOfToken: Bool = false) -> AuthenticationError {
        switch failure {
        case .throttled(let pause):
            let error = AppleError.apiThrottled
            return AuthenticationError(error.code, .throttled, retryAfter: pause, cause: error)
        case .unknown(let what):
            let error = AppleError.apiBadResponse(what)
            return .unavailable(error.code, cause: error)
        case .refused(let code):
            let error = AppleError.apiRefused(code)
            switch code {
            // Apple says so of a user who is unknown to the team, and where no transfer is open.
            case .invalidRequest, .invalidGrant:
                return isOfToken ? .denied(error.code, cause: error) : .rejected(error.code, cause: error)
            case .invalidClient, .unauthorizedClient, .unsupportedGrantType, .invalidScope:
                return .denied(error.code, cause: error)
            }
        }
    }
}
