internal import MartletCore
internal import MartletJOSE
internal import MartletJSON
internal import MartletProvider

/// Reads what the userinfo endpoint responds: a JSON object, or one that the issuer has signed (OIDC Core §5.3.2).
struct UserInfoResponse {
    private static let limits = JSONLimits(maximumDepth: 16, maximumBytes: IssuerClient.maximumBytes)

    let provider: OIDCProvider
    /// The `client_id` of the website.
    let client: String

    /// - Throws: `oidc.api_bad_response` for anything else; for a signed object what makes a token invalid.
    func read(_ response: HTTPCallResponse, at now: UnixTime) async throws(OIDCError) -> JSONObject {
        guard response.status == 200 else {
            throw .unavailable("api_bad_response", "userinfo: status \(response.status)")
        }
        if let object = (try? JSON.parse(response.body, limits: Self.limits))?.object { return object }
        let token = Self.trimmed(response.body)
        guard (try? CompactJWS(token)) != nil else {
            throw .unavailable(
                "api_bad_response",
                "userinfo: \(response.body.count) bytes that are neither a JSON object nor a signed one")
        }
        return try await verify(token, at: now)
    }

    /// Verifies the signature, and that the object was made for this client.
    private func verify(_ token: [UInt8], at now: UnixTime) async throws(OIDCError) -> JSONObject {
        do throws(TokenError) { return try check(token, at: now) { provider.keys.lookup($0) } } catch {
            guard case .undecided(let id) = error.kind else { throw OIDCError(error) }
            let fetched = await provider.keys.resolve(id)
            return try OIDCError.fromToken(try check(token, at: now) { _ in fetched })
        }
    }

    private func check(
        _ token: [UInt8], at now: UnixTime, lookup: (KeyID?) -> IssuerKeys.Lookup
    ) throws(TokenError) -> JSONObject {
        let configuration = provider.configuration
        var checks = TokenChecks(
            prefix: OIDCProvider.kind.rawValue, owner: "the issuer's", algorithms: configuration.algorithms,
            issuers: configuration.issuers, audiences: [client], maximumAge: CodeFlow.maximumTokenAge)
        checks.audienceForm = .anyOf
        checks.acceptsUnnamedKeys = true
        // It says nothing about when it ends.
        checks.isOnline = true
        var log = CheckLog(recorded: false)
        return try checks.check(token, at: now, log: &log, lookup: lookup).claims.payload
    }

    /// Without the line break that some issuers append.
    private static func trimmed(_ bytes: [UInt8]) -> [UInt8] {
        guard let last = bytes.lastIndex(where: { $0 > 0x20 }) else { return [] }
        return Array(bytes[...last])
    }
}
