private import MartletCore
private import MartletCrypto
private import MartletJOSE
private import MartletJSON
package import MartletProxy

/// The HTTP face of the pretended Apple: its keys, its discovery document, and tokens for whoever asks.
///
/// `GET /auth/keys` and `GET /.well-known/openid-configuration` are as Apple has them; `POST /simulator/token` takes a
/// ``TokenOrder`` as JSON and answers `{"identity_token", "kid", "expires_in"}`.
package struct AppleSimulatorEndpoints: Sendable {
    private let simulator: AppleSimulator

    package init(_ simulator: AppleSimulator) { self.simulator = simulator }

    /// Answers one request; to be used as a `LocalHandler`.
    @Sendable package func answer(_ request: LocalRequest) async -> LocalResponse {
        switch request.path {
        case "/auth/keys":
            reading(request) { LocalResponse(status: 200, fields: Self.jsonFields, body: simulator.keySetDocument) }
        case "/.well-known/openid-configuration":
            reading(request) { .json(200, Self.discovery(host: request.field("host") ?? "localhost")) }
        case "/simulator/token":
            request.method == "POST" ? mint(request) : .problem(.methodNotAllowed, request, "only POST", allow: "POST")
        default:
            .problem(.notFound, request, "there is /auth/keys, /.well-known/openid-configuration and /simulator/token")
        }
    }

    fileprivate static let jsonFields = [
        (name: "Content-Type", value: "application/json"), (name: "Cache-Control", value: "no-store"),
    ]

    private func reading(_ request: LocalRequest, _ answer: () -> LocalResponse) -> LocalResponse {
        request.method == "GET" || request.method == "HEAD"
            ? answer() : .problem(.methodNotAllowed, request, "only GET and HEAD", allow: "GET, HEAD")
    }

    // MARK: Tokens

    private func mint(_ request: LocalRequest) -> LocalResponse {
        guard Self.isJSON(request.field("content-type")) else {
            return .problem(.unsupportedMediaType, request, "the order is JSON: send Content-Type: application/json")
        }
        guard request.bodyBytes == request.body.count else {
            return .problem(.tooLarge, request, "the order is too large")
        }
        do throws(TokenOrder.Mistake) {
            let order = try TokenOrder(request.body, keys: simulator.keys + [simulator.ellipticKey])
            do throws(CryptoError) {
                return .json(
                    200,
                    [
                        "identity_token": .string(try order.fill(by: simulator)), "kid": .string(order.key.id.text),
                        "expires_in": .integer(order.lifetime),
                    ])
            } catch {
                return .problem(.unavailable, request, "the token could not be signed")
            }
        } catch {
            return .problem(.invalid, request, error.text)
        }
    }

    /// The media type is compared without its parameters.
    private static func isJSON(_ contentType: String?) -> Bool {
        let type = contentType?.split(separator: ";", maxSplits: 1).first ?? ""
        return type.lowercased().filter { $0 != " " && $0 != "\t" } == "application/json"
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

/// What the simulator's own refusals are.
private enum Problem {
    case invalid, notFound, methodNotAllowed, tooLarge, unsupportedMediaType, unavailable

    var parts: (status: Int, title: String, code: String) {
        switch self {
        case .invalid: (400, "Bad Request", "request_invalid")
        case .notFound: (404, "Not Found", "not_found")
        case .methodNotAllowed: (405, "Method Not Allowed", "method_not_allowed")
        case .tooLarge: (413, "Content Too Large", "request_too_large")
        case .unsupportedMediaType: (415, "Unsupported Media Type", "request_invalid")
        case .unavailable: (503, "Service Unavailable", "auth_unavailable")
        }
    }
}

extension LocalResponse {
    fileprivate static func json(_ status: Int, _ object: JSONObject) -> LocalResponse {
        LocalResponse(status: status, fields: AppleSimulatorEndpoints.jsonFields, body: JSON.write(object) + [0x0A])
    }

    /// An RFC 9457 problem document.
    fileprivate static func problem(
        _ problem: Problem, _ request: LocalRequest, _ detail: String, allow: String? = nil
    ) -> LocalResponse {
        let (status, title, code) = problem.parts
        var response = json(
            status,
            [
                "type": .string("urn:martlet:problem:\(code)"), "title": .string(title),
                "status": .integer(Int64(status)),
                "code": .string(code), "detail": .string(detail), "request_id": .string(request.requestID),
            ])
        response.fields[0].value = "application/problem+json"
        if let allow { response.fields.append(("Allow", allow)) }
        if status == 503 { response.fields.append(("Retry-After", "1")) }
        return response
    }
}
