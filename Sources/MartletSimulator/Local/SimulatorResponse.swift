internal import MartletJSON
internal import MartletResponder

/// The types of a simulator's own problem documents.
enum ProblemType {
    case invalid, notFound, methodNotAllowed, tooLarge, unsupportedMediaType, unavailable

    fileprivate var parts: (status: Int, title: String, code: String) {
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
    /// A JSON document that must not be cached.
    static func json(_ status: Int, _ body: [UInt8]) -> LocalResponse {
        LocalResponse(
            status: status, fields: [("Content-Type", "application/json"), ("Cache-Control", "no-store")], body: body)
    }

    /// A JSON object, followed by a newline.
    static func json(_ status: Int, _ object: JSONObject) -> LocalResponse { json(status, JSON.write(object) + [0x0A]) }

    static func problem(
        _ type: ProblemType, _ request: LocalRequest, _ detail: String, allow: String? = nil
    ) -> LocalResponse {
        let (status, title, code) = type.parts
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
