internal import MartletCore
internal import MartletJSON
internal import MartletResponder
internal import MartletSession

/// Builds successful responses, none of which may be cached.
enum SignInResponse {
    private static let noStore = (name: "Cache-Control", value: "no-store")

    static let noContent = LocalResponse(status: 204, fields: [noStore], body: [])

    static let empty = LocalResponse(status: 200, fields: [noStore], body: [])

    static let accepted = LocalResponse(status: 202, fields: [noStore], body: [])

    static func json(_ object: JSONObject) -> LocalResponse { json(bytes: JSON.write(object)) }

    /// A request that is handled later.
    static func accepted(_ object: JSONObject) -> LocalResponse {
        var response = json(object)
        response.status = 202
        return response
    }

    /// Allows apps to use the passwords saved for this host (Apple, "Supporting associated domains").
    static func appSiteAssociation(_ apps: [String]) -> LocalResponse {
        json(["webcredentials": .object(["apps": .array(apps.map { .string($0) })])])
    }

    /// A temporary redirect (RFC 9110 §15.4.4).
    static func seeOther(_ location: String) -> LocalResponse {
        LocalResponse(status: 303, fields: [("Location", location), noStore], body: [])
    }

    /// A pair of tokens; their bytes are copied only into the body.
    /// - Parameter isNew: whether the account was just created; `nil` without accounts.
    static func tokens(_ tokens: IssuedTokens, isNew: Bool?) -> LocalResponse {
        var rest: JSONObject = [
            // RFC 9449 §5
            "token_type": tokens.isBound ? "DPoP" : "Bearer",
            "expires_in": .integer(tokens.accessLifetime.wholeSeconds),
            "refresh_expires_in": .integer(tokens.refreshLifetime.wholeSeconds),
            "session_id": .string(tokens.session.id),
            "subject": .string(tokens.session.subject),
            "provider": .string(tokens.provider),
        ]
        if let isNew { rest["new_account"] = .bool(isNew) }
        var body: [UInt8] = []
        body.reserveCapacity(1024)
        body += Array("{\"access_token\":\"".utf8)
        tokens.accessToken.withBytes { body += $0 }
        body += Array("\",\"refresh_token\":\"".utf8)
        tokens.refreshToken.withBytes { body += $0 }
        body += Array("\",".utf8)
        body += JSON.write(rest).dropFirst()
        body.append(0x0A)
        return SignInResponse.tokens(body)
    }

    /// A pair of tokens from a stored body.
    static func tokens(_ body: [UInt8]) -> LocalResponse {
        var response = json(bytes: [])
        response.fields.append((name: "Pragma", value: "no-cache"))
        response.body = body
        return response
    }

    private static func json(bytes: [UInt8]) -> LocalResponse {
        LocalResponse(status: 200, fields: [("Content-Type", "application/json"), noStore], body: bytes + [0x0A])
    }
}
