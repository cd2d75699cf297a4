package import MartletCore
internal import MartletJSON
package import MartletResponder

/// The HTTP endpoints of the simulated Apple.
///
/// Those below `/auth`, and the discovery document, are like Apple's; those below `/simulator` are for tests: they make
/// logins, change users, inject errors and list what has arrived (``AppleControl``).
package struct AppleSimulatorEndpoints: Sendable {
    /// Apple's endpoints, into which errors can be injected.
    static let paths = [
        "/auth/keys", "/.well-known/openid-configuration", "/auth/token", "/auth/revoke",
        "/auth/usermigrationinfo", "/auth/authorize",
    ]

    private let simulator: AppleSimulator
    private let http: (any HTTPCalling)?

    /// - Parameters:
    ///   - simulator: what stands behind the endpoints.
    ///   - http: sends notifications; `nil`: none can be sent.
    package init(_ simulator: AppleSimulator, http: (any HTTPCalling)? = nil) {
        self.simulator = simulator
        self.http = http
    }

    /// Handles one request; to be used as a `LocalHandler`.
    @Sendable package func handle(_ request: LocalRequest) async -> LocalResponse {
        let tokens = AppleTokenEndpoint(simulator: simulator)
        return switch request.path {
        case "/auth/keys": await reading(request) { .json(200, simulator.keySetDocument) }
        case "/.well-known/openid-configuration":
            await reading(request) { .json(200, Self.discovery(host: request.field("host") ?? "localhost")) }
        case "/auth/token": await posting(request, tokens.issue)
        case "/auth/revoke": await posting(request, tokens.revoke)
        case "/auth/authorize": await authorizing(request, AppleAuthorizeEndpoint(simulator: simulator))
        case "/auth/usermigrationinfo":
            await posting(
                request,
                AppleMigrationEndpoint(simulator: simulator, authorization: request.field("authorization")).move)
        default: await AppleControl(simulator: simulator, http: http).handle(request)
        }
    }

    // MARK: Calls

    private func reading(_ request: LocalRequest, _ response: () -> LocalResponse) async -> LocalResponse {
        guard request.method == "GET" || request.method == "HEAD" else {
            return .problem(.methodNotAllowed, request, "method not allowed: use GET or HEAD", allow: "GET, HEAD")
        }
        return await responding(to: request, form: nil) { Outcome(code: "ok", response: response()) }
    }

    private func posting(
        _ request: LocalRequest, _ body: (AppleForm) throws(AppleAPIError) -> LocalResponse
    ) async -> LocalResponse {
        guard request.method == "POST" else {
            return .problem(.methodNotAllowed, request, "method not allowed: use POST", allow: "POST")
        }
        let form = Self.form { () throws(AppleAPIError) in try AppleForm(request) }
        return await responding(to: request, form: form, body, failing: \.response)
    }

    /// The page on which a user signs in: its errors are pages, too.
    private func authorizing(_ request: LocalRequest, _ endpoint: AppleAuthorizeEndpoint) async -> LocalResponse {
        switch request.method {
        case "GET", "HEAD":
            let form = Self.form { () throws(AppleAPIError) in try AppleForm(encoded: Array(request.query.utf8)) }
            return await responding(
                to: request, form: form, { form throws(AppleAPIError) in try endpoint.ask(form, query: request.query) },
                failing: AuthorizationPage.failing)
        case "POST":
            let form = Self.form { () throws(AppleAPIError) in try AppleForm(request) }
            return await responding(to: request, form: form, endpoint.respond, failing: AuthorizationPage.failing)
        default:
            return .problem(
                .methodNotAllowed, request, "method not allowed: use GET, HEAD or POST", allow: "GET, HEAD, POST")
        }
    }

    private static func form(_ parse: () throws(AppleAPIError) -> AppleForm) -> Result<AppleForm, AppleAPIError> {
        do throws(AppleAPIError) { return .success(try parse()) } catch { return .failure(error) }
    }

    private func responding(
        to request: LocalRequest, form: Result<AppleForm, AppleAPIError>,
        _ body: (AppleForm) throws(AppleAPIError) -> LocalResponse, failing: (AppleAPIError) -> LocalResponse
    ) async -> LocalResponse {
        await responding(to: request, form: try? form.get()) {
            do throws(AppleAPIError) {
                return Outcome(code: "ok", response: try body(try form.get()))
            } catch {
                return Outcome(code: error.code, response: failing(error))
            }
        }
    }

    private struct Outcome {
        let code: String
        let response: LocalResponse
    }

    /// Responds as an injected error says, or normally, and writes the call into the log before any delay.
    private func responding(to request: LocalRequest, form: AppleForm?, _ body: () -> Outcome) async -> LocalResponse {
        let grantType = form?["grant_type"]
        let fault = simulator.errors.withLock { $0.next(request.path, grantType: grantType) }
        let injected = fault?.injected
        let normal = injected == nil || fault?.isProcessed == true ? body() : nil
        let outcome = injected.map { Outcome(code: $0.outcome, response: $0.response) } ?? normal
        guard let outcome else { return .aborted }
        let entry = RequestLog.Entry(
            time: simulator.clock.unixMilliseconds, path: request.path, client: AppleCall(form),
            status: outcome.response.isAborted ? 0 : outcome.response.status, outcome: outcome.code,
            isInjected: injected != nil)
        simulator.log.withLock { $0.append(entry) }
        if let delay = fault?.delay, delay > .zero { try? await Task.sleep(for: delay) }
        return outcome.response
    }

    // MARK: Discovery

    private static func discovery(host: String) -> JSONObject {
        let base = "http://\(host)"
        return [
            "issuer": .string(AppleSimulator.issuer),
            "authorization_endpoint": .string("\(base)/auth/authorize"),
            "token_endpoint": .string("\(base)/auth/token"),
            "revocation_endpoint": .string("\(base)/auth/revoke"),
            "jwks_uri": .string("\(base)/auth/keys"),
            "response_types_supported": ["code"],
            "response_modes_supported": ["query", "fragment", "form_post"],
            "subject_types_supported": ["pairwise"],
            "id_token_signing_alg_values_supported": ["RS256"],
            "scopes_supported": ["openid", "email", "name"],
            "token_endpoint_auth_methods_supported": ["client_secret_post"],
            "claims_supported": [
                "aud", "email", "email_verified", "exp", "iat", "is_private_email", "iss", "nonce", "nonce_supported",
                "real_user_status", "sub", "transfer_sub",
            ],
        ]
    }
}
