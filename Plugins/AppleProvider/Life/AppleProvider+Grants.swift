public import MartletCore
public import MartletProvider

extension AppleProvider: Refreshing {
    public var checkSchedule: CheckSchedule? { client == nil ? nil : configuration.check }

    /// Validates the refresh token (Apple, "Verifying a user"): Apple permits it once a day for each user.
    public func check(
        _ grant: ProviderGrant, of subject: String, until deadline: MonotonicTime
    ) async throws(AuthenticationError) -> GrantState {
        try await Self.call(await validate(grant, until: deadline))
    }

    private func validate(
        _ grant: ProviderGrant, until deadline: MonotonicTime
    ) async throws(AppleError) -> GrantState {
        guard let client else { throw .apiUnreachable("no key is configured") }
        let fields = [(name: "grant_type", value: "refresh_token"), (name: "refresh_token", value: grant.token.text)]
        let ready = try await client.reserved(until: deadline)
        switch try await ready.requestToken(fields, for: grant.client, until: deadline) {
        case .granted: return .valid
        case .refused(.invalidGrant, _): return .revoked
        case .refused(let error, _): throw .apiRefused(error)
        case .throttled: throw .apiThrottled
        case .unknown(let what): throw .apiBadResponse(what)
        }
    }

    /// The pause that Apple's throttling asks for is the core's to choose.
    private static func call<Value>(
        _ value: @autoclosure () async throws(AppleError) -> Value
    ) async throws(AuthenticationError) -> Value {
        do throws(AppleError) { return try await value() } catch {
            guard case .throttled = error.kind else { throw authenticationError(error) }
            throw .throttled(error.code, retryAfter: .seconds(60))
        }
    }
}

extension AppleProvider: Revoking {
    /// Revokes the user's consent for the team (Apple, "Revoke tokens"); 200 also means that there was none any more.
    public func revoke(_ grant: ProviderGrant, until deadline: MonotonicTime) async throws(AuthenticationError) {
        try await Self.call(await revokeConsent(grant, until: deadline))
    }

    private func revokeConsent(_ grant: ProviderGrant, until deadline: MonotonicTime) async throws(AppleError) {
        guard let client else { throw .apiUnreachable("no key is configured") }
        let ready = try await client.reserved(until: deadline)
        switch try await ready.revoke(grant.token, for: grant.client, until: deadline) {
        // Apple calls a token invalid that was revoked before.
        case .revoked, .failed(.refused(.invalidGrant, _)): return
        case .failed(.refused(let error, _)): throw .apiRefused(error)
        case .failed(.throttled): throw .apiThrottled
        case .failed(.granted): throw .apiBadResponse("tokens instead of a revocation")
        case .failed(.unknown(let what)): throw .apiBadResponse(what)
        }
    }
}
