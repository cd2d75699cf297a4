internal import MartletCore
internal import MartletJSON
internal import MartletProxy
internal import MartletSession

/// Answers that are no refusals; none may be stored on the way.
enum Answer {
    private static let noStore = (name: "Cache-Control", value: "no-store")

    static let done = LocalResponse(status: 204, fields: [noStore], body: [])

    static func json(_ object: JSONObject) -> LocalResponse { json(bytes: JSON.write(object)) }

    /// A redirect that holds for this once (RFC 9110 §15.4.4).
    static func seeOther(_ location: String) -> LocalResponse {
        LocalResponse(status: 303, fields: [("Location", location), noStore], body: [])
    }

    /// A pair of tokens; their bytes go straight into the body and into no other text.
    /// - Parameter isNew: whether the account was made just now; `nil` where there are no accounts.
    static func tokens(_ tokens: IssuedTokens, isNew: Bool?) -> LocalResponse {
        var rest: JSONObject = [
            "token_type": "Bearer",
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
        return Answer.tokens(body)
    }

    /// A pair of tokens whose body was made before.
    static func tokens(_ body: [UInt8]) -> LocalResponse {
        var answer = json(bytes: [])
        answer.fields.append((name: "Pragma", value: "no-cache"))
        answer.body = body
        return answer
    }

    private static func json(bytes: [UInt8]) -> LocalResponse {
        LocalResponse(status: 200, fields: [("Content-Type", "application/json"), noStore], body: bytes + [0x0A])
    }
}
