import MartletCore

@testable import MartletHTTP

/// Requests and signatures for tests.
enum SignedRequests {
    static func bytes(_ text: String) -> [UInt8] { Array(text.utf8) }

    static func request(
        _ method: String = "GET", _ scheme: String = "https", _ authority: String = "api.example",
        _ path: String = "/v1/orders", query: String? = nil, _ fields: [(String, String)] = []
    ) -> SignedRequest {
        SignedRequest(
            method: bytes(method), scheme: bytes(scheme), authority: bytes(authority), path: bytes(path),
            query: query.map(bytes), fields: fields.map { .init(name: $0, value: bytes($1)) })
    }

    /// RFC 9421 §B.2.
    static let rfc = request(
        "POST", "https", "example.com", "/foo", query: "param=Value&Pet=dog",
        [
            ("host", "example.com"), ("date", "Tue, 20 Apr 2021 02:07:55 GMT"), ("content-type", "application/json"),
            (
                "content-digest",
                "sha-512=:WZDPaVn/7XgHaAy8pmojAkGWoRx2UFChF41A2svX+TaPm+AbwAgBWnrIiYllu7BNNyealdVLvRwEmTHWXvJwew==:"
            ),
            ("content-length", "18"),
        ])

    /// A signature of no meaning with these covered components and parameters.
    static func signature(_ input: String) throws(MessageSignatureError) -> MessageSignature {
        try MessageSignature(input: bytes("sig=\(input)"), signature: bytes("sig=:AAAA:"))
    }

    /// The code with which fields are rejected; `nil` if they are accepted.
    static func code(input: String, signature: String) -> ErrorCode? {
        do throws(MessageSignatureError) {
            _ = try MessageSignature(input: bytes(input), signature: bytes(signature))
            return nil
        } catch { return error.code }
    }

    /// The base of a request for covered components, without its last line, or the code of the error.
    static func base(_ components: String, _ request: SignedRequest) -> String {
        do throws(MessageSignatureError) {
            let base = try signature("(\(components));keyid=\"k\"").base(of: request)
            let text = String(decoding: base, as: UTF8.self)
            let end = "\"@signature-params\": (\(components));keyid=\"k\""
            return text.hasSuffix(end) ? String(text.dropLast(end.count)) : "no last line: \(text)"
        } catch { return error.code.rawValue }
    }
}
