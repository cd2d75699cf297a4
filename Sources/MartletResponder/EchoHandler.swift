internal import MartletJSON

/// `builtin:echo`: responds with the request that an upstream would have received.
package enum EchoHandler {
    /// A JSON object: method, path, query, headers (repeated ones as an array), body and its length.
    @Sendable
    package static func respond(_ request: LocalRequest) async -> LocalResponse {
        var headers: [(String, JSONValue)] = []
        for field in request.fields {
            let name = field.name.lowercased()
            if let index = headers.firstIndex(where: { $0.0 == name }) {
                let value = JSONValue.string(field.value)
                if case .array(let values) = headers[index].1 {
                    headers[index].1 = .array(values + [value])
                } else {
                    headers[index].1 = .array([headers[index].1, value])
                }
            } else {
                headers.append((name, .string(field.value)))
            }
        }
        let document = JSONValue.object(
            JSONObject([
                ("method", .string(request.method)),
                ("path", .string(request.path)),
                ("query", .string(request.query)),
                ("headers", .object(JSONObject(headers))),
                ("body", .string(String(decoding: request.body, as: UTF8.self))),
                ("body_bytes", .number(JSONNumber(Int64(request.bodyBytes)))),
            ]))
        return LocalResponse(
            status: 200, fields: [("Content-Type", "application/json")], body: JSON.write(document) + [0x0A])
    }
}
