internal import MartletConfig
internal import MartletCore
internal import MartletJOSE
internal import MartletJSON
internal import MartletProvider

/// Asks the issuer about opaque tokens (RFC 7662): only about those that begin with a configured prefix.
struct Introspector: Sendable {
    private static let maximumBytes = 256 * 1024
    private static let limits = JSONLimits(maximumDepth: 16, maximumBytes: maximumBytes)
    /// With less time left, no call is made.
    private static let minimumTime = Duration.milliseconds(50)

    private let block: IntrospectionBlock
    private let timeout: Duration
    private let prefixes: [[UInt8]]
    private let checks: OIDCChecklist
    private let context: ProviderContext
    let metrics = IntrospectionMetrics()

    init(
        _ block: IntrospectionBlock, _ configuration: OIDCConfiguration, _ context: ProviderContext,
        _ headers: JWSHeaderCache
    ) {
        self.block = block
        self.context = context
        timeout = configuration.timeout
        prefixes = configuration.prefixes.map { Array($0.value.utf8) }
        checks = OIDCChecklist(
            .response, configuration, maximumAge: configuration.maximumAge.value,
            maximumTokenBytes: context.maximumTokenBytes, headers: headers)
    }

    /// What tokens may begin with.
    var firstPrefix: String { prefixes.first.map { String(decoding: $0, as: UTF8.self) } ?? "" }

    /// Whether the issuer may be asked about a token; no other is ever sent to it.
    func accepts(_ credential: Credential) -> Bool {
        credential.withBytes { token in prefixes.contains { token.starts(with: $0) } }
    }

    /// Asks about a token that ``accepts(_:)`` has accepted, and checks the response.
    func run(
        _ credential: Credential, in request: AuthenticationContext, log: inout CheckLog
    ) async throws(OIDCError) -> VerifiedClaims {
        let token = try log.check("form") { () throws(OIDCError) in try text(of: credential) }
        let result: Result<JSONObject, OIDCError>
        do throws(OIDCError) { result = .success(try await ask(token, until: request.deadline)) } catch {
            result = .failure(error)
        }
        let response = try log.check("introspection") { () throws(OIDCError) in try result.get() }
        try log.check("active") { () throws(OIDCError) in
            guard response["active"] == true else {
                throw .rejected("inactive", "the issuer says that it is not valid")
            }
        }
        return try checks.run(response: response, at: request.now, log: &log, reusableFor: block.cache)
    }

    private func text(of credential: Credential) throws(OIDCError) -> String {
        try credential.withBytes { (token) throws(OIDCError) in
            let limit = context.maximumTokenBytes
            guard token.count <= limit else {
                throw .rejected("token_too_large", "the token has \(token.count) bytes, more than \(limit)")
            }
            guard token.allSatisfy(BearerToken.isAllowed) else {
                throw .rejected("malformed", "the token has a character that no bearer token has")
            }
            return String(decoding: token, as: UTF8.self)
        }
    }

    /// - Returns: a response with a boolean `active`.
    func ask(_ token: String, until deadline: MonotonicTime) async throws(OIDCError) -> JSONObject {
        do throws(OIDCError) {
            let object = try object(of: try await send(token, until: deadline))
            metrics.record(nil)
            return object
        } catch {
            if metrics.record(error.code) {
                context.logger.warning(
                    "token introspection failed", ("code", error.code.rawValue), ("reason", error.message))
            }
            throw error
        }
    }

    private func send(_ token: String, until deadline: MonotonicTime) async throws(OIDCError) -> HTTPCallResponse {
        let left = min(timeout, deadline.since(context.clock.monotonicTime))
        guard left >= Self.minimumTime else {
            throw .unavailable("introspection_unreachable", "no time left for a call")
        }
        let fields = [(name: "token", value: token), (name: "token_type_hint", value: "access_token")]
        do throws(HTTPCallError) {
            return try await context.http.send(
                HTTPCall(
                    block.url.value.text, content: .form(fields + block.client.fields),
                    headers: IssuerCall.headers + block.client.headers, timeout: left,
                    maximumBytes: Self.maximumBytes, isRepeatable: true))
        } catch {
            throw .unavailable(
                "introspection_unreachable", "no response about a token: \(error.message) [\(error.code)]")
        }
    }

    /// What the issuer says about a call that it refuses: its `error` and `error_description`, else the status.
    private static func words(of response: HTTPCallResponse) -> String {
        let object = (try? JSON.parse(response.body, limits: limits))?.object
        let said = ["error", "error_description"].compactMap { object?[$0]?.string }.joined(separator: ": ")
        return "\(response.status) \(IssuerText.make(said))"
    }

    private func object(of response: HTTPCallResponse) throws(OIDCError) -> JSONObject {
        switch response.status {
        case 200: break
        // The gateway itself is not allowed to ask: that is no word about the token.
        case 401, 403:
            throw .unavailable(
                "introspection_refused", "the issuer refuses the gateway's client: \(Self.words(of: response))")
        case 429:
            throw OIDCError(
                .throttled(response.retryAfter), "introspection_throttled", "the issuer limits the rate of calls")
        default:
            throw .unavailable("introspection_bad_response", "a response about a token has status \(response.status)")
        }
        guard let object = (try? JSON.parse(response.body, limits: Self.limits))?.object,
            object["active"]?.bool != nil
        else { throw .unavailable("introspection_bad_response", "a response about a token is not one of RFC 7662") }
        return object
    }
}
