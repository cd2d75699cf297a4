internal import MartletJSON

/// The description of the endpoints (OpenAPI 3.1).
enum OpenAPI {
    static func document(path: String) -> JSONObject { [:] }
}
