internal import MartletResponder

/// What the redirect URI gets, by the browser.
struct AuthorizationResponse {
    let redirectURI: String
    let mode: AuthorizationRequest.ResponseMode
    let parameters: [(name: String, value: String)]

    /// The page or the redirection that carries it.
    var response: LocalResponse {
        switch mode {
        case .formPost: AuthorizationPage.posting(parameters, to: redirectURI)
        case .query: redirection(redirectURI.contains("?") ? "&" : "?")
        case .fragment: redirection("#")
        }
    }

    private func redirection(_ separator: String) -> LocalResponse {
        let encoded = parameters.map { "\($0.name)=\(Self.encoded($0.value))" }.joined(separator: "&")
        return LocalResponse(
            status: 303,
            fields: [("Location", "\(redirectURI)\(separator)\(encoded)"), ("Cache-Control", "no-store")], body: [])
    }

    /// Percent-encodes everything but unreserved characters (RFC 3986 §2.3).
    private static func encoded(_ text: String) -> String {
        var bytes: [UInt8] = []
        for byte in text.utf8 {
            switch byte {
            case 0x30...0x39, 0x41...0x5A, 0x61...0x7A, 0x2D, 0x2E, 0x5F, 0x7E: bytes.append(byte)
            default: bytes += Array("%\(hexadecimal([byte]).uppercased())".utf8)
            }
        }
        return String(decoding: bytes, as: UTF8.self)
    }
}
