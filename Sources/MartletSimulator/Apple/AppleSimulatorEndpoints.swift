private import MartletCore
private import MartletCrypto
private import MartletJOSE
private import MartletJSON
package import MartletResponder

/// The HTTP endpoints of the simulated Apple: its keys, its discovery document, and tokens for tests.
///
/// `GET /auth/keys` and `GET /.well-known/openid-configuration` are like Apple's; `POST /simulator/token` takes a
/// ``TokenRequest`` as JSON and returns `{"identity_token", "kid", "expires_in"}`.
package struct AppleSimulatorEndpoints: Sendable {
    private let simulator: AppleSimulator

    package init(_ simulator: AppleSimulator) { self.simulator = simulator }

    /// Handles one request; to be used as a `LocalHandler`.
    @Sendable package func handle(_ request: LocalRequest) async -> LocalResponse {
        switch request.path {
        case "/auth/keys":
            reading(request) { .json(200, simulator.keySetDocument) }
        case "/.well-known/openid-configuration":
            reading(request) { .json(200, Self.discovery(host: request.field("host") ?? "localhost")) }
        case "/simulator/token":
            mint(request)
        default:
            .problem(
                .notFound, request,
                "no such path; there are /auth/keys, /.well-known/openid-configuration and /simulator/token")
        }
    }

    private func reading(_ request: LocalRequest, _ response: () -> LocalResponse) -> LocalResponse {
        request.method == "GET" || request.method == "HEAD"
            ? response()
            : .problem(.methodNotAllowed, request, "method not allowed: use GET or HEAD", allow: "GET, HEAD")
    }

    // MARK: Tokens

    private func mint(_ request: LocalRequest) -> LocalResponse {
        let tokenRequest: TokenRequest
        do throws(SimulatorRequest.RequestError) {
            tokenRequest = try TokenRequest(request, keys: simulator.keys + [simulator.ellipticKey])
        } catch {
            return error.response(to: request)
        }
        do throws(CryptoError) {
            return .json(
                200,
                [
                    "identity_token": .string(try tokenRequest.makeToken(with: simulator)),
                    "kid": .string(tokenRequest.key.id.text),
                    "expires_in": .integer(tokenRequest.lifetime),
                ])
        } catch {
            return .problem(.unavailable, request, "signing the token failed")
        }
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
