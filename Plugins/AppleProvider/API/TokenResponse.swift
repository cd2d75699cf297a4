internal import MartletCore
internal import MartletJSON
private import MartletProvider

/// Apple's response to a token request, parsed only.
enum TokenResponse: Sendable {
    /// The largest response that is read, in bytes.
    static let maximumBytes = 64 * 1024

    /// 200 with tokens.
    case granted(Granted)
    /// 400 or, if the client is not accepted, 401, with an error code.
    case refused(APIError, description: String?)
    /// 429: too many requests.
    case throttled
    /// Anything else, such as 500 or an HTML page: what Apple did is unknown.
    case unknown(String)

    struct Granted: Sendable {
        let accessToken: Secret
        /// `nil` when a refresh token was checked.
        let refreshToken: Secret?
        let identityToken: Secret
    }

    /// The documented error codes.
    enum APIError: String, Sendable, CaseIterable {
        case invalidRequest = "invalid_request"
        case invalidClient = "invalid_client"
        case invalidGrant = "invalid_grant"
        case unauthorizedClient = "unauthorized_client"
        case unsupportedGrantType = "unsupported_grant_type"
        case invalidScope = "invalid_scope"
    }

    private static let limits = JSONLimits(maximumDepth: 8, maximumBytes: maximumBytes)

    init(status: Int, body: [UInt8]) {
        switch status {
        case 200: self = Self.granted(body)
        case 400, 401: self = Self.refused(status, body)
        case 429: self = .throttled
        default: self = .unknown("status \(status)")
        }
    }

    private static func object(_ body: [UInt8]) -> JSONObject? { (try? JSON.parse(body, limits: limits))?.object }

    private static func granted(_ body: [UInt8]) -> TokenResponse {
        guard let object = object(body) else { return .unknown("status 200 without a JSON object") }
        guard let type = object["token_type"]?.string, type.lowercased() == "bearer",
            let access = token(object["access_token"]), let identity = token(object["id_token"])
        else { return .unknown("status 200 without tokens") }
        return .granted(
            Granted(accessToken: access, refreshToken: token(object["refresh_token"]), identityToken: identity))
    }

    private static func refused(_ status: Int, _ body: [UInt8]) -> TokenResponse {
        let object = object(body)
        guard let code = object?["error"]?.string else { return .unknown("status \(status) without an error code") }
        guard let error = APIError.allCases.first(where: { $0.rawValue.hasSameBytes(as: code) }) else {
            return .unknown("error \(ShownText.make(code))")
        }
        // RFC 6749 5.2 has this status for a client that is not accepted, and for nothing else.
        guard status == 400 || error == .invalidClient else { return .unknown("status \(status)") }
        return .refused(error, description: object?["error_description"]?.string)
    }

    private static func token(_ value: JSONValue?) -> Secret? {
        guard let text = value?.string, !text.isEmpty else { return nil }
        return Secret(text)
    }
}
