internal import MartletJSON
internal import MartletResponder

/// An error of Apple's API: 400 with a code and sometimes a text, or 429.
struct AppleAPIError: Error, Equatable {
    let status: Int
    let code: String
    let text: String?

    /// A missing, repeated or unsupported parameter, or a body that is not a form.
    static func invalidRequest(_ text: String) -> AppleAPIError {
        .init(status: 400, code: "invalid_request", text: text)
    }

    /// A wrong client id or client secret, or another redirect URI.
    static func invalidClient(_ text: String) -> AppleAPIError {
        .init(status: 400, code: "invalid_client", text: text)
    }

    /// A code or a refresh token that is not valid, or not any more.
    static func invalidGrant(_ text: String) -> AppleAPIError { .init(status: 400, code: "invalid_grant", text: text) }

    static let unsupportedGrantType = AppleAPIError(status: 400, code: "unsupported_grant_type", text: nil)
    static let invalidScope = AppleAPIError(status: 400, code: "invalid_scope", text: nil)
    /// A refresh token is verified too often.
    static let throttled = AppleAPIError(status: 429, code: "throttled", text: nil)
    /// The simulator cannot sign, or has no random bytes.
    static let unavailable = AppleAPIError(status: 503, code: "unavailable", text: nil)

    var response: LocalResponse {
        guard self != .throttled, self != .unavailable else {
            return LocalResponse(status: status, fields: [], body: [])
        }
        var object: JSONObject = ["error": .string(code)]
        if let text { object["error_description"] = .string(text) }
        return .json(status, JSON.write(object))
    }
}
